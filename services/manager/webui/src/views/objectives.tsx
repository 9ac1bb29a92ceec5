// Cards of an experiment with several objectives: the front, and one card per objective.

import { useMemo } from "preact/hooks";

import { FrontChart } from "../charts/front_chart";
import { ResultChart } from "../charts/result_chart";
import { CopyButton } from "../components/copy_button";
import { SavedChart } from "../components/chart_files";
import { Icon } from "../components/icon";
import { NoResult } from "../components/no_result";
import { TrialLink } from "../components/trial_link";
import { count, formatValue, pythonLiteral } from "../format";
import { type Goals, type Objective, bestTrial, feasibilityOf, frontOf } from "../state/objectives";
import { metricText } from "../state/outcome";
import type { Store } from "../state/store";

/** Maximum number of rows of the front's table. */
const MAX_ROWS = 50;

interface Props {
  store: Store;
  goals: Goals;
}

export function ObjectiveCards({ store, goals }: Props) {
  return (
    <>
      <section class="card w8" aria-labelledby="front">
        <h2 id="front">Pareto front</h2>
        <SavedChart name="front" title="Pareto front">
          <FrontChart store={store} goals={goals} height={300} selectable={false} />
        </SavedChart>
      </section>
      <section class="card w4" aria-labelledby="front-trials">
        <FrontTrials store={store} goals={goals} />
      </section>
      {goals.objectives.map((one, i) => (
        <section class="card w6" key={one.metric} aria-labelledby={`objective-${i}`}>
          <ObjectiveCard store={store} goals={goals} objective={one} id={`objective-${i}`} />
        </section>
      ))}
    </>
  );
}

function ObjectiveCard({
  store,
  goals,
  objective: { metric, mode },
  id,
}: Props & { objective: Objective; id: string }) {
  const best = useMemo(
    () => bestTrial(store.trials.values(), goals, metric),
    [store.version, goals, metric],
  );
  return (
    <>
      <h2 id={id}>
        {metric} <span class="muted">({mode})</span>
      </h2>
      {best ? (
        <p class="muted">
          <Icon name="best" /> best <b class="value">{formatValue(best.metrics[metric])}</b> in
          trial <TrialLink trial={best} /> · number {best.number}
        </p>
      ) : null}
      <SavedChart name={metric} title={metric}>
        <ResultChart store={store} metric={metric} goals={goals} height={240} />
      </SavedChart>
    </>
  );
}

/** Table of the trials that no other one beats in all objectives, and how many results keep the limits. */
function FrontTrials({ store, goals }: Props) {
  const front = useMemo(() => frontOf(store.trials.values(), goals), [store.version, goals]);
  const counts = useMemo(() => feasibilityOf(store.trials.values(), goals), [store.version, goals]);
  return (
    <>
      <h2 id="front-trials">
        <Icon name="best" /> Best trials
      </h2>
      <p class="muted">
        {count(counts.results, "result")}: {counts.feasible.toLocaleString("en")} complete and
        within the limits
        {counts.infeasible ? `, ${counts.infeasible.toLocaleString("en")} beyond a limit` : ""}
        {counts.incomplete
          ? `, ${counts.incomplete.toLocaleString("en")} without a number for each objective`
          : ""}
        . No other trial beats these in all objectives.
      </p>
      {front.length === 0 ? (
        <NoResult store={store} />
      ) : (
        <div class="scroll" role="group" aria-label="Table of the best trials" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th scope="col" class="number">
                  No.
                </th>
                <th scope="col">Trial</th>
                {goals.objectives.map(({ metric }) => (
                  <th key={metric} scope="col" class="number">
                    {metric}
                  </th>
                ))}
                <th scope="col">
                  <span class="visually-hidden">Parameters</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {front.slice(0, MAX_ROWS).map((trial) => (
                <tr key={trial.id}>
                  <td class="number">{trial.number}</td>
                  <td>
                    <TrialLink trial={trial} />
                  </td>
                  {goals.objectives.map(({ metric }) => (
                    <td key={metric} class="number">
                      {metricText(trial, metric)}
                    </td>
                  ))}
                  <td>
                    <CopyButton
                      small
                      label={`Copy the parameters of trial ${trial.number} as Python`}
                      text={() => pythonLiteral(trial.parameters)}
                    />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {front.length > MAX_ROWS ? <p class="muted">and {front.length - MAX_ROWS} more</p> : null}
    </>
  );
}
