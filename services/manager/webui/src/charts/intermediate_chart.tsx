// Line chart of intermediate results by trial, with a filter.

import { useEffect, useMemo, useReducer, useState } from "preact/hooks";

import { count, formatValue } from "../format";
import { useApp } from "../state/context";
import { usePlaceValue } from "../state/place_value";
import type { Store } from "../state/store";
import { type Trial } from "../state/trial";
import { type Goals, type Mode, modeOf } from "../state/objectives";
import { ranksOf, standingOf } from "../state/outcome";
import { DirectionSelect } from "../components/direction_select";
import { LoadingPart } from "../components/loading_part";
import { rankColour } from "./parallel_axes";
import { CurveStore } from "./curve_store";
import { Plot, type PlotSeries } from "./plot";
import {
  type CurveFilter,
  type Curves,
  LINE_COLOURS,
  matchesCurve,
  parseCurveFilter,
} from "./series";
import { ColourScale } from "./colour_scale";
import { TrialTip } from "./trial_tip";

/** Maximum number of lines; more would hide each other. */
const MAX_LINES = 300;
type Selection = "best" | "latest";

/** Return the curves of all trials; re-renders the caller as they grow. */
export function useCurves(store: Store): CurveStore {
  const [, again] = useReducer((number: number) => number + 1, 0);
  const curves = useMemo(() => new CurveStore(store, () => again(null)), [store]);
  useEffect(() => curves.open(), [curves, store.loads]);
  return curves;
}

