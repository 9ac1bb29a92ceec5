// Dialog that compares trials: parameters, results, intermediate results.

import { formatDuration, formatValue, parameterText } from "../format";
import { CurveLines, useCurves } from "../charts/intermediate_chart";
import { Dialog } from "../components/dialog";
import { StatePill } from "../components/state_pill";
import { TrialLink } from "../components/trial_link";
import { useGoals } from "../state/goals";
import { modeOf } from "../state/objectives";
import { bestIntermediate, metricText, resultText } from "../state/outcome";
import type { Store } from "../state/store";
import { type Trial, durationOf } from "../state/trial";

export function Compare({
  store,
  trials,
  onClose,
}: {
  store: Store;
  trials: Trial[];
  onClose: () => void;
}) {
  const source = useCurves(store);
  const [goals] = useGoals(store);
  const { metric } = goals.objectives[0]!;
  const mode = modeOf(goals, metric);
  const curves = source.curves(metric);
  const names = [...new Set(trials.flatMap((trial) => Object.keys(trial.flat)))];
  const metrics = [...new Set(trials.flatMap((trial) => Object.keys(trial.metrics)))].filter(
    (key) => key !== "default",
  );
  const withCurve = trials.filter((trial) => curves.get(trial.id)?.length);
  const row = (name: string, text: (trial: Trial) => string) => {
    const texts = trials.map(text);
    const differs = new Set(texts).size > 1;
    return (
      <tr key={name} class={differs ? "differs" : undefined}>
        <th scope="row" class="mono">
          {name}
        </th>
        {texts.map((one, i) => (
          <td key={trials[i]!.id} class="mono">
            {one}
          </td>
        ))}
      </tr>
    );
  };
  return (
    <Dialog title={`Compare ${trials.length} trials`} kind="modal" wide onClose={onClose}>
      {withCurve.length ? (
        <CurveLines
          trials={withCurve}
          curves={curves}
          metric={metric}
          mode={mode}
          height={240}
          title="intermediate result"
        />
      ) : (
        <p class="muted" role="status">
          {source.state === "loading"
            ? "Loading intermediate results…"
            : "The selected trials have no intermediate results."}
        </p>
      )}
      <div class="scroll">
        <table class="compare">
          <caption class="muted">Rows that differ are marked.</caption>
          <thead>
            <tr>
              <td />
              {trials.map((trial) => (
                <th key={trial.id} scope="col">
                  #{trial.number} <TrialLink trial={trial} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            <tr>
              <th scope="row">state</th>
              {trials.map((trial) => (
                <td key={trial.id}>
                  <StatePill state={trial.state} />
                </td>
              ))}
            </tr>
            {row("result", (trial) => resultText(trial, goals))}
            {metrics.map((key) => row(key, (trial) => metricText(trial, key)))}
            {row("best intermediate", (trial) =>
              formatValue(bestIntermediate(trial, metric, mode)),
            )}
            {row("duration", (trial) => {
              const seconds = durationOf(trial, Date.now());
              return seconds === null ? "–" : formatDuration(seconds);
            })}
            {names.map((name) =>
              row(name, (trial) => (name in trial.flat ? parameterText(trial.flat[name]) : "–")),
            )}
          </tbody>
        </table>
      </div>
    </Dialog>
  );
}
