// Trials, parsed once from their REST records.

import type {
  EndCause,
  Json,
  JsonObject,
  StopCause,
  Trial as TrialRecord,
  TrialState,
  WaitCause,
} from "../api/records";
import { sampleOf, stepNumber } from "./parameters";

/** Attempt that has written the log of a trial: the last one that has started. */
export const loggedAttempt = ({ attempt, runnerId }: Pick<TrialRecord, "attempt" | "runnerId">) =>
  runnerId ? attempt : Math.max(1, attempt - 1);

export const LIVE: ReadonlySet<string> = new Set(["RUNNING", "WAITING", "UNKNOWN"]);
export const TRIAL_STATES: readonly TrialState[] = [
  "RUNNING",
  "WAITING",
  "SUCCEEDED",
  "EARLY_STOPPED",
  "FAILED",
  "USER_CANCELED",
  "SYS_CANCELED",
  "UNKNOWN",
];

/** Smallest and largest number by metric. */
export type Ranges = Record<string, [number, number]>;

export interface Trial {
  id: string;
  /** Its number in the experiment, from 0. */
  number: number;
  state: TrialState;
  parameters: Json;
  /** Parameters by name; those of a nested choice are named `outer/inner`, those of a model by
   * their labels. */
  flat: Record<string, Json>;
  /** Source of the parameters: `algorithm` or `customized`. */
  source: string;
  /** The result as reported; undefined if there is none. */
  result: Json | undefined;
  /** The objective value; null if the result has none. */
  value: number | null;
  /** All numbers of its result by key; a plain number is `default`. */
  metrics: Record<string, number>;
  /** Smallest and largest finite intermediate number by key, as far as loaded. */
  ranges: Ranges;
  record: TrialRecord;
}

/** Return the trial that a record describes, with the ranges of its intermediate results. */
export function trialOf(record: TrialRecord, ranges: Ranges = {}): Trial {
  const given = JSON.parse(record.hyperParameters[0] ?? "{}") as {
    parameters?: Json;
    parameter_source?: string;
  };
  const result = record.finalMetricData?.[0]?.data;
  const metrics = numbersOf(result);
  return {
    id: record.trialJobId,
    number: record.sequenceId,
    state: record.status,
    parameters: given.parameters ?? {},
    flat: sampleOf(given.parameters ?? {}) ?? flatten(withoutJob(given.parameters ?? {})),
    source: given.parameter_source ?? "algorithm",
    result,
    value: metrics["default"] ?? null,
    metrics,
    ranges,
    record,
  };
}

const ENDS: Record<EndCause, string> = {
  UNSPECIFIED: "",
  SUCCEEDED: "",
  EXIT_CODE: "exit code of the command",
  SIGNAL: "signal to the command",
  NOT_STARTED: "command not started",
  TIME_LIMIT: "time limit",
  STOPPED: "stopped",
  LOST: "agent lost",
  NEVER_STARTED: "never started",
  CUT_OFF: "experiment ended",
};
const STOPS: Record<StopCause, string> = {
  UNSPECIFIED: "",
  USER: "by a user",
  ASSESSOR: "by the assessor",
  EXPERIMENT_STOPPED: "with the experiment",
  AGENT: "by its agent",
};
const WAITS: Record<WaitCause, string> = {
  UNSPECIFIED: "",
  GPU_IN_USE: "waits for a GPU in use",
  GPU_MISSING: "waits for a missing GPU",
  BLOB: "waits for the store",
  ENVIRONMENT: "waits for its environment",
  PLATFORM: "waits for an agent of its platform",
};

/** Return why a trial ended, is being stopped or waits; empty if it succeeded or nothing is known. */
export function causeOf(record: TrialRecord): string {
  const stop = record.stopCause ? STOPS[record.stopCause] : "";
  if (record.endCause) {
    const end = ENDS[record.endCause];
    return record.endCause === "STOPPED" && stop ? `${end} ${stop}` : end;
  }
  if (stop) return `being stopped ${stop}`;
  return record.waitCause ? WAITS[record.waitCause] : "";
}

