// Dialog of the experiment's running TensorBoards: open or stop them.

import { useEffect, useState } from "preact/hooks";

import { errorMessage } from "../api/client";
import type { TensorBoard } from "../api/records";
import { count } from "../format";
import { Dialog } from "../components/dialog";
import { useApp } from "../state/context";

/** Return the URL of a TensorBoard, on the page's host. */
export function boardAddress(task: TensorBoard): string {
  return `http://${location.hostname}:${task.port}/`;
}

export function TensorBoards({ onClose }: { onClose: () => void }) {
  const { store, notify } = useApp();
  const [tasks, setTasks] = useState<TensorBoard[] | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    store.client
      .get<TensorBoard[]>("tensorboard-tasks")
      .then(setTasks, (error: unknown) => setProblem(errorMessage(error)));
  }, [store]);
  const stopAll = async () => {
    try {
      await store.client.send("DELETE", "tensorboard-tasks");
      setTasks([]);
    } catch (error) {
      notify(errorMessage(error));
    }
  };
  return (
    <Dialog title="TensorBoards" kind="modal" onClose={onClose}>
      <p class="muted">
        Select trials in the table to start one over them; trials write their event files below
        $NNI_OUTPUT_DIR/tensorboard.
      </p>
      {problem ? (
        <p class="hint" role="alert">
          {problem}
        </p>
      ) : null}
      {tasks?.length ? (
        <table>
          <thead>
            <tr>
              <th scope="col">Id</th>
              <th scope="col">Trials</th>
              <th scope="col">State</th>
            </tr>
          </thead>
          <tbody>
            {tasks.map((task) => (
              <tr key={task.id}>
                <td>
                  <a class="mono" href={boardAddress(task)} target="_blank" rel="noopener">
                    {task.id}
                  </a>
                </td>
                <td title={task.trialJobIdList.join(", ")}>
                  {count(task.trialJobIdList.length, "trial")}
                </td>
                <td>{task.status.toLowerCase()}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <p class="empty">{tasks ? "No TensorBoard is running." : "Loading…"}</p>
      )}
      <div class="row end">
        <button
          type="button"
          class="plain danger"
          disabled={!store.editable || !tasks?.length}
          title={store.readOnlyReason}
          onClick={() => void stopAll()}
        >
          Stop all
        </button>
      </div>
    </Dialog>
  );
}
