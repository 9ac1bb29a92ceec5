// Scatter chart of two metrics, with the Pareto front.

import { useMemo, useState } from "preact/hooks";

import type { ParetoFront } from "../api/records";
import { count, formatValue } from "../format";
import { useApp } from "../state/context";
import type { Store } from "../state/store";
import type { Trial } from "../state/trial";
import { useAnalysis } from "./analysis";
import { Plot, type PlotSeries } from "./plot";
import { TrialTip } from "./trial_tip";

export function FrontChart({ store, height }: { store: Store; height: number }) {
  const { go } = useApp();
  const keys = [...store.metricKeys];
  const hasObjectives = Array.isArray(store.profile?.params["objectives"]);
  const { analysis, problem } = useAnalysis<ParetoFront>(
    store,
    hasObjectives ? "pareto" : "",
    store.counts["SUCCEEDED"] ?? 0,
  );
  const named = analysis?.objectives.map((one) => one.metric) ?? [];
  const [chosenX, setX] = useState("");
  const [chosenY, setY] = useState("");
  const x = chosenX || named[0] || keys[0]!;
  const y = chosenY || named.find((one) => one !== x) || keys.find((one) => one !== x) || x;
  const trials = useMemo(
    () =>
      [...store.trials.values()]
        .filter((trial) => [x, y].every((key) => Number.isFinite(trial.metrics[key] ?? NaN)))
        .sort((a, b) => a.metrics[x]! - b.metrics[x]!),
    [store.version, x, y],
  );
  const front = useMemo(() => new Set(analysis?.front.map((one) => one.trialJobId)), [analysis]);
  const series = useMemo(() => seriesOf(trials, y, front), [trials, y, front]);
  if (trials.length === 0) return <p class="empty">No trial has reported both metrics yet.</p>;
  const goals = analysis?.objectives.map(({ metric, mode }) => `${mode} ${metric}`).join(", ");
  const onFront = hasObjectives
    ? `; ${count(front.size, "trial")} on the Pareto front${goals ? ` (${goals})` : ""}`
    : "";
  const summary = `${count(trials.length, "trial")}${onFront}.`;
  const select = (label: string, value: string, change: (key: string) => void) => (
    <label>
      {label}{" "}
      <select value={value} onChange={(event) => change(event.currentTarget.value)}>
        {keys.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    </label>
  );
  return (
    <>
      <div class="tools">
        {select("X axis", x, setX)}
        {select("Y axis", y, setY)}
      </div>
      {problem ? (
        <p class="hint" role="status">
          {problem}
        </p>
      ) : null}
      <figure class="chart">
        <Plot
          label={`${y} over ${x}`}
          summary={summary}
          height={height}
          xTitle={x}
          yTitle={y}
          fractions
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
            <i class="dot" /> a trial
          </span>
          {hasObjectives ? (
            <span>
              <i class="dash" /> Pareto front
            </span>
          ) : null}
          <span>{summary}</span>
        </figcaption>
      </figure>
    </>
  );
}

function seriesOf(trials: Trial[], y: string, front: ReadonlySet<string>): PlotSeries[] {
  return [
    {
      name: "trials",
      colour: "--point",
      kind: "points",
      y: trials.map((trial) => trial.metrics[y]!),
      size: trials.length > 2000 ? 3.5 : 6,
    },
    {
      name: "front",
      colour: "--best",
      kind: "line",
      width: 1.5,
      size: 8,
      y: trials.map((trial) => (front.has(trial.id) ? trial.metrics[y]! : null)),
    },
  ];
}
