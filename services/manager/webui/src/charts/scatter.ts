// Points of slices and of the scatter of two columns: places on both axes, kinds and shades.

import { type Goals, modeOf } from "../state/objectives";
import { type PointKind, outcomeOf, pointKind, ranksOf } from "../state/outcome";
import type { Trial } from "../state/trial";
import { type Axis, rankColour } from "./parallel_axes";
import type { PlotSeries } from "./plot_picture";
import { POINT_LOOKS, type PointLook } from "./series";

export interface Dot {
  trial: Trial;
  /** Positions on the axes, from 0 to 1; y is null for a trial without a value. */
  x: number;
  y: number | null;
  kind: PointKind;
  /** From 0 to 1; null: the trial has no shade. */
  shade: number | null;
}

/** Number of colours of the shades; more could not be distinguished. */
export const SHADES = 5;
/** Width over which points of one category are spread, as a share of the room of a category. */
const SPREAD = 0.14;
/** Fractional part of the golden ratio: its multiples spread evenly. */
const GOLDEN = 0.618034;

/** Return by how much a point is moved, so that those of one category do not hide each other. */
export function spreadOf(axis: Axis, number: number): number {
  if (axis.kind !== "category") return 0;
  const room = 1 / Math.max(1, axis.ticks.length - 1);
  return (((number * GOLDEN) % 1) - 0.5) * SPREAD * Math.min(room, 0.5);
}

/** Dots of a chart, and how many trials have no place in it. */
export interface Dots {
  /** In the order of x. */
  dots: Dot[];
  /** Trials without a value of the x axis. */
  omitted: number;
}

/** Return one dot per trial that `kinds` and the x axis know. */
export function dotsOf(
  trials: Iterable<Trial>,
  x: Axis,
  y: Axis,
  kinds: ReadonlyMap<string, PointKind>,
  shades: ReadonlyMap<string, number>,
): Dots {
  const dots: Dot[] = [];
  let omitted = 0;
  for (const trial of trials) {
    const kind = kinds.get(trial.id);
    if (kind === undefined) continue;
    const [across, up] = [x.position(trial), y.position(trial)];
    if (across === null) omitted += 1;
    else
      dots.push({
        trial,
        x: across + spreadOf(x, trial.number),
        y: up === null ? null : up + spreadOf(y, trial.number),
        kind,
        shade: shades.get(trial.id) ?? null,
      });
  }
  dots.sort((a, b) => a.x - b.x || a.trial.number - b.trial.number);
  return { dots, omitted };
}

/** Return how each ended trial is shown, by id. */
export function kindsOf(
  trials: Iterable<Trial>,
  goals: Goals,
  metric: string,
): Map<string, PointKind> {
  const found = new Map<string, PointKind>();
  for (const trial of trials) {
    const kind = pointKind(trial, goals, metric);
    if (kind !== null) found.set(trial.id, kind);
  }
  return found;
}

/** Return the place of each trial in the order of numbers, from 0 (first) to 1 (latest), by id. */
export function shadesByNumber(trials: Iterable<Trial>): Map<string, number> {
  const ordered = [...trials].sort((a, b) => a.number - b.number);
  const last = Math.max(1, ordered.length - 1);
  return new Map(ordered.map((trial, i) => [trial.id, i / last]));
}

/** Return the rank of each trial by a metric, from 0 (worst) to 1 (best), by id. */
export function shadesByRank(
  trials: Iterable<Trial>,
  goals: Goals,
  metric: string,
): Map<string, number> {
  const all = [...trials];
  const mode = modeOf(goals, metric);
  const ranks = ranksOf(
    all.map((trial) => outcomeOf(trial, metric, mode)?.value),
    mode,
  );
  const found = new Map<string, number>();
  ranks.forEach((rank, i) => {
    if (rank !== null) found.set(all[i]!.id, rank);
  });
  return found;
}

/** Return the series of dots: those without a value at the lower edge, results above the others. */
export function dotSeries(dots: readonly Dot[], theme: "light" | "dark"): PlotSeries[] {
  const size = dots.length > 3000 ? 3 : dots.length > 600 ? 4.5 : 7;
  const series: PlotSeries[] = [];
  const add = (keep: (dot: Dot) => boolean, look: PointLook, edge = false) => {
    if (!dots.some(keep)) return;
    const y = dots.map((dot) => (keep(dot) ? (edge ? 0 : dot.y) : null));
    series.push({ kind: "points", size, y, ...look, ...(edge ? { edge } : {}) });
  };
  add((dot) => dot.y === null, { ...POINT_LOOKS.none, name: "none" }, true);
  for (const kind of ["intermediate", "infeasible"] as const)
    add((dot) => dot.y !== null && dot.kind === kind, { ...POINT_LOOKS[kind], name: kind });
  // With a value on both axes, a trial without a result has a cross at its place.
  add((dot) => dot.y !== null && dot.kind === "none", { ...POINT_LOOKS.none, name: "no result" });
  const isResult = (dot: Dot) => dot.y !== null && dot.kind === "result";
  add((dot) => isResult(dot) && dot.shade === null, { ...POINT_LOOKS.result, name: "result" });
  for (let shade = 0; shade < SHADES; shade += 1)
    add((dot) => isResult(dot) && dot.shade !== null && shadeIndex(dot.shade) === shade, {
      name: `result ${shade}`,
      colour: rankColour(shade / (SHADES - 1), theme),
    });
  return series;
}

/** Return the colour of a shade, from 0 to `SHADES` - 1. */
export function shadeIndex(shade: number): number {
  return Math.min(SHADES - 1, Math.floor(shade * SHADES));
}
