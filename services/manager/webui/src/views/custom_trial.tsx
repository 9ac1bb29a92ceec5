// Form for a trial with parameters of the user, validated against the search space.

import { useState } from "preact/hooks";

import type { JsonObject } from "../api/records";
import { Dialog } from "../components/dialog";
import { SubmitForm } from "../components/submit_form";
import { useApp } from "../state/context";
import { type Field, formFields, parseFields, fieldTexts } from "../state/form";
import { validateParameters } from "../state/space";
import type { Store } from "../state/store";
import type { Trial } from "../state/trial";

interface Props {
  store: Store;
  /** Trial with the initial parameters; null: an empty form. */
  from: Trial | null;
  onClose: () => void;
}

export function CustomTrial({ store, from, onClose }: Props) {
  const { notify } = useApp();
  const space = store.profile!.params["searchSpace"];
  const [texts, setTexts] = useState(() => fieldTexts((from?.parameters ?? {}) as JsonObject));
  const submit = async () => {
    const { parameters, problems: unread } = parseFields(space, texts);
    const found = unread.length ? unread : validateParameters(parameters, space);
    if (found.length) return found;
    await store.client.send("POST", "trial-jobs", parameters);
    notify("The trial is queued.", "done");
    onClose();
    return [];
  };
  return (
    <Dialog title={from ? `New trial from ${from.id}` : "New trial"} kind="modal" onClose={onClose}>
      <p class="muted">
        The trial counts against the trial number; the algorithm does not learn from its result.
      </p>
      <SubmitForm label="Run" onCancel={onClose} submit={submit}>
        <div class="form-grid">
          {formFields(space, texts).map((field) => (
            <Input
              key={field.name}
              field={field}
              text={texts[field.name] ?? ""}
              onChange={(text) => setTexts({ ...texts, [field.name]: text })}
            />
          ))}
        </div>
      </SubmitForm>
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
