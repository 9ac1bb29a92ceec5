// Numbers behind the charts: pure, so that they can be tested without a canvas.

import { type Trial, durationOf } from "../state/trial";

export interface Results {
  trials: Trial[];
  /** Numbers of the trials. */
  x: number[];
  y: number[];
  /** The best value up to and including each trial. */
  best: number[];
  /** Indices of the trials that were better than all before. */
  improvements: number[];
}

/** Return the results under a metric's `key` in the order of trial numbers; infinities are left out. */
export function resultsOf(trials: Iterable<Trial>, key: string, minimize: boolean): Results {
  const chosen = [...trials]
    .filter((trial) => Number.isFinite(trial.metrics[key] ?? NaN))
    .sort((a, b) => a.number - b.number);
  const y = chosen.map((trial) => trial.metrics[key]!);
  const best: number[] = [];
  const improvements: number[] = [];
  y.forEach((value, i) => {
    const before = best[i - 1];
    if (before === undefined || (minimize ? value < before : value > before)) {
      best.push(value);
      improvements.push(i);
    } else {
      best.push(before);
    }
  });
  return { trials: chosen, x: chosen.map((trial) => trial.number), y, best, improvements };
}

/** Return the trials that have run and how long, in the order of their numbers. */
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

/** Return the middle of numbers; NaN if there are none. */
export function median(values: number[]): number {
  const ordered = [...values].sort((a, b) => a - b);
  const middle = ordered.length >> 1;
  return ordered.length % 2 ? ordered[middle]! : (ordered[middle - 1]! + ordered[middle]!) / 2;
}

/** Intermediate results by trial; an absent one is NaN. */
export type Curves = Map<string, number[]>;

/** A rule about one place of a curve: its value must lie in a range. */
export interface CurveRule {
  /** 1-based: the how-manieth intermediate result. */
  place: number;
  low: number;
  high: number;
}

/** Return the rule that `#4, 0.8-1` or separate fields state; null if there is none. */
export function curveRule(place: string, low: string, high: string): CurveRule | null {
  const at = Number(place);
  if (!place.trim() || !Number.isInteger(at) || at < 1) return null;
  return {
    place: at,
    low: low.trim() === "" ? -Infinity : Number(low),
    high: high.trim() === "" ? Infinity : Number(high),
  };
}

/** Whether a curve obeys a rule; one that does not reach the place does not. */
export function obeys(curve: number[], rule: CurveRule | null): boolean {
  if (!rule) return true;
  const value = curve[rule.place - 1];
  return value !== undefined && value >= rule.low && value <= rule.high;
}
