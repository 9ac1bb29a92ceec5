// Chart of results by trial, with the best so far.

import { useMemo } from "preact/hooks";

import { count, formatValue } from "../format";
import { useApp } from "../state/context";
import type { Store } from "../state/store";
import { NoResult } from "../components/no_result";
import { Plot, type PlotSeries } from "./plot";
import { type Results, resultsOf } from "./series";
import { TrialTip } from "./trial_tip";

interface Props {
  store: Store;
  metric: string;
  minimize: boolean;
  height: number;
  logY?: boolean;
  /** Whether to draw the best result so far. */
  best?: boolean;
  /** Whether to add the table of improvements. */
  table?: boolean;
}

export function ResultChart({
  store,
  metric,
  minimize,
  height,
  logY = false,
  best = true,
  table = false,
}: Props) {
  const { go } = useApp();
  const results = useMemo(
    () => resultsOf(store.trials.values(), metric, minimize),
    [store.version, metric, minimize],
  );
  const series = useMemo(() => seriesOf(results, best), [results, best]);
  if (results.trials.length === 0) return <NoResult store={store} />;
  const summary = describe(results, minimize);
  return (
    <figure class="chart">
      <Plot
        label="Result of each trial"
        summary={summary}
        x={results.x}
        series={series}
        height={height}
        logY={logY && Math.min(...results.best, ...results.y.slice(0, 1000)) > 0}
        xTitle="trial"
        yTitle={metric === "default" ? "result" : metric}
        tip={(_series, index) => (
          <TrialTip trial={results.trials[index]!}>
            {metric === "default" ? "result" : metric} <b>{formatValue(results.y[index])}</b>
          </TrialTip>
        )}
        onPick={(_series, index) => go({ trial: results.trials[index]!.id })}
      />
      <figcaption class="legend">
        <span>
          <i class="dot" data-colour="point" /> result of a trial
        </span>
        {best ? (
          <span>
            <i class="dash" data-colour="best" /> best so far ({minimize ? "smallest" : "largest"})
          </span>
        ) : null}
      </figcaption>
      {table ? <Improvements results={results} /> : null}
    </figure>
  );
}

function seriesOf(results: Results, best: boolean): PlotSeries[] {
  const crowd = results.x.length;
  const size = crowd > 3000 ? 3 : crowd > 600 ? 4.5 : 7;
  const points: PlotSeries = {
    name: "result",
    colour: "--point",
    kind: "points",
    y: results.y,
    size,
  };
  if (!best) return [points];
  const improved: (number | null)[] = results.y.map(() => null);
  for (const i of results.improvements) improved[i] = results.y[i]!;
  return [
    points,
    {
      name: "best so far",
      colour: "--best",
      kind: "step",
      y: results.best,
      width: 2,
      pickable: false,
    },
    {
      name: "improvement",
      colour: "--best",
      kind: "points",
      y: improved,
      size: Math.max(6, size + 1),
    },
  ];
}

function describe(results: Results, minimize: boolean): string {
  const last = results.improvements.at(-1)!;
  const trial = results.trials[last]!;
  return (
    `${count(results.trials.length, "result")}. ` +
    `Best (${minimize ? "smallest" : "largest"}): ${formatValue(results.best.at(-1))} in trial ${trial.number}; ` +
    `${count(results.improvements.length, "improvement")}.`
  );
}

function Improvements({ results }: { results: Results }) {
  const { href, go } = useApp();
  return (
    <details>
      <summary>Improvements as a table ({results.improvements.length})</summary>
      <table>
        <thead>
          <tr>
            <th scope="col" class="number">
              No.
            </th>
            <th scope="col">Trial</th>
            <th scope="col" class="number">
              Result
            </th>
          </tr>
        </thead>
        <tbody>
          {results.improvements.map((i) => {
            const trial = results.trials[i]!;
            return (
              <tr key={trial.id}>
                <td class="number">{trial.number}</td>
                <td>
                  <a
                    href={href({ trial: trial.id })}
                    onClick={(event) => {
                      event.preventDefault();
                      go({ trial: trial.id });
                    }}
                  >
                    {trial.id}
                  </a>
                </td>
                <td class="number">{formatValue(results.y[i])}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </details>
  );
}
