// What a tip says about a trial.

import { show, showState } from "../format";
import type { Trial } from "../state/trial";

/** Most parameters named; the rest stand in the trial's details. */
const MOST = 8;

export function TrialTip({
  trial,
  children,
}: {
  trial: Trial;
  children?: preact.ComponentChildren;
}) {
  const entries = Object.entries(trial.flat);
  return (
    <>
      <strong>Trial {trial.number}</strong> <span class="muted">{trial.id}</span>
      <div>
        {children ?? (
          <>
            result <b>{show(trial.value ?? trial.result)}</b>
          </>
        )}
      </div>
      {trial.state === "SUCCEEDED" ? null : <div class="muted">{showState(trial.state)}</div>}
      <table class="tip-table">
        <tbody>
          {entries.slice(0, MOST).map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{show(value)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {entries.length > MOST ? <div class="muted">and {entries.length - MOST} more</div> : null}
    </>
  );
}
