// Editor of note, tags and star of an experiment or a trial.

import { useEffect, useId, useState } from "preact/hooks";

import { errorMessage } from "../api/client";
import type { Remarks } from "../api/records";
import { NO_REMARKS, readTags } from "../state/remarks";
import { Icon } from "./icon";
import { SubmitForm } from "./submit_form";

interface Props {
  remarks: Remarks | undefined;
  /** Of whom they are, for labels: `trial 3`. */
  owner: string;
  editable: boolean;
  /** Why they cannot be edited. */
  reason: string;
  save: (change: Partial<Remarks>) => Promise<void>;
}

export function RemarksEditor({ remarks = NO_REMARKS, owner, editable, reason, save }: Props) {
  const [editing, setEditing] = useState(false);
  const [problem, setProblem] = useState("");
  const star = () =>
    save({ starred: !remarks.starred }).then(
      () => setProblem(""),
      (error: unknown) => setProblem(errorMessage(error)),
    );
  return (
    <section class="remarks" aria-label={`Remarks on ${owner}`}>
      <div class="row">
        <button
          type="button"
          class={remarks.starred ? "quiet star on" : "quiet star"}
          aria-pressed={remarks.starred}
          aria-label={`Star ${owner}`}
          title={reason || (remarks.starred ? "Remove the star" : "Star")}
          disabled={!editable}
          onClick={() => void star()}
        >
          <Icon name="best" />
        </button>
        {remarks.tags.map((tag) => (
          <span key={tag} class="tag">
            {tag}
          </span>
        ))}
        {editing ? null : (
          <button
            type="button"
            class="quiet"
            disabled={!editable}
            title={reason}
            onClick={() => setEditing(true)}
          >
            <Icon name="edit" /> {remarks.tags.length || remarks.note ? "Edit" : "Note, tags"}
          </button>
        )}
      </div>
      {editing ? (
        <Form remarks={remarks} owner={owner} save={save} onDone={() => setEditing(false)} />
      ) : remarks.note ? (
        <p class="note">{remarks.note}</p>
      ) : null}
      {problem ? (
        <p class="wrong" role="alert">
          {problem}
        </p>
      ) : null}
    </section>
  );
}

function Form({
  remarks,
  owner,
  save,
  onDone,
}: {
  remarks: Remarks;
  owner: string;
  save: Props["save"];
  onDone: () => void;
}) {
  const [tags, setTags] = useState(remarks.tags.join(", "));
  const [note, setNote] = useState(remarks.note);
  const first = useId();
  useEffect(() => document.getElementById(first)?.focus(), [first]);
  const submit = async () => {
    await save({ note, tags: readTags(tags) });
    onDone();
    return [];
  };
  return (
    <SubmitForm label="Save" onCancel={onDone} submit={submit}>
      <label class="field">
        <span>Tags</span>
        <input
          id={first}
          value={tags}
          placeholder="separated by commas"
          aria-label={`Tags of ${owner}`}
          autocomplete="off"
          onInput={(event) => setTags(event.currentTarget.value)}
        />
      </label>
      <label class="field">
        <span>Note</span>
        <textarea
          rows={3}
          maxLength={4000}
          value={note}
          aria-label={`Note on ${owner}`}
          onInput={(event) => setNote(event.currentTarget.value)}
        />
      </label>
    </SubmitForm>
  );
}
