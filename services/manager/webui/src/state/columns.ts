// Columns of the trial table: title, text, and the value to sort and search by.

import type { Json } from "../api/records";
import { formatValue, formatDuration, formatState, formatTime } from "../format";
import { type Trial, durationOf } from "./trial";

export interface Column {
  /** Unique; parameters are `p:lr`, metrics `m:loss`. */
  key: string;
  title: string;
  /** Value to sort and search by; null sorts last. */
  value: (trial: Trial, now: number) => Json;
  text: (trial: Trial, now: number) => string;
  /** Width in px; a table that is too wide scrolls sideways. */
  width: number;
  number?: boolean;
}

const seconds = (value: number | null) => (value === null ? "–" : formatDuration(value));

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
    key: "result",
    title: "Result",
    width: 120,
    number: true,
    value: (t) => t.value ?? (typeof t.result === "string" ? t.result : null),
    text: (t) => formatValue(t.value ?? t.result),
  },
  {
    key: "duration",
    title: "Duration",
    width: 104,
    number: true,
    value: (t, now) => durationOf(t, now),
    text: (t, now) => seconds(durationOf(t, now)),
  },
  {
    key: "created",
    title: "Created",
    width: 196,
    value: (t) => t.record.createdTime,
    text: (t) => formatTime(t.record.createdTime),
  },
  {
    key: "started",
    title: "Started",
    width: 196,
    value: (t) => t.record.startTime ?? null,
    text: (t) => formatTime(t.record.startTime),
  },
  {
    key: "ended",
    title: "Ended",
    width: 196,
    value: (t) => t.record.endTime ?? null,
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
    value: (t) => t.record.latestIntermediate ?? null,
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
    key: "runner",
    title: "Agent",
    width: 130,
    value: (t) => t.record.runnerId ?? null,
    text: (t) => t.record.runnerId ?? "–",
  },
  {
    key: "platform",
    title: "Platform",
    width: 100,
    value: (t) => t.record.platform ?? null,
    text: (t) => t.record.platform ?? "–",
  },
  {
    key: "gpus",
    title: "GPUs",
    width: 80,
    value: (t) => t.record.gpuIndices?.join(",") ?? null,
    text: (t) => t.record.gpuIndices?.join(", ") ?? "–",
  },
  {
    key: "message",
    title: "Message",
    width: 260,
    value: (t) => t.record.message ?? null,
    text: (t) => t.record.message?.split("\n")[0] ?? "–",
  },
];
const FIRST = ["number", "id", "state", "result", "duration"];
/** Maximum number of parameter columns by default. */
const MAX_PARAMETERS = 8;

/** Return all columns of an experiment. */
export function allColumns(parameters: Iterable<string>, metrics: Iterable<string>): Column[] {
  const ofMetrics = [...metrics]
    .filter((key) => key !== "default")
    .map((key): Column => ({
      key: `m:${key}`,
      title: key,
      width: 110,
      number: true,
      value: (t) => t.metrics[key] ?? null,
      text: (t) => formatValue(t.metrics[key]),
    }));
  const ofParameters = [...parameters].map((name): Column => ({
    key: `p:${name}`,
    title: name,
    width: Math.min(220, Math.max(112, 34 + name.length * 8)),
    value: (t) => t.flat[name] ?? null,
    text: (t) => (name in t.flat ? formatValue(t.flat[name]) : ""),
  }));
  return [
    ...FIXED.slice(0, FIRST.length),
    ...ofMetrics,
    ...ofParameters,
    ...FIXED.slice(FIRST.length),
  ];
}

/** Return the keys of the columns that are visible by default. */
export function defaultColumns(all: Column[]): string[] {
  const parameters = all.filter((one) => one.key.startsWith("p:")).slice(0, MAX_PARAMETERS);
  const metrics = all.filter((one) => one.key.startsWith("m:")).slice(0, 3);
  return [...FIRST, ...metrics.map((one) => one.key), ...parameters.map((one) => one.key)];
}

/** Return `trials` sorted by a column; trials without a value are last in both directions. */
export function sorted(trials: Trial[], column: Column, descending: boolean, now: number): Trial[] {
  const keyed = trials.map((trial) => ({ trial, value: column.value(trial, now) }));
  const sign = descending ? -1 : 1;
  keyed.sort((a, b) => {
    if (a.value === null || b.value === null) {
      return Number(a.value === null) - Number(b.value === null) || b.trial.number - a.trial.number;
    }
    return sign * compare(a.value, b.value) || sign * (a.trial.number - b.trial.number);
  });
  return keyed.map(({ trial }) => trial);
}

/** Compare two values: numbers before text. */
function compare(a: Json, b: Json): number {
  if (typeof a === "number" && typeof b === "number") return a < b ? -1 : a > b ? 1 : 0;
  if (typeof a === "number" || typeof b === "number") return typeof a === "number" ? -1 : 1;
  const left = formatValue(a);
  const right = formatValue(b);
  return left < right ? -1 : left > right ? 1 : 0;
}
