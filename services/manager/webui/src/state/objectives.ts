// Objectives and limits of an experiment: direction of each metric, feasibility, order of trials.

import type { Json, Profile } from "../api/records";
import { isObject } from "./space";
import type { Trial } from "./trial";

export type Mode = "minimize" | "maximize";

/** A metric with the direction in which it improves. */
export interface Objective {
  metric: string;
  mode: Mode;
}

/** Upper limit of a metric; a trial beyond it is infeasible. */
export interface Limit {
  metric: string;
  max: number;
}

export interface Goals {
  /** At least one. */
  objectives: Objective[];
  limits: Limit[];
  /** Directions that the user selected, by metric. */
  chosen: Record<string, Mode>;
}

/** Return the goals of an experiment; `chosen` are directions that the user selected. */
export function goalsOf(profile: Profile | null, chosen: Record<string, Mode> = {}): Goals {
  const params = profile?.params ?? {};
  const objectives = objectsIn(params["objectives"]).map((one): Objective => ({
    metric: String(one["metric"] ?? "default"),
    mode: one["mode"] === "minimize" ? "minimize" : "maximize",
  }));
  const limits = objectsIn(params["constraints"])
    .filter((one) => typeof one["max"] === "number")
    .map((one): Limit => ({ metric: String(one["metric"] ?? ""), max: Number(one["max"]) }));
  const single: Objective = { metric: "default", mode: profile?.optimizeMode ?? "maximize" };
  return { objectives: objectives.length ? objectives : [single], limits, chosen };
}

function objectsIn(value: Json | undefined): { [key: string]: Json }[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/**
 * Return the direction in which a metric improves; null if neither the configuration nor the user
 * names one. A metric with an upper limit is better when it is smaller.
 */
export function modeOf(goals: Goals, metric: string): Mode | null {
  return (
    goals.chosen[metric] ??
    goals.objectives.find((one) => one.metric === metric)?.mode ??
    (goals.limits.some((one) => one.metric === metric) ? "minimize" : null)
  );
}

/** Whether a result keeps every limit; a metric without a finite number keeps none. */
export function isFeasible(trial: Trial, { limits }: Goals): boolean {
  return limits.every(({ metric, max }) => {
    const value = trial.metrics[metric];
    return value !== undefined && Number.isFinite(value) && value <= max;
  });
}

/** Return the metrics whose limits a result breaks. */
export function brokenLimits(trial: Trial, { limits }: Goals): Limit[] {
  return limits.filter(
    (limit) => !isFeasible(trial, { objectives: [], chosen: {}, limits: [limit] }),
  );
}

/**
 * Return the trials with a number under a metric, best first: feasible ones by value, then
 * infeasible ones by value, then those without a finite number, which count as the worst.
 */
export function ranked(trials: Iterable<Trial>, goals: Goals, metric: string): Trial[] {
  const sign = modeOf(goals, metric) === "maximize" ? -1 : 1;
  const group = (trial: Trial) =>
    !Number.isFinite(trial.metrics[metric]!) ? 2 : isFeasible(trial, goals) ? 0 : 1;
  return [...trials]
    .filter((trial) => trial.metrics[metric] !== undefined)
    .map((trial) => ({ trial, group: group(trial), value: sign * trial.metrics[metric]! }))
    .sort(
      (a, b) =>
        a.group - b.group ||
        (a.value < b.value ? -1 : a.value > b.value ? 1 : 0) ||
        a.trial.number - b.trial.number,
    )
    .map((one) => one.trial);
}

/** Return the best feasible trial of a metric with a direction; undefined: there is none. */
export function bestTrial(
  trials: Iterable<Trial>,
  goals: Goals,
  metric: string,
): Trial | undefined {
  const mode = modeOf(goals, metric);
  if (mode === null) return undefined;
  let found: Trial | undefined;
  for (const trial of trials) {
    const value = trial.metrics[metric];
    if (value === undefined || !Number.isFinite(value) || !isFeasible(trial, goals)) continue;
    const before = found?.metrics[metric];
    const better =
      before === undefined ||
      (mode === "minimize" ? value < before : value > before) ||
      (value === before && trial.number < found!.number);
    if (better) found = trial;
  }
  return found;
}

export interface Feasibility {
  results: number;
  /** Results with a finite number for each objective that keep all limits. */
  feasible: number;
  infeasible: number;
  /** Results within the limits without a finite number for some objective. */
  incomplete: number;
}

/** Return how many results keep the limits. */
export function feasibilityOf(trials: Iterable<Trial>, goals: Goals): Feasibility {
  const found = { results: 0, feasible: 0, infeasible: 0, incomplete: 0 };
  for (const trial of trials) {
    if (trial.result === undefined) continue;
    found.results += 1;
    const complete = goals.objectives.every(({ metric }) =>
      Number.isFinite(trial.metrics[metric] ?? NaN),
    );
    if (!isFeasible(trial, goals)) found.infeasible += 1;
    else if (complete) found.feasible += 1;
    else found.incomplete += 1;
  }
  return found;
}

/** Return the feasible trials that no other one beats in all objectives, in order of number. */
export function frontOf(trials: Iterable<Trial>, goals: Goals): Trial[] {
  const signs = goals.objectives.map(({ mode }) => (mode === "minimize" ? 1 : -1));
  const rows: { trial: Trial; losses: number[] }[] = [];
  for (const trial of trials) {
    const losses = goals.objectives.map(
      ({ metric }, i) => signs[i]! * (trial.metrics[metric] ?? NaN),
    );
    if (losses.every(Number.isFinite) && isFeasible(trial, goals)) rows.push({ trial, losses });
  }
  // In this order only an earlier row can dominate a later one.
  rows.sort((a, b) => order(a.losses, b.losses));
  const front: typeof rows = [];
  for (const row of rows)
    if (!front.some((one) => dominates(one.losses, row.losses))) front.push(row);
  return front.map((row) => row.trial).sort((a, b) => a.number - b.number);
}

function order(a: number[], b: number[]): number {
  const i = a.findIndex((value, k) => value !== b[k]);
  return i < 0 ? 0 : a[i]! - b[i]!;
}

function dominates(a: number[], b: number[]): boolean {
  return a.every((value, i) => value <= b[i]!) && a.some((value, i) => value < b[i]!);
}
