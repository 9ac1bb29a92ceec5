// Editor of the search space of a running experiment, as JSON.

import { useState } from "preact/hooks";

import { errorMessage } from "../api/client";
import { Dialog } from "../components/dialog";
import { readSpace } from "../state/actions";
import { useApp } from "../state/context";
import type { Store } from "../state/store";

export function SpaceEditor({ store, onClose }: { store: Store; onClose: () => void }) {
  const { notify } = useApp();
  const [text, setText] = useState(() =>
    JSON.stringify(store.profile!.params["searchSpace"] ?? {}, null, 2),
  );
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    const read = readSpace(text);
    if ("problem" in read) {
      setProblem(read.problem);
      return;
    }
    setBusy(true);
    try {
      await store.update("SEARCH_SPACE", "searchSpace", read.value);
      notify("Search space changed: later trials come from it.", "done");
      onClose();
    } catch (error) {
      setProblem(errorMessage(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title="Change the search space" kind="modal" wide onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        <p class="muted" id="space-hint">
          Trials that exist keep their parameters. An algorithm that cannot change its space
          refuses.
        </p>
        <textarea
          class="code editor"
          rows={18}
          spellcheck={false}
          aria-label="Search space as JSON"
          aria-describedby="space-hint"
          aria-invalid={problem !== ""}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        {problem ? (
          <p class="wrong" role="alert">
            {problem}
          </p>
        ) : null}
        <div class="row end">
          <button type="button" class="plain" onClick={onClose}>
            Cancel
          </button>
          <button class="primary" disabled={busy}>
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}
