// Two metrics of each trial, and the trials that no other one beats in every objective.

import { useMemo, useState } from "preact/hooks";

import type { ParetoFront } from "../api/records";
import { count, show } from "../format";
import { useApp } from "../state/context";
import type { Store } from "../state/store";
import type { Trial } from "../state/trial";
import { useAsked } from "./analysis";
import { Plot, type PlotSeries } from "./plot";
import { TrialTip } from "./trial_tip";

export function FrontChart({ store, height }: { store: Store; height: number }) {
  const { go } = useApp();
  const keys = [...store.metricKeys];
  const wanted = Array.isArray(store.profile?.params["objectives"]);
  const { answer, problem } = useAsked<ParetoFront>(
    store,
    wanted ? "pareto" : "",
    store.counts["SUCCEEDED"] ?? 0,
  );
  const named = answer?.objectives.map((one) => one.metric) ?? [];
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
  const front = useMemo(() => new Set(answer?.front.map((one) => one.trialJobId)), [answer]);
  const series = useMemo(() => seriesOf(trials, y, front), [trials, y, front]);
  if (trials.length === 0) return <p class="empty">No trial has reported both metrics yet.</p>;
  const way = answer?.objectives
    .map(({ metric, mode }) => `${metric} ${mode === "minimize" ? "small" : "large"}`)
    .join(", ");
  const unbeaten = wanted
    ? `; ${count(front.size, "trial")} that no other one beats${way ? ` (${way})` : ""}`
    : "";
  const summary = `${count(trials.length, "trial")}${unbeaten}.`;
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
        {select("Across", x, setX)}
        {select("Up", y, setY)}
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
              {x} <b>{show(trials[index]!.metrics[x])}</b>, {y}{" "}
              <b>{show(trials[index]!.metrics[y])}</b>
            </TrialTip>
          )}
          onPick={(_series, index) => go({ trial: trials[index]!.id })}
        />
        <figcaption class="legend">
          <span>
            <i class="dot" /> a trial
          </span>
          {wanted ? (
            <span>
              <i class="dash" /> not beaten in every objective
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
