// Tooltip of a trial.

import { formatState, parameterText } from "../format";
import { resultText } from "../state/outcome";
import type { Trial } from "../state/trial";

/** Maximum number of parameters; the details of the trial have all. */
const MAX_PARAMETERS_SHOWN = 8;

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
            result <b>{resultText(trial)}</b>
          </>
        )}
      </div>
      {trial.state === "SUCCEEDED" ? null : <div class="muted">{formatState(trial.state)}</div>}
      <table class="tip-table">
        <tbody>
          {entries.slice(0, MAX_PARAMETERS_SHOWN).map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{parameterText(value)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {entries.length > MAX_PARAMETERS_SHOWN ? (
        <div class="muted">and {entries.length - MAX_PARAMETERS_SHOWN} more</div>
      ) : null}
    </>
  );
}