export function IntermediateChart({
  store,
  goals,
  choose,
  height,
}: {
  store: Store;
  goals: Goals;
  choose: (metric: string, mode: Mode | "") => void;
  height: number;
}) {
  const source = useCurves(store);
  const id = store.profile?.id ?? "";
  const [wanted, setKey] = usePlaceValue("metric", `metric:${id}`, goals.objectives[0]!.metric);
  const key = source.keys.has(wanted) ? wanted : ([...source.keys][0] ?? wanted);
  const mode = modeOf(goals, key);
  const [selection, setSelection] = useState<Selection>("best");
  const [step, setStep] = usePlaceValue("step", "", "");
  const [low, setLow] = usePlaceValue("low", "", "");
  const [high, setHigh] = usePlaceValue("high", "", "");
  const filter = parseCurveFilter(step, low, high);
  const curves = useMemo(() => source.curves(key), [source.version, key]);
  const matching = useMemo(
    () => chosen(store, curves, filter),
    [curves, step, low, high, store.version],
  );
  const trials = useMemo(
    () => first(matching, selection, key, mode),
    [matching, selection, key, mode],
  );
  return (
    <>
      <div class="tools">
        {source.keys.size > 1 ? (
          <label>
            Key{" "}
            <select value={key} onChange={(event) => setKey(event.currentTarget.value)}>
              {[...source.keys].map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
        ) : null}
        <DirectionSelect goals={goals} metric={key} choose={choose} />
        <fieldset class="inline">
          <legend>Only trials whose</legend>
          <label>
            #{" "}
            <input
              class="narrow"
              inputMode="numeric"
              placeholder="4"
              aria-label="Number of the intermediate result, from 1"
              value={step}
              onInput={(event) => setStep(event.currentTarget.value)}
            />
          </label>
          <label>
            is from{" "}
            <input
              class="narrow"
              inputMode="decimal"
              placeholder="0.8"
              aria-label="Smallest value"
              value={low}
              onInput={(event) => setLow(event.currentTarget.value)}
            />
          </label>
          <label>
            to{" "}
            <input
              class="narrow"
              inputMode="decimal"
              placeholder="1"
              aria-label="Largest value"
              value={high}
              onInput={(event) => setHigh(event.currentTarget.value)}
            />
          </label>
        </fieldset>
        {matching.length > MAX_LINES ? (
          <label>
            Show the{" "}
            <select
              value={selection}
              onChange={(event) => setSelection(event.currentTarget.value as Selection)}
            >
              <option value="best">best {MAX_LINES}</option>
              <option value="latest">latest {MAX_LINES}</option>
            </select>
          </label>
        ) : null}
        <span class="muted" role="status" data-count={matching.length}>
          {count(matching.length, "trial")}
          {trials.length < matching.length ? `, ${trials.length} drawn` : ""}
        </span>
      </div>
      <LoadingPart store={store} />
      {source.state === "loading" && trials.length > 0 ? (
        <p class="hint loading-part" role="status">
          Intermediate results are loading; the lines are not complete.
        </p>
      ) : null}
      {source.problem ? (
        <p class="hint" role="alert">
          {source.problem}
        </p>
      ) : null}
      {source.truncated ? (
        <p class="hint">
          There are more intermediate results than the page can hold; it shows the first ones.
        </p>
      ) : null}
      {trials.length === 0 ? (
        <p class="empty">
          {source.state === "loading"
            ? "Loading intermediate results…"
            : filter
              ? "No trial matches."
              : "No trial has reported intermediate results."}
        </p>
      ) : (
        <CurveLines
          trials={trials}
          curves={curves}
          metric={key}
          mode={mode}
          height={height}
          title={key === "default" ? "intermediate result" : key}
        />
      )}
    </>
  );
}

function chosen(store: Store, curves: Curves, filter: CurveFilter | null): Trial[] {
  const found: Trial[] = [];
  for (const [id, curve] of curves) {
    const trial = store.trials.get(id);
    if (trial && matchesCurve(curve, filter)) found.push(trial);
  }
  return found.sort((a, b) => a.number - b.number);
}

/** Return the trials to draw, worst first, so that the best are on top. */
function first(trials: Trial[], selection: Selection, key: string, mode: Mode | null): Trial[] {
  const ranks = rankMap(trials, key, mode);
  const worstFirst = (some: Trial[]) =>
    [...some].sort((a, b) => (ranks.get(a.id) ?? -1) - (ranks.get(b.id) ?? -1));
  return selection === "latest"
    ? worstFirst(trials.slice(-MAX_LINES))
    : worstFirst(trials).slice(-MAX_LINES);
}

/** Return the rank of each trial, from 0 (worst) to 1 (best); null without a number. */
function rankMap(trials: Trial[], key: string, mode: Mode | null): Map<string, number | null> {
  const ranks = ranksOf(
    trials.map((trial) => standingOf(trial, key, mode)),
    mode,
  );
  return new Map(trials.map((trial, i) => [trial.id, ranks[i]!]));
}

interface CurveLinesProps {
  trials: Trial[];
  curves: Curves;
  metric: string;
  mode: Mode | null;
  height: number;
  title: string;
}

/** Line chart of the given trials; better trials have stronger colours. */
export function CurveLines({ trials, curves, metric, mode, height, title }: CurveLinesProps) {
  const { go, theme } = useApp();
  const longest = trials.reduce(
    (most, trial) => Math.max(most, curves.get(trial.id)?.length ?? 0),
    0,
  );
  const x = useMemo(() => Array.from({ length: longest }, (_, i) => i + 1), [longest]);
  const series = useMemo(() => {
    const ranks = rankMap(trials, metric, mode);
    const colour = (trial: Trial) => {
      const rank = ranks.get(trial.id) ?? null;
      return rank === null ? "--strong-line" : rankColour(rank, theme, 0.85);
    };
    return trials.map((trial): PlotSeries => {
      const curve = curves.get(trial.id) ?? [];
      return {
        name: trial.id,
        kind: "line",
        width: 1.5,
        colour:
          trials.length <= LINE_COLOURS.length
            ? LINE_COLOURS[trials.indexOf(trial)]!
            : colour(trial),
        y: x.map((_, i) => (Number.isFinite(curve[i] ?? NaN) ? curve[i]! : null)),
        ...(longest <= 40 && trials.length <= LINE_COLOURS.length ? { size: 5 } : {}),
      };
    });
  }, [trials, curves, x, theme, metric, mode]);
  const summary = `${count(trials.length, "trial")} with up to ${count(longest, "intermediate result")}.`;
  return (
    <figure class="chart">
      <Plot
        label="Intermediate results"
        summary={summary}
        x={x}
        series={series}
        height={height}
        xTitle="number of the intermediate result"
        yTitle={title}
        tip={(s, index) => (
          <TrialTip trial={trials[s]!}>
            #{index + 1}: <b>{formatValue(series[s]!.y[index])}</b>
          </TrialTip>
        )}
        onPick={(s) => go({ trial: trials[s]!.id })}
      />
      {trials.length <= LINE_COLOURS.length ? (
        <figcaption class="legend">
          {trials.map((trial, i) => (
            <span key={trial.id}>
              <i class="dash" style={{ background: `var(${LINE_COLOURS[i]})` }} /> trial{" "}
              {trial.number} ({trial.id})
            </span>
          ))}
        </figcaption>
      ) : (
        <figcaption class="legend">
          <ColourScale mode={mode} />
          <span class="muted">grey: a trial without a number to rank it by</span>
        </figcaption>
      )}
    </figure>
  );
}
