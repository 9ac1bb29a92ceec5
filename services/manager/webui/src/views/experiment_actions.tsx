// Dialog with the actions on an experiment; each is confirmed before it is sent.

import { useMemo, useState } from "preact/hooks";

import { Client, requestKey } from "../api/client";
import { Dialog } from "../components/dialog";
import { SubmitForm } from "../components/submit_form";
import { StatePill } from "../components/state_pill";
import { useApp } from "../state/context";
import { type Action, actionsOf } from "../state/actions";

interface Props {
  id: string;
  name: string;
  status: string;
  /** Number of live trials. */
  live: number;
  /** Whether the address of the page is the experiment's own. */
  ownAddress: boolean;
  /** Called after a change. */
  onChanged: (action: Action["name"]) => void;
  onClose: () => void;
}

export function ExperimentActions({
  id,
  name,
  status,
  live,
  ownAddress,
  onChanged,
  onClose,
}: Props) {
  const [chosen, setChosen] = useState<Action["name"] | null>(null);
  const actions = actionsOf(status, live, ownAddress);
  const action = actions.find((one) => one.name === chosen);
  return (
    <Dialog title={`Experiment ${name || id}`} kind="modal" onClose={onClose}>
      <p>
        <span class="mono">{id}</span> <StatePill state={status} />
      </p>
      {action ? (
        <Confirmation
          key={action.name}
          id={id}
          action={action}
          onBack={() => setChosen(null)}
          onChanged={onChanged}
          onClose={onClose}
        />
      ) : (
        <ul class="actions">
          {actions.map((one) => (
            <li key={one.name}>
              <button
                type="button"
                class={one.danger ? "plain danger" : "plain"}
                disabled={one.reason !== ""}
                onClick={() => setChosen(one.name)}
              >
                {one.label}
              </button>
              <span class="muted">{one.reason || one.effect}</span>
            </li>
          ))}
        </ul>
      )}
    </Dialog>
  );
}

function Confirmation({
  id,
  action,
  onBack,
  onChanged,
  onClose,
}: {
  id: string;
  action: Action;
  onBack: () => void;
  onChanged: (action: Action["name"]) => void;
  onClose: () => void;
}) {
  const { notify } = useApp();
  const [newSeed, setNewSeed] = useState(true);
  // One key per confirmation: a repetition after an error has no second effect.
  const key = useMemo(requestKey, []);
  const submit = async () => {
    const made = await send(id, action.name, newSeed, key);
    onChanged(action.name);
    if (made) location.assign(`oview?id=${encodeURIComponent(made)}`);
    else {
      notify(`${action.label}: done.`, "done");
      onClose();
    }
    return [];
  };
  return (
    <SubmitForm
      label={action.label}
      busyLabel="Please wait…"
      danger={action.danger}
      focused
      onCancel={onBack}
      submit={submit}
    >
      <p>
        <b>{action.label}?</b> {action.effect}
      </p>
      {action.name === "again" ? (
        <label class="check">
          <input type="checkbox" checked={newSeed} onChange={() => setNewSeed(!newSeed)} /> With
          another random seed
        </label>
      ) : null}
    </SubmitForm>
  );
}

/** Send an action; return the id of the experiment that it created, empty if none. */
async function send(
  id: string,
  name: Action["name"],
  newSeed: boolean,
  key: string,
): Promise<string> {
  const client = new Client(id);
  switch (name) {
    case "stop":
      await client.send("POST", "experiment/stop", {}, key);
      return "";
    case "resume":
      await client.send("POST", "experiment/resume", {}, key);
      return "";
    case "delete":
      await client.send("DELETE", "experiment", undefined, key);
      return "";
    case "again": {
      const body = { newSeed };
      return (await client.send<{ experiment_id: string }>("POST", "experiment/again", body, key))
        .experiment_id;
    }
  }
}
