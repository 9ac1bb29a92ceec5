// Data of the charts: pure functions, tested without a canvas.

import { type Trial, durationOf } from "../state/trial";

export interface Results {
  trials: Trial[];
  /** Sequence numbers of the trials. */
  x: number[];
  y: number[];
  /** The best value up to and including each trial. */
  best: number[];
  /** Indices of the trials that were better than all previous ones. */
  improvements: number[];
}

/** Return the finite values of a metric in the order of trial numbers. */
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
