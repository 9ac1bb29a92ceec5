// Scatter chart of two metrics of a search, with the models that no other one dominates.

import { useMemo, useState } from "preact/hooks";

import { TrialLink } from "../components/trial_link";
import { count, formatValue } from "../format";
import { frontOf, type Goal } from "../state/architectures";
import { useApp } from "../state/context";
import type { Store } from "../state/store";
import type { Trial } from "../state/trial";
import { Plot, type PlotSeries } from "./plot";
import { TrialTip } from "./trial_tip";

const DEFAULT = "default";

export function ArchitectureFront({
  store,
  minimize,
  height,
}: {
  store: Store;
  minimize: boolean;
  height: number;
}) {
  const { go } = useApp();
  const keys = [...store.metricKeys];
  const [chosenX, setX] = useState("");
  const [chosenY, setY] = useState("");
  const y = chosenY || DEFAULT;
  const x = chosenX || keys.find((one) => one !== y) || y;
  const [ways, setWays] = useState<Record<string, boolean>>({});
  // Latency, size and FLOPs are better when small; the result is what the search optimises.
  const isSmall = (key: string) => ways[key] ?? (key === DEFAULT ? minimize : true);
  const goals: [Goal, Goal] = [x, y].map((key) => ({ key, minimize: isSmall(key) })) as [
    Goal,
    Goal,
  ];
  const trials = useMemo(
    () =>
      [...store.trials.values()]
        .filter((trial) => [x, y].every((key) => Number.isFinite(trial.metrics[key] ?? NaN)))
        .sort((a, b) => a.metrics[x]! - b.metrics[x]!),
    [store.version, x, y],
  );
  const front = useMemo(() => frontOf(trials, goals), [trials, isSmall(x), isSmall(y)]);
  const series = useMemo(() => seriesOf(trials, y, new Set(front)), [trials, y, front]);
  if (trials.length === 0) return <p class="empty">No model has reported both metrics yet.</p>;
  const way = (key: string) => `${isSmall(key) ? "small" : "large"} ${titleOf(key)}`;
  const summary = `${count(trials.length, "model")}, ${count(front.length, "model")} on the Pareto front of ${way(x)} and ${way(y)}.`;
  return (
    <>
      <div class="tools">
        <AxisSelect label="X axis" value={x} keys={keys} onChange={setX} />
        <WaySelect
          label="X is better"
          small={isSmall(x)}
          onChange={(one) => setWays({ ...ways, [x]: one })}
        />
        <AxisSelect label="Y axis" value={y} keys={keys} onChange={setY} />
        <WaySelect
          label="Y is better"
          small={isSmall(y)}
          onChange={(one) => setWays({ ...ways, [y]: one })}
        />
      </div>
      <figure class="chart">
        <Plot
          label={`${titleOf(y)} over ${titleOf(x)}`}
          summary={summary}
          height={height}
          xTitle={titleOf(x)}
          yTitle={titleOf(y)}
          fractions
          x={trials.map((trial) => trial.metrics[x]!)}
          series={series}
          tip={(_series, index) => (
            <TrialTip trial={trials[index]!}>
              {titleOf(x)} <b>{formatValue(trials[index]!.metrics[x])}</b>, {titleOf(y)}{" "}
              <b>{formatValue(trials[index]!.metrics[y])}</b>
            </TrialTip>
          )}
          onPick={(_series, index) => go({ trial: trials[index]!.id })}
        />
        <figcaption class="legend">
          <span>
            <i class="dot" /> a model
          </span>
          <span>
            <i class="dot front-dot" /> on the Pareto front: no other model is better in one metric
            and as good in the other
          </span>
          <span>The axes begin near the smallest values, not at 0.</span>
        </figcaption>
      </figure>
      <div class="scroll">
        <table class="compare">
          <caption class="muted">{summary}</caption>
          <thead>
            <tr>
              <th scope="col">Model</th>
              <th scope="col" class="number">
                {titleOf(x)}
              </th>
              <th scope="col" class="number">
                {titleOf(y)}
              </th>
            </tr>
          </thead>
          <tbody>
            {front.map((trial) => (
              <tr key={trial.id}>
                <td>
                  #{trial.number} <TrialLink trial={trial} />
                </td>
                <td class="number">{formatValue(trial.metrics[x])}</td>
                <td class="number">{formatValue(trial.metrics[y])}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function titleOf(key: string): string {
  return key === DEFAULT ? "result" : key;
}

function AxisSelect({
  label,
  value,
  keys,
  onChange,
}: {
  label: string;
  value: string;
  keys: string[];
  onChange: (key: string) => void;
}) {
  return (
    <label>
      {label}{" "}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {keys.map((one) => (
          <option key={one} value={one}>
            {titleOf(one)}
          </option>
        ))}
      </select>
    </label>
  );
}

function WaySelect({
  label,
  small,
  onChange,
}: {
  label: string;
  small: boolean;
  onChange: (small: boolean) => void;
}) {
  return (
    <label>
      {label}{" "}
      <select
        value={small ? "small" : "large"}
        onChange={(event) => onChange(event.currentTarget.value === "small")}
      >
        <option value="small">small</option>
        <option value="large">large</option>
      </select>
    </label>
  );
}

function seriesOf(trials: Trial[], y: string, front: ReadonlySet<Trial>): PlotSeries[] {
  const size = trials.length > 2000 ? 3.5 : 6;
  return [
    {
      name: "models",
      colour: "--point",
      kind: "points",
      y: trials.map((trial) => trial.metrics[y]!),
      size,
    },
    {
      name: "front",
      colour: "--best",
      kind: "points",
      size: size + 4,
      y: trials.map((trial) => (front.has(trial) ? trial.metrics[y]! : null)),
    },
  ];
}
