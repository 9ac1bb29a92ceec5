// Chart of results by trial, with the best so far.

import { useMemo } from "preact/hooks";

import { count, formatValue } from "../format";
import { useApp } from "../state/context";
import { type Goals, modeOf } from "../state/objectives";
import type { PointKind } from "../state/outcome";
import type { Store } from "../state/store";
import { NoResult } from "../components/no_result";
import { LoadingPart } from "../components/loading_part";
import { TrialLink } from "../components/trial_link";
import { Plot, type PlotSeries } from "./plot";
import { logNote, logSplit } from "./scales";
import { PointLegend } from "./point_legend";
import { POINT_LOOKS, POINT_ORDER, type Results, resultsOf } from "./series";
import { TrialTip } from "./trial_tip";

interface Props {
  store: Store;
  metric: string;
  goals: Goals;
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
  goals,
  height,
  logY = false,
  best = true,
  table = false,
}: Props) {
  const { go } = useApp();
  const results = useMemo(
    () => resultsOf(store.trials.values(), goals, metric),
    [store.version, metric, goals],
  );
  const mode = modeOf(goals, metric);
  const hasBest = best && mode !== null;
  const limits = goals.limits.filter((one) => one.metric === metric);
  const series = useMemo(() => seriesOf(results, hasBest), [results, hasBest]);
  if (results.trials.length === 0) return <NoResult store={store} />;
  const split = logSplit(results.y);
  const isLog = logY && split.possible;
  return (
    <figure class="chart">
      <LoadingPart store={store} />
      <Plot
        label="Result of each trial"
        summary={describe(results, goals, metric)}
        x={results.x}
        series={series}
        height={height}
        logY={isLog}
        limits={{ y: limits.map((one) => one.max) }}
        xTitle="trial"
        yTitle={metric === "default" ? "result" : metric}
        tip={(_series, index) => (
          <TrialTip trial={results.trials[index]!}>
            {NAMES[results.kinds[index]!](metric)} <b>{formatValue(results.y[index])}</b>
          </TrialTip>
        )}
        onPick={(_series, index) => go({ trial: results.trials[index]!.id })}
      />
      <figcaption class="legend">
        <PointLegend kinds={results.kinds} />
        {hasBest && results.improvements.length ? (
          <span>
            <i class="dash" data-colour="best" /> best so far (
            {mode === "minimize" ? "smallest" : "largest"})
          </span>
        ) : null}
        {limits.map(({ max }) => (
          <span key={max}>
            <i class="dash" data-colour="limit" /> limit {formatValue(max)}
          </span>
        ))}
        {logY && logNote(split) ? <span role="status">{logNote(split)}</span> : null}
      </figcaption>
      {table && results.improvements.length ? <Improvements results={results} /> : null}
    </figure>
  );
}

const NAMES: Record<PointKind, (metric: string) => string> = {
  result: (metric) => (metric === "default" ? "result" : metric),
  infeasible: (metric) => `${NAMES.result(metric)} (beyond a limit)`,
  intermediate: (metric) => `best intermediate ${NAMES.result(metric)}`,
  none: (metric) => NAMES.result(metric),
};

function seriesOf(results: Results, hasBest: boolean): PlotSeries[] {
  const crowd = results.x.length;
  const size = crowd > 3000 ? 3 : crowd > 600 ? 4.5 : 7;
  const points = POINT_ORDER.filter((kind) => results.kinds.includes(kind)).map(
    (kind): PlotSeries => {
      const { colour, symbol } = POINT_LOOKS[kind];
      return {
        name: kind,
        colour,
        kind: "points",
        size,
        ...(symbol ? { symbol } : {}),
        ...(kind === "none" ? { edge: true } : {}),
        // A mark at the edge needs a place, not a value.
        y: results.y.map((y, i) => (results.kinds[i] !== kind ? null : kind === "none" ? 0 : y)),
      };
    },
  );
  if (!hasBest) return points;
  const improved: (number | null)[] = results.y.map(() => null);
  for (const i of results.improvements) improved[i] = results.y[i]!;
  return [
    ...points,
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

function describe(results: Results, goals: Goals, metric: string): string {
  const mode = modeOf(goals, metric);
  const many = (kind: PointKind) => results.kinds.filter((one) => one === kind).length;
  const parts = [count(many("result"), "result")];
  if (many("infeasible")) parts.push(`${count(many("infeasible"), "result")} beyond a limit`);
  if (many("intermediate"))
    parts.push(`${count(many("intermediate"), "trial")} with intermediate results only`);
  if (many("none")) parts.push(`${count(many("none"), "trial")} without a value`);
  const last = results.improvements.at(-1);
  if (last === undefined) return `${parts.join(", ")}.`;
  return (
    `${parts.join(", ")}. Best (${mode === "minimize" ? "smallest" : "largest"}): ` +
    `${formatValue(results.best.at(-1))} in trial ${results.trials[last]!.number}; ` +
    `${count(results.improvements.length, "improvement")}.`
  );
}

function Improvements({ results }: { results: Results }) {
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
                  <TrialLink trial={trial} />
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
