// The TensorBoards that run for this experiment: opened again, or ended.

import { useEffect, useState } from "preact/hooks";

import { words } from "../api/client";
import type { TensorBoard } from "../api/records";
import { count } from "../format";
import { Dialog } from "../components/dialog";
import { useApp } from "../state/context";

/** Return where a TensorBoard answers: on the page's own host. */
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
      .then(setTasks, (error: unknown) => setProblem(words(error)));
  }, [store]);
  const end = async () => {
    try {
      await store.client.send("DELETE", "tensorboard-tasks");
      setTasks([]);
    } catch (error) {
      notify(words(error));
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
        <p class="empty">{tasks ? "None runs." : "Loading…"}</p>
      )}
      <div class="row end">
        <button
          type="button"
          class="plain danger"
          disabled={!store.editable || !tasks?.length}
          title={store.readOnlyReason}
          onClick={() => void end()}
        >
          End all
        </button>
      </div>
    </Dialog>
  );
}
