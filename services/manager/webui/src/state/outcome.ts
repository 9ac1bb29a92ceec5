// What a trial is worth in charts and tables: its result, else its best intermediate result.

import type { Json } from "../api/records";
import { formatValue } from "../format";
import { isFeasible, modeOf, type Goals, type Mode } from "./objectives";
import { isObject } from "./space";
import { LIVE, type Trial } from "./trial";

export interface Outcome {
  value: number;
  kind: "final" | "intermediate";
}

/**
 * Return a trial's finite number of a metric, its best intermediate one if it has no result at all.
 *
 * A result that is not a finite number is not replaced: the trial counts as the worst.
 */
export function outcomeOf(trial: Trial, metric: string, mode: Mode | null): Outcome | null {
  if (trial.result !== undefined) {
    const value = trial.metrics[metric];
    return value !== undefined && Number.isFinite(value) ? { value, kind: "final" } : null;
  }
  const value = bestIntermediate(trial, metric, mode);
  return value === null ? null : { value, kind: "intermediate" };
}

/** Return the best intermediate number of a metric; without a direction null. */
export function bestIntermediate(trial: Trial, metric: string, mode: Mode | null): number | null {
  const range = trial.ranges[metric];
  return !range || mode === null ? null : mode === "minimize" ? range[0] : range[1];
}

/** Return the number that ranks a curve: of the result if it has the metric, else the best one. */
export function standingOf(trial: Trial, metric: string, mode: Mode | null): number | null {
  const raw = isObject(trial.result) ? trial.result[metric] : undefined;
  const inResult = raw !== undefined || (metric === "default" && trial.result !== undefined);
  if (inResult) return outcomeOf(trial, metric, mode)?.value ?? null;
  return bestIntermediate(trial, metric, mode);
}

/** Kind of a point of a trial in a chart. */
export type PointKind = "result" | "infeasible" | "intermediate" | "none";

/** Return how a chart shows an ended trial; null for one that is live without a result. */
export function pointKind(trial: Trial, goals: Goals, metric: string): PointKind | null {
  if (trial.result === undefined && LIVE.has(trial.state)) return null;
  const outcome = outcomeOf(trial, metric, modeOf(goals, metric));
  if (outcome === null) return "none";
  if (outcome.kind === "intermediate") return "intermediate";
  return isFeasible(trial, goals) ? "result" : "infeasible";
}

/** Return the result of a trial on one line: its objectives, or `NaN` instead of the whole report. */
export function resultText(trial: Trial, goals?: Goals): string {
  const { result } = trial;
  if (isObject(result)) {
    const named = (goals?.objectives ?? []).filter(({ metric }) => metric in result);
    if (named.length === 1) return metricText(trial, named[0]!.metric);
    if (named.length)
      return named.map(({ metric }) => `${metric} ${formatValue(result[metric])}`).join(" · ");
    if ("default" in result) return formatValue(result["default"]);
  }
  return formatValue(trial.value ?? result);
}

/** Return a number of the result as text, `NaN` included; a dash without one. */
export function metricText(trial: Trial, metric: string): string {
  const raw: Json | undefined = isObject(trial.result)
    ? trial.result[metric]
    : metric === "default"
      ? trial.result
      : undefined;
  return formatValue(trial.metrics[metric] ?? raw);
}

/**
 * Return ranks from 0 (worst) to 1 (best) of numbers; equal ones share a rank, and what is not a
 * finite number has none. Without a direction the largest number has rank 1.
 */
export function ranksOf(
  values: (number | null | undefined)[],
  mode: Mode | null,
): (number | null)[] {
  // A typed array is sorted without a call for each comparison.
  const finite = Float64Array.from(
    values.filter((value) => Number.isFinite(value ?? NaN)) as number[],
  );
  const distinct = [...new Set(finite.sort())];
  const last = distinct.length - 1;
  const places = new Map(
    distinct.map((value, i) => [value, last ? (mode === "minimize" ? last - i : i) / last : 1]),
  );
  return values.map((value) => places.get(value ?? NaN) ?? null);
}

/** Return the state to show of an experiment: one that is done but has only failed is no success. */
export function shownState(
  status: string,
  counts: Record<string, number>,
): { state: string; label?: string } {
  if (status !== "DONE") return { state: status };
  const failed = counts["FAILED"] ?? 0;
  const ended = Object.entries(counts).reduce(
    (sum, [state, number]) => sum + (LIVE.has(state) ? 0 : number),
    0,
  );
  if (failed > 0 && failed === ended) return { state: "FAILED", label: "done, all failed" };
  if (ended > 0 && !counts["SUCCEEDED"] && !counts["EARLY_STOPPED"])
    return { state: "STOPPED", label: "done, no success" };
  return { state: status };
}
