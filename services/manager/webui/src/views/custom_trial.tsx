// A trial with parameters of the user's own, checked against the search space before it is sent.

import { useState } from "preact/hooks";

import { words } from "../api/client";
import type { JsonObject } from "../api/records";
import { Dialog } from "../components/dialog";
import { useApp } from "../state/context";
import { type Field, fieldsOf, parametersOf, textsOf } from "../state/form";
import { problemsWith } from "../state/space";
import type { Store } from "../state/store";
import type { Trial } from "../state/trial";

interface Props {
  store: Store;
  /** Whose parameters to start from; null: an empty form. */
  from: Trial | null;
  onClose: () => void;
}

export function CustomTrial({ store, from, onClose }: Props) {
  const { notify } = useApp();
  const space = store.profile!.params["searchSpace"];
  const [texts, setTexts] = useState(() => textsOf((from?.parameters ?? {}) as JsonObject));
  const [problems, setProblems] = useState<string[]>([]);
  const [busy, setBusy] = useState(false);

  const submit = async (event: Event) => {
    event.preventDefault();
    const { parameters, problems: unread } = parametersOf(space, texts);
    const found = unread.length ? unread : problemsWith(parameters, space);
    setProblems(found);
    if (found.length) return;
    setBusy(true);
    try {
      await store.client.send("POST", "trial-jobs", parameters);
      notify("The trial is queued.", "done");
      onClose();
    } catch (error) {
      setProblems([words(error)]);
      setBusy(false);
    }
  };
  return (
    <Dialog title={from ? `New trial like ${from.id}` : "New trial"} kind="modal" onClose={onClose}>
      <p class="muted">
        It runs like any other and counts against the trial number; its result is not told to the
        algorithm.
      </p>
      <form onSubmit={(event) => void submit(event)}>
        <div class="form-grid">
          {fieldsOf(space, texts).map((field) => (
            <Input
              key={field.name}
              field={field}
              text={texts[field.name] ?? ""}
              onChange={(text) => setTexts({ ...texts, [field.name]: text })}
            />
          ))}
        </div>
        {problems.length ? (
          <ul class="wrong" role="alert">
            {problems.map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        ) : null}
        <div class="row end">
          <button type="button" class="plain" onClick={onClose}>
            Cancel
          </button>
          <button class="primary" disabled={busy}>
            Run it
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function Input({
  field,
  text,
  onChange,
}: {
  field: Field;
  text: string;
  onChange: (text: string) => void;
}) {
  return (
    <label class="field">
      <span class="mono">{field.name}</span>
      {field.options.length ? (
        <select value={text} onChange={(event) => onChange(event.currentTarget.value)}>
          {field.options.includes(text) ? null : <option value={text}>{text}</option>}
          {field.options.map((one) => (
            <option key={one} value={one}>
              {one.replace(/^"(.*)"$/, "$1")}
            </option>
          ))}
        </select>
      ) : (
        <input
          class="mono"
          value={text}
          spellcheck={false}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
      <small class="muted">{field.hint}</small>
    </label>
  );
}
