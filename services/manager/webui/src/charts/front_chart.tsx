// Scatter chart of two metrics, with the Pareto front, limits and what breaks them.

import { useMemo } from "preact/hooks";

import { LoadingPart } from "../components/loading_part";
import { count, formatValue } from "../format";
import { useApp } from "../state/context";
import { usePlaceValue } from "../state/place_value";
import { type Goals, frontOf, isFeasible } from "../state/objectives";
import type { Store } from "../state/store";
import type { Trial } from "../state/trial";
import { Plot, type PlotSeries } from "./plot";
import { TrialTip } from "./trial_tip";

interface Props {
  store: Store;
  goals: Goals;
  height: number;
  /** Whether the metrics of the axes can be selected. */
  selectable?: boolean;
}

export function FrontChart({ store, goals, height, selectable = true }: Props) {
  const { go } = useApp();
  const keys = [...store.metricKeys];
  const named = goals.objectives.map((one) => one.metric);
  const several = named.length > 1;
  const [chosenX, setX] = usePlaceValue("x", "", "");
  const [chosenY, setY] = usePlaceValue("y", "", "");
  const known = (column: string) => keys.find((one) => column === `m:${one}`);
  const x = known(chosenX) ?? named[0]!;
  const y = known(chosenY) ?? [...named, ...keys].find((one) => one !== x) ?? x;
  const trials = useMemo(
    () =>
      [...store.trials.values()]
        .filter((trial) => [x, y].every((key) => Number.isFinite(trial.metrics[key] ?? NaN)))
        .sort((a, b) => a.metrics[x]! - b.metrics[x]!),
    [store.version, x, y],
  );
  const front = useMemo(
    () => new Set(several ? frontOf(store.trials.values(), goals).map((one) => one.id) : []),
    [store.version, goals],
  );
  // Only with two objectives, both on an axis, is the front a line.
  const isLine = named.length === 2 && named.includes(x) && named.includes(y) && x !== y;
  const series = useMemo(
    () => seriesOf(trials, y, front, goals, isLine),
    [trials, y, front, goals, isLine],
  );
  if (trials.length === 0) return <p class="empty">No trial has reported both metrics yet.</p>;
  const infeasible = trials.filter((trial) => !isFeasible(trial, goals)).length;
  const limitsOf = (key: string) =>
    goals.limits.filter((one) => one.metric === key).map((one) => one.max);
  const aim = goals.objectives.map(({ metric, mode }) => `${mode} ${metric}`).join(", ");
  const summary =
    count(trials.length, "result") +
    (infeasible ? `, ${infeasible.toLocaleString("en")} beyond a limit` : "") +
    (several ? `; ${front.size.toLocaleString("en")} on the Pareto front (${aim})` : "") +
    ".";
  const select = (label: string, value: string, change: (key: string) => void) => (
    <label>
      {label}{" "}
      <select value={value} onChange={(event) => change(`m:${event.currentTarget.value}`)}>
        {keys.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    </label>
  );
  return (
    <>
      {selectable ? (
        <div class="tools">
          {select("X axis", x, setX)}
          {select("Y axis", y, setY)}
        </div>
      ) : null}
      <figure class="chart">
        <LoadingPart store={store} />
        <Plot
          label={`${y} over ${x}`}
          summary={summary}
          height={height}
          xTitle={x}
          yTitle={y}
          fractions
          limits={{ x: limitsOf(x), y: limitsOf(y) }}
          x={trials.map((trial) => trial.metrics[x]!)}
          series={series}
          tip={(_series, index) => (
            <TrialTip trial={trials[index]!}>
              {x} <b>{formatValue(trials[index]!.metrics[x])}</b>, {y}{" "}
              <b>{formatValue(trials[index]!.metrics[y])}</b>
            </TrialTip>
          )}
          onPick={(_series, index) => go({ trial: trials[index]!.id })}
        />
        <figcaption class="legend">
          <span>
            <i class="symbol" data-symbol="dot" /> result of a trial
          </span>
          {infeasible ? (
            <span>
              <i class="symbol" data-symbol="square" /> beyond a limit
            </span>
          ) : null}
          {several ? (
            <span>
              <i class={isLine ? "dash" : "dot front-dot"} /> Pareto front
            </span>
          ) : null}
          {goals.limits
            .filter((one) => one.metric === x || one.metric === y)
            .map(({ metric, max }) => (
              <span key={metric}>
                <i class="dash" data-colour="limit" /> limit {formatValue(max)} of {metric}
              </span>
            ))}
          <span>{summary}</span>
        </figcaption>
      </figure>
    </>
  );
}

function seriesOf(
  trials: Trial[],
  y: string,
  front: ReadonlySet<string>,
  goals: Goals,
  isLine: boolean,
): PlotSeries[] {
  const size = trials.length > 2000 ? 3.5 : 6;
  const chosen = (keep: (trial: Trial) => boolean) =>
    trials.map((trial) => (keep(trial) ? trial.metrics[y]! : null));
  return [
    {
      name: "infeasible",
      colour: "--s-failed",
      kind: "points",
      symbol: "square",
      y: chosen((trial) => !isFeasible(trial, goals)),
      size,
    },
    {
      name: "trials",
      colour: "--point",
      kind: "points",
      y: chosen((trial) => isFeasible(trial, goals)),
      size,
    },
    {
      name: "front",
      colour: "--best",
      kind: isLine ? "line" : "points",
      width: 1.5,
      size: 8,
      y: chosen((trial) => front.has(trial.id)),
    },
  ];
}
