// One line of intermediate results per trial, with a filter.

import { useEffect, useMemo, useReducer, useState } from "preact/hooks";

import { count, show } from "../format";
import { useApp } from "../state/context";
import type { Store } from "../state/store";
import { type Trial } from "../state/trial";
import { rankColour } from "./parallel_axes";
import { CurveStore } from "./curve_store";
import { Plot, type PlotSeries } from "./plot";
import { type CurveRule, type Curves, curveRule, obeys } from "./series";
import { Scale } from "./colour_scale";
import { TrialTip } from "./trial_tip";

/** Lines drawn at once; more would only hide each other. */
const MOST_LINES = 300;
type Which = "best" | "latest";

/** Return the curves of all trials; the caller is drawn again as they grow. */
export function useCurves(store: Store): CurveStore {
  const [, again] = useReducer((number: number) => number + 1, 0);
  const curves = useMemo(() => new CurveStore(store, () => again(null)), [store]);
  useEffect(() => curves.open(), [curves]);
  return curves;
}

export function IntermediateChart({
  store,
  minimize,
  height,
}: {
  store: Store;
  minimize: boolean;
  height: number;
}) {
  const source = useCurves(store);
  const [key, setKey] = useState("default");
  const [which, setWhich] = useState<Which>("best");
  const [place, setPlace] = useState("");
  const [low, setLow] = useState("");
  const [high, setHigh] = useState("");
  const rule = curveRule(place, low, high);
  const curves = useMemo(() => source.curves(key), [source.version, key]);
  const matching = useMemo(
    () => chosen(store, curves, rule),
    [curves, place, low, high, store.version],
  );
  const trials = useMemo(() => first(matching, which, minimize), [matching, which, minimize]);
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
        <fieldset class="inline">
          <legend>Only trials whose</legend>
          <label>
            #{" "}
            <input
              class="narrow"
              inputMode="numeric"
              placeholder="4"
              aria-label="Number of the intermediate result, from 1"
              value={place}
              onInput={(event) => setPlace(event.currentTarget.value)}
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
        {matching.length > MOST_LINES ? (
          <label>
            Show the{" "}
            <select
              value={which}
              onChange={(event) => setWhich(event.currentTarget.value as Which)}
            >
              <option value="best">best {MOST_LINES}</option>
              <option value="latest">latest {MOST_LINES}</option>
            </select>
          </label>
        ) : null}
        <span class="muted" role="status" data-count={matching.length}>
          {count(matching.length, "trial")}
          {trials.length < matching.length ? `, ${trials.length} drawn` : ""}
        </span>
      </div>
      {source.problem ? (
        <p class="hint" role="alert">
          {source.problem}
        </p>
      ) : null}
      {source.cut ? (
        <p class="hint">
          There are more intermediate results than the page keeps; the first ones are shown.
        </p>
      ) : null}
      {trials.length === 0 ? (
        <p class="empty">
          {source.state === "loading"
            ? "Loading intermediate results…"
            : rule
              ? "No trial matches."
              : "No trial has reported intermediate results."}
        </p>
      ) : (
        <CurveLines
          trials={trials}
          curves={curves}
          minimize={minimize}
          height={height}
          title={key === "default" ? "intermediate result" : key}
        />
      )}
    </>
  );
}

function chosen(store: Store, curves: Curves, rule: CurveRule | null): Trial[] {
  const found: Trial[] = [];
  for (const [id, curve] of curves) {
    const trial = store.trials.get(id);
    if (trial && obeys(curve, rule)) found.push(trial);
  }
  return found.sort((a, b) => a.number - b.number);
}

/** Return the trials to draw, worst first, so that the best lie on top. */
function first(trials: Trial[], which: Which, minimize: boolean): Trial[] {
  const loss = (trial: Trial) =>
    trial.value === null ? Number.MAX_VALUE : minimize ? trial.value : -trial.value;
  const worstFirst = (some: Trial[]) => [...some].sort((a, b) => loss(b) - loss(a));
  return which === "latest"
    ? worstFirst(trials.slice(-MOST_LINES))
    : worstFirst(trials).slice(-MOST_LINES);
}

interface CurveLinesProps {
  trials: Trial[];
  curves: Curves;
  minimize: boolean;
  height: number;
  title: string;
}

/** Lines of some trials; the better a trial, the stronger its colour. */
export function CurveLines({ trials, curves, minimize, height, title }: CurveLinesProps) {
  const { go, theme } = useApp();
  const longest = trials.reduce(
    (most, trial) => Math.max(most, curves.get(trial.id)?.length ?? 0),
    0,
  );
  const x = useMemo(() => Array.from({ length: longest }, (_, i) => i + 1), [longest]);
  const series = useMemo(() => {
    const order = [...trials].sort(
      (a, b) => (minimize ? 1 : -1) * ((a.value ?? NaN) - (b.value ?? NaN)),
    );
    const ranks = new Map(
      order.map((trial, i) => [trial.id, 1 - i / Math.max(1, order.length - 1)]),
    );
    return trials.map((trial): PlotSeries => {
      const curve = curves.get(trial.id) ?? [];
      return {
        name: trial.id,
        kind: "line",
        width: 1.5,
        colour:
          trials.length <= FEW.length
            ? FEW[trials.indexOf(trial)]!
            : rankColour(ranks.get(trial.id) ?? 0, theme, 0.85),
        y: x.map((_, i) => (Number.isFinite(curve[i] ?? NaN) ? curve[i]! : null)),
        ...(longest <= 40 && trials.length <= FEW.length ? { size: 5 } : {}),
      };
    });
  }, [trials, curves, x, theme, minimize]);
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
            #{index + 1}: <b>{show(series[s]!.y[index])}</b>
          </TrialTip>
        )}
        onPick={(s) => go({ trial: trials[s]!.id })}
      />
      {trials.length <= FEW.length ? (
        <figcaption class="legend">
          {trials.map((trial, i) => (
            <span key={trial.id}>
              <i class="dash" style={{ background: `var(${FEW[i]})` }} /> trial {trial.number} (
              {trial.id})
            </span>
          ))}
        </figcaption>
      ) : (
        <figcaption class="legend">
          <Scale />
        </figcaption>
      )}
    </figure>
  );
}

/** Colours that differ for everybody, for up to so many lines (after Okabe and Ito). */
const FEW = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6"];
