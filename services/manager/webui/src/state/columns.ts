// Columns of the trial table: title, text, and the value to sort and search by.

import type { Json } from "../api/records";
import { formatValue, formatDuration, formatState, formatTime, parameterText } from "../format";
import { type Goals, modeOf } from "./objectives";
import { bestIntermediate, metricText, resultText } from "./outcome";
import { LIVE, type Trial, durationOf } from "./trial";

export interface Column {
  /** Unique; parameters are `p:lr`, metrics `m:loss`. */
  key: string;
  title: string;
  /** Value to sort and search by; undefined, no value, sorts last. */
  value: (trial: Trial, now: number) => Json | undefined;
  text: (trial: Trial, now: number) => string;
  /** Width in px; a table that is too wide scrolls sideways. */
  width: number;
  number?: boolean;
  /** Whether the value is a list of which the search finds each item. */
  many?: boolean;
}

const seconds = (value: number | null) => (value === null ? "–" : formatDuration(value));

/** Width of an instant with its time zone. */
export const TIME_PX = 246;

const FIXED: Column[] = [
  {
    key: "number",
    title: "No.",
    width: 70,
    number: true,
    value: (t) => t.number,
    text: (t) => String(t.number),
  },
  { key: "id", title: "Trial", width: 96, value: (t) => t.id, text: (t) => t.id },
  {
    key: "state",
    title: "State",
    width: 140,
    value: (t) => t.state,
    text: (t) => formatState(t.state),
  },
  {
    key: "duration",
    title: "Duration",
    width: 104,
    number: true,
    value: (t, now) => durationOf(t, now) ?? undefined,
    text: (t, now) => seconds(durationOf(t, now)),
  },
  {
    key: "created",
    title: "Created",
    width: TIME_PX,
    value: (t) => t.record.createdTime,
    text: (t) => formatTime(t.record.createdTime),
  },
  {
    key: "started",
    title: "Started",
    width: TIME_PX,
    value: (t) => t.record.startTime,
    text: (t) => formatTime(t.record.startTime),
  },
  {
    key: "ended",
    title: "Ended",
    width: TIME_PX,
    value: (t) => t.record.endTime,
    text: (t) => formatTime(t.record.endTime),
  },
  {
    key: "reports",
    title: "Intermediate results",
    width: 150,
    number: true,
    value: (t) => t.record.intermediateCount,
    text: (t) => String(t.record.intermediateCount),
  },
  {
    key: "latest",
    title: "Latest intermediate",
    width: 150,
    number: true,
    value: (t) => t.record.latestIntermediate,
    text: (t) => formatValue(t.record.latestIntermediate),
  },
  {
    key: "attempt",
    title: "Attempt",
    width: 84,
    number: true,
    value: (t) => t.record.attempt,
    text: (t) => String(t.record.attempt),
  },
  { key: "source", title: "Source", width: 110, value: (t) => t.source, text: (t) => t.source },
  {
    key: "tuner",
    title: "Tuner",
    width: 130,
    value: (t) => proposerOf(t.record.provenance),
    text: (t) => proposerOf(t.record.provenance) ?? "–",
  },
  {
    key: "runner",
    title: "Agent",
    width: 130,
    value: (t) => t.record.runnerId,
    text: (t) => t.record.runnerId ?? "–",
  },
  {
    key: "platform",
    title: "Platform",
    width: 100,
    value: (t) => t.record.platform,
    text: (t) => t.record.platform ?? "–",
  },
  {
    key: "gpus",
    title: "GPUs",
    width: 80,
    value: (t) => t.record.gpuIndices?.join(","),
    text: (t) => t.record.gpuIndices?.join(", ") ?? "–",
  },
  {
    key: "star",
    title: "Star",
    width: 70,
    value: (t) => (t.record.remarks?.starred ? "yes" : undefined),
    text: (t) => (t.record.remarks?.starred ? "★" : "–"),
  },
  {
    key: "tags",
    title: "Tags",
    width: 150,
    many: true,
    value: (t) => (t.record.remarks?.tags.length ? t.record.remarks.tags : undefined),
    text: (t) => t.record.remarks?.tags.join(", ") || "–",
  },
  {
    key: "note",
    title: "Note",
    width: 220,
    value: (t) => t.record.remarks?.note || undefined,
    text: (t) => t.record.remarks?.note.split("\n")[0] || "–",
  },
  {
    key: "message",
    title: "Message",
    width: 260,
    value: (t) => t.record.message,
    text: (t) => t.record.message?.split("\n")[0] ?? "–",
  },
];
/** Return the column of the result: the first objective, or all of several ones as text. */
function resultColumn(goals: Goals): Column {
  const { metric } = goals.objectives[0]!;
  const several = goals.objectives.length > 1;
  return {
    key: "result",
    title: "Result",
    width: several ? 240 : 120,
    number: !several,
    value: (t) => t.metrics[metric] ?? (typeof t.result === "string" ? t.result : undefined),
    text: (t) => resultText(t, goals),
  };
}

