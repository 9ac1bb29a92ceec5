// Chart of the duration of each trial.

import { useMemo } from "preact/hooks";

import { count, formatDuration, formatState } from "../format";
import { useApp, useClock } from "../state/context";
import type { Store } from "../state/store";
import { LIVE, TRIAL_STATES } from "../state/trial";
import { Plot, type PlotSeries } from "./plot";
import { LoadingPart } from "../components/loading_part";
import { durationUnit } from "./scales";
import { durationsOf, median } from "./series";
import { patternOf } from "./timeline";
import { TrialTip } from "./trial_tip";

/** Number of bars up to which they are wide enough for patterns. */
const MAX_PATTERNS = 150;

export function DurationChart({ store, height }: { store: Store; height: number }) {
  const { go } = useApp();
  const running = [...store.trials.values()].some(
    (trial) => LIVE.has(trial.state) && trial.record.startTime,
  );
  const now = useClock(running);
  const second = running ? Math.floor(now / 1000) : 0;
  const { trials, x, y } = useMemo(
    () => durationsOf(store.trials.values(), now),
    [store.version, second],
  );
  const states = useMemo(
    () => TRIAL_STATES.filter((state) => trials.some((trial) => trial.state === state)),
    [trials],
  );
  const unit = durationUnit(y.reduce((most, value) => Math.max(most, value), 0));
  const series = useMemo(
    () =>
      states.map((state): PlotSeries => ({
        name: state,
        colour: `--s-${state.toLowerCase()}`,
        kind: "bars",
        pattern: trials.length > MAX_PATTERNS ? "solid" : patternOf(state),
        y: y.map((value, i) => (trials[i]!.state === state ? value / unit.size : null)),
      })),
    [trials, states, unit.size],
  );
  if (trials.length === 0) return <p class="empty">No trial has started yet.</p>;
  const longest = y.reduce((most, value, i) => (value > y[most]! ? i : most), 0);
  const summary =
    `${count(trials.length, "trial")}. Median ${formatDuration(median(y))}, ` +
    `maximum ${formatDuration(y[longest]!)} (trial ${trials[longest]!.number}).`;
  return (
    <figure class="chart">
      <LoadingPart store={store} />
      <Plot
        label="Duration of each trial"
        summary={summary}
        x={x}
        series={series}
        height={height}
        xTitle="trial"
        yTitle={unit.name}
        fromZero
        tip={(_series, index) => (
          <TrialTip trial={trials[index]!}>
            duration <b>{formatDuration(y[index]!)}</b>
          </TrialTip>
        )}
        onPick={(_series, index) => go({ trial: trials[index]!.id })}
      />
      <figcaption class="legend">
        {states.map((state) => (
          <span key={state}>
            <i
              class="bar-key"
              data-state={state}
              data-pattern={trials.length > MAX_PATTERNS ? "solid" : patternOf(state)}
            />{" "}
            {formatState(state)}
          </span>
        ))}
        <span class="muted">{summary}</span>
      </figcaption>
    </figure>
  );
}