/**
 * Return parameters by full name; a nested choice `{_name, a}` becomes `outer` and `outer/a`.
 *
 * Parameters without nested ones are returned themselves, which saves the memory of a copy.
 */
export function flatten(parameters: Json): Record<string, Json> {
  return isFlat(parameters) ? parameters : flattenInto({}, parameters, "");
}

function isFlat(parameters: Json): parameters is JsonObject {
  if (parameters === null || typeof parameters !== "object" || Array.isArray(parameters))
    return false;
  for (const name in parameters) {
    const value = parameters[name];
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return false;
  }
  return true;
}

function flattenInto(
  into: Record<string, Json>,
  parameters: Json,
  prefix: string,
): Record<string, Json> {
  if (parameters === null || typeof parameters !== "object" || Array.isArray(parameters)) {
    if (prefix) into[prefix] = parameters;
    return into;
  }
  for (const [name, value] of Object.entries(parameters)) {
    const full = !prefix ? name : name === "_name" ? prefix : `${prefix}/${name}`;
    if (value !== null && typeof value === "object" && !Array.isArray(value))
      flattenInto(into, value, full);
    else into[full] = value;
  }
  return into;
}

/** Return parameters without the description of a job, which all steps of a job share. */
function withoutJob(parameters: Json): Json {
  if (stepNumber(parameters) === null) return parameters;
  const { job: _, ...rest } = parameters as JsonObject;
  return rest;
}

/** Return the numbers of a metric by key, without NaN. */
export function numbersOf(data: Json | undefined): Record<string, number> {
  const found: Record<string, number> = {};
  const entries: [string, Json][] =
    data !== null && typeof data === "object" && !Array.isArray(data)
      ? Object.entries(data as JsonObject)
      : [["default", data ?? null]];
  for (const [key, item] of entries) {
    const number = typeof item === "number" ? item : INFINITE[String(item)];
    if (number !== undefined && !Number.isNaN(number)) found[key] = number;
  }
  return found;
}

const INFINITE: Record<string, number> = { Infinity: Infinity, "-Infinity": -Infinity };

/** Return the duration of a trial in seconds; null if it has not started. */
export function durationOf(trial: Trial, now: number): number | null {
  const { startTime, endTime } = trial.record;
  if (!startTime) return null;
  return Math.max(0, ((endTime ?? (LIVE.has(trial.state) ? now : startTime)) - startTime) / 1000);
}

/** Extend ranges by the finite numbers of one more intermediate result. */
export function extendRanges(ranges: Ranges, data: Json): void {
  for (const [key, value] of Object.entries(numbersOf(data))) {
    if (!Number.isFinite(value)) continue;
    const before = ranges[key];
    ranges[key] = before
      ? [Math.min(before[0], value), Math.max(before[1], value)]
      : [value, value];
  }
}

/** Return the trial `by` places behind one in a list; from outside of the list its first one. */
export function neighbour(list: readonly Trial[], trial: Trial, by: number): Trial | undefined {
  const at = list.findIndex((one) => one.id === trial.id);
  return at < 0 ? list[0] : list[at + by];
}

/** Return the newest failed trial. */
export function lastFailure(trials: Iterable<Trial>): Trial | undefined {
  let found: Trial | undefined;
  for (const trial of trials)
    if (trial.state === "FAILED" && trial.number > (found?.number ?? -1)) found = trial;
  return found;
}

/** Return the number of trials by state, without empty states. */
export function countStates(trials: Iterable<Trial>): Record<string, number> {
  const found: Record<string, number> = {};
  for (const { state } of trials) found[state] = (found[state] ?? 0) + 1;
  return found;
}

/** Return the number of ended trials among the counts by state. */
export function countEnded(counts: Record<string, number>): number {
  return Object.entries(counts).reduce(
    (sum, [state, number]) => sum + (LIVE.has(state) ? 0 : number),
    0,
  );
}

/** Return the number of live trials among the counts by state. */
export function countLive(counts: Record<string, number>): number {
  return [...LIVE].reduce((sum, state) => sum + (counts[state] ?? 0), 0);
}
