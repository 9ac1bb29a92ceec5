// Editor of the search space of a running experiment, as JSON.

import { useState } from "preact/hooks";

import { Dialog } from "../components/dialog";
import { SubmitForm } from "../components/submit_form";
import { readSpace } from "../state/actions";
import { useApp } from "../state/context";
import type { Store } from "../state/store";

export function SpaceEditor({ store, onClose }: { store: Store; onClose: () => void }) {
  const { notify } = useApp();
  const [text, setText] = useState(() =>
    JSON.stringify(store.profile!.params["searchSpace"] ?? {}, null, 2),
  );
  const submit = async () => {
    const read = readSpace(text);
    if ("problem" in read) return [read.problem];
    await store.update("SEARCH_SPACE", { searchSpace: read.value });
    notify("Search space changed: later trials come from it.", "done");
    onClose();
    return [];
  };
  return (
    <Dialog title="Change the search space" kind="modal" wide onClose={onClose}>
      <SubmitForm label="Save" onCancel={onClose} submit={submit}>
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
          aria-invalid={"problem" in readSpace(text)}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </SubmitForm>
    </Dialog>
  );
}