/** Return the column of the best intermediate result, of the metric and direction of the goals. */
function bestColumn(goals: Goals): Column {
  const { metric } = goals.objectives[0]!;
  const best = (t: Trial) => bestIntermediate(t, metric, modeOf(goals, metric)) ?? undefined;
  return {
    key: "best",
    title: "Best intermediate",
    width: 166,
    number: true,
    value: best,
    text: (t) => formatValue(best(t)),
  };
}

const FIRST = ["number", "id", "state", "duration"];
/** Maximum number of parameter columns by default. */
const MAX_PARAMETERS = 8;

/** Return all columns of an experiment; `numeric` are the parameters whose values are numbers. */
export function allColumns(
  parameters: Iterable<string>,
  metrics: Iterable<string>,
  goals: Goals,
  numeric: ReadonlySet<string> = new Set(),
): Column[] {
  const ofMetrics = [...metrics]
    .filter((key) => key !== "default")
    .map((key): Column => ({
      key: `m:${key}`,
      title: key,
      width: 110,
      number: true,
      value: (t) => t.metrics[key],
      text: (t) => metricText(t, key),
    }));
  const ofParameters = [...parameters].map((name): Column => ({
    key: `p:${name}`,
    title: name,
    width: Math.min(220, Math.max(112, 34 + name.length * 8)),
    ...(numeric.has(name) ? { number: true } : {}),
    value: (t) => t.flat[name],
    text: (t) => parameterText(t.flat[name]),
  }));
  return [
    ...FIXED.slice(0, 3),
    resultColumn(goals),
    bestColumn(goals),
    ...FIXED.slice(3, FIRST.length),
    ...ofMetrics,
    ...ofParameters,
    ...FIXED.slice(FIRST.length),
  ];
}

/** Return the keys of the columns that are visible by default. */
export function defaultColumns(all: Column[], trialsOnce: Iterable<Trial>): string[] {
  const trials = [...trialsOnce];
  const parameters = all.filter((one) => one.key.startsWith("p:")).slice(0, MAX_PARAMETERS);
  const metrics = all.filter((one) => one.key.startsWith("m:")).slice(0, 3);
  const stopped = hasOnlyIntermediates(trials) ? ["best"] : [];
  // Several objectives have a column each.
  const several = all.find((one) => one.key === "result")?.number === false;
  return [
    ...FIRST,
    ...(several && metrics.length ? [] : ["result"]),
    ...stopped,
    ...metrics.map((one) => one.key),
    ...parameters.map((one) => one.key),
    ...(hasSeveralTuners(trials) ? ["tuner"] : []),
    ...remarkColumns(trials),
  ];
}

/** Return the label of the tuner that proposed a trial, where several share the trials, or name. */
export function proposerOf(provenance: Json | undefined): string | undefined {
  if (provenance === null || typeof provenance !== "object" || Array.isArray(provenance))
    return undefined;
  const name = provenance["tuner"] || provenance["algorithm"];
  return typeof name === "string" && name ? name : undefined;
}

/** Whether trials are proposals of different tuners. */
function hasSeveralTuners(trials: Iterable<Trial>): boolean {
  let first: string | undefined;
  for (const { record } of trials) {
    const proposer = proposerOf(record.provenance);
    first ??= proposer;
    if (proposer !== undefined && proposer !== first) return true;
  }
  return false;
}

/** Return the keys of the columns of remarks that a trial has. */
function remarkColumns(trials: Iterable<Trial>): string[] {
  let [star, tags] = [false, false];
  for (const { record } of trials) {
    star ||= record.remarks?.starred ?? false;
    tags ||= (record.remarks?.tags.length ?? 0) > 0;
  }
  return [...(star ? ["star"] : []), ...(tags ? ["tags"] : [])];
}

/** Whether a trial ended with intermediate results but without a result. */
function hasOnlyIntermediates(trials: Iterable<Trial>): boolean {
  for (const trial of trials)
    if (trial.result === undefined && !LIVE.has(trial.state) && trial.record.intermediateCount > 0)
      return true;
  return false;
}

/** Return `trials` sorted by a column; trials without a value are last in both directions. */
export function sorted(trials: Trial[], column: Column, descending: boolean, now: number): Trial[] {
  const keyed = trials.map((trial) => ({ trial, value: column.value(trial, now) }));
  const sign = descending ? -1 : 1;
  keyed.sort((a, b) => {
    if (a.value === undefined || b.value === undefined) {
      const missing = Number(a.value === undefined) - Number(b.value === undefined);
      return missing || b.trial.number - a.trial.number;
    }
    return sign * compare(a.value, b.value) || sign * (a.trial.number - b.trial.number);
  });
  return keyed.map(({ trial }) => trial);
}

/** Compare two values: numbers before text. */
function compare(a: Json, b: Json): number {
  if (typeof a === "number" && typeof b === "number") return a < b ? -1 : a > b ? 1 : 0;
  if (typeof a === "number" || typeof b === "number") return typeof a === "number" ? -1 : 1;
  const left = parameterText(a);
  const right = parameterText(b);
  return left < right ? -1 : left > right ? 1 : 0;
}
