// Best results of several experiments so far, over trials or time, on one axis.

import type { Profile } from "../api/records";
import { type Mode, goalsOf, modeOf } from "../state/objectives";
import { outcomeOf, pointKind } from "../state/outcome";
import type { Trial } from "../state/trial";

/** What the x axis counts: ended trials, or seconds since the start of the experiment. */
export type Progress = "trials" | "time";

export interface ExperimentRun {
  profile: Profile;
  trials: Trial[];
}

export interface BestCurve {
  profile: Profile;
  /** Null: the experiment knows no direction of the metric, so it has no best result. */
  mode: Mode | null;
  /** Places at which the best result changed, and the last one. */
  x: number[];
  y: number[];
  best: number | null;
  bestTrial: Trial | null;
  /** Place of the best result. */
  bestAt: number | null;
  /** Number of feasible results. */
  results: number;
}

/** Return the name of an experiment, else its id. */
export function runName({ id, params }: Profile): string {
  return String(params["experimentName"] ?? "") || id;
}

/** Return the best feasible result so far of an experiment. */
export function bestCurve(
  { profile, trials }: ExperimentRun,
  metric: string,
  by: Progress,
): BestCurve {
  const goals = goalsOf(profile);
  const mode = modeOf(goals, metric);
  const curve: BestCurve = {
    ...{ profile, mode, x: [], y: [] },
    ...{ best: null, bestTrial: null, bestAt: null, results: 0 },
  };
  const start = profile.startTime ?? 0;
  const place = (trial: Trial) =>
    by === "trials" ? trial.number + 1 : ((trial.record.endTime ?? start) - start) / 1000;
  const ended = trials
    .filter((trial) => pointKind(trial, goals, metric) === "result" && trial.record.endTime)
    .sort((a, b) => place(a) - place(b) || a.number - b.number);
  if (mode === null) return curve;
  for (const trial of ended) {
    const { value } = outcomeOf(trial, metric, mode)!;
    curve.results += 1;
    if (curve.best === null || (mode === "minimize" ? value < curve.best : value > curve.best)) {
      Object.assign(curve, { best: value, bestTrial: trial, bestAt: place(trial) });
      if (curve.x.at(-1) === place(trial)) curve.y[curve.y.length - 1] = value;
      else add(curve, place(trial), value);
    }
  }
  const last = ended.at(-1);
  if (last && place(last) > curve.x.at(-1)!) add(curve, place(last), curve.best!);
  return curve;
}

function add(curve: BestCurve, x: number, y: number): void {
  curve.x.push(x);
  curve.y.push(y);
}

/** Return all curves over the places of all; null before the first and after the last of a curve. */
export function aligned(curves: readonly Pick<BestCurve, "x" | "y">[]): {
  x: number[];
  y: (number | null)[][];
} {
  const x = [...new Set(curves.flatMap((curve) => curve.x))].sort((a, b) => a - b);
  const y = curves.map((curve) => {
    let next = 0;
    return x.map((at) => {
      while (next < curve.x.length && curve.x[next]! <= at) next += 1;
      return next === 0 || at > curve.x.at(-1)! ? null : curve.y[next - 1]!;
    });
  });
  return { x, y };
}

/** Return the metrics that experiments share, those of fewer of them later; the first is usual. */
export function sharedMetrics(runs: readonly ExperimentRun[]): string[] {
  const counts = new Map<string, number>();
  for (const { profile, trials } of runs) {
    const keys = new Set(goalsOf(profile).objectives.map((one) => one.metric));
    for (const trial of trials) for (const key in trial.metrics) keys.add(key);
    for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]).map(([key]) => key);
}
