// Data of the charts: pure functions, tested without a canvas.

import { type Goals, modeOf } from "../state/objectives";
import { type PointKind, outcomeOf, pointKind } from "../state/outcome";
import { type Trial, durationOf } from "../state/trial";

/** Colours of a few lines, distinct with any colour vision (after Okabe and Ito). */
export const LINE_COLOURS = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6"] as const;

/** Colour and shape of points, which differ without colour, and their name in a legend. */
export interface PointLook {
  colour: string;
  symbol?: "ring" | "cross" | "square";
  name: string;
}

export const POINT_LOOKS: Record<PointKind, PointLook> = {
  result: { colour: "--point", name: "result of a trial" },
  infeasible: { colour: "--s-failed", symbol: "square", name: "result beyond a limit" },
  intermediate: {
    colour: "--s-early_stopped",
    symbol: "ring",
    name: "best intermediate result of a trial without a result",
  },
  none: { colour: "--s-failed", symbol: "cross", name: "ended without a value" },
};
/** Kinds in the order in which they are drawn: results above the others. */
export const POINT_ORDER: readonly PointKind[] = ["none", "intermediate", "infeasible", "result"];

export interface Results {
  /** Ended trials and those with a result, by number. */
  trials: Trial[];
  /** Sequence numbers of the trials. */
  x: number[];
  /** The number that is drawn; null: the trial has none. */
  y: (number | null)[];
  kinds: PointKind[];
  /** The best feasible result up to and including each trial; null before the first. */
  best: (number | null)[];
  /** Indices of the trials that were better than all previous ones. */
  improvements: number[];
}

/**
 * Return what the chart of results shows: results, best intermediate results of trials without
 * one, and trials that have neither. Only feasible results count for the best one.
 */
export function resultsOf(trials: Iterable<Trial>, goals: Goals, metric: string): Results {
  const mode = modeOf(goals, metric);
  const found: Results = { trials: [], x: [], y: [], kinds: [], best: [], improvements: [] };
  let best: number | null = null;
  for (const trial of [...trials].sort((a, b) => a.number - b.number)) {
    const kind = pointKind(trial, goals, metric);
    if (kind === null) continue;
    const value = outcomeOf(trial, metric, mode)?.value ?? null;
    if (kind === "result" && value !== null && mode !== null) {
      if (best === null || (mode === "minimize" ? value < best : value > best)) {
        best = value;
        found.improvements.push(found.trials.length);
      }
    }
    found.trials.push(trial);
    found.x.push(trial.number);
    found.y.push(value);
    found.kinds.push(kind);
    found.best.push(best);
  }
  return found;
}

/** Return the started trials and their durations, in the order of their numbers. */
export function durationsOf(
  trials: Iterable<Trial>,
  now: number,
): { trials: Trial[]; x: number[]; y: number[] } {
  const chosen = [...trials]
    .filter((trial) => trial.record.startTime)
    .sort((a, b) => a.number - b.number);
  return {
    trials: chosen,
    x: chosen.map((trial) => trial.number),
    y: chosen.map((trial) => durationOf(trial, now) ?? 0),
  };
}

/** Return the median of numbers; NaN if there are none. */
export function median(values: number[]): number {
  const ordered = [...values].sort((a, b) => a - b);
  const middle = ordered.length >> 1;
  return ordered.length % 2 ? ordered[middle]! : (ordered[middle - 1]! + ordered[middle]!) / 2;
}

/** Intermediate results by trial id; NaN where one is missing. */
export type Curves = Map<string, number[]>;

/** Filter of curves by the range of one intermediate result. */
export interface CurveFilter {
  /** Number of the intermediate result, from 1. */
  step: number;
  low: number;
  high: number;
}

/** Return the filter of three text fields; null without a valid step. */
export function parseCurveFilter(step: string, low: string, high: string): CurveFilter | null {
  const number = Number(step);
  if (!step.trim() || !Number.isInteger(number) || number < 1) return null;
  return {
    step: number,
    low: low.trim() === "" ? -Infinity : Number(low),
    high: high.trim() === "" ? Infinity : Number(high),
  };
}

/** Whether a curve matches a filter; a curve without the step does not. */
export function matchesCurve(curve: number[], filter: CurveFilter | null): boolean {
  if (!filter) return true;
  const value = curve[filter.step - 1];
  return value !== undefined && value >= filter.low && value <= filter.high;
}
