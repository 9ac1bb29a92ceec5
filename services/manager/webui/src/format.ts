// Formatting of values, durations, times and states for people.

import type { Json } from "./api/records";

/** Return a number with six digits, other values as text, null and undefined as a dash. */
export function formatValue(value: Json | undefined): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return value;
  if (typeof value !== "number") return JSON.stringify(value);
  if (Number.isSafeInteger(value)) return String(value);
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4)
    return value
      .toExponential(4)
      .replace(/\.?0+e/, "e")
      .replace("e+", "e");
  return withoutZeros(value.toPrecision(6));
}

/** Return the text of a number without zeros at its end; to parse it again would take longer. */
function withoutZeros(text: string): string {
  if (text.includes("e")) return String(Number(text)); // rounded up to a million
  if (!text.includes(".")) return text;
  let end = text.length;
  while (text[end - 1] === "0") end -= 1;
  return text.slice(0, text[end - 1] === "." ? end - 1 : end);
}

/** Strings that would look like another value, or like none, without quotes. */
const AMBIGUOUS = new Set(["", "null", "–"]);

/** Return a parameter's value as text; nothing for undefined, which is no value, unlike null. */
export function parameterText(value: Json | undefined): string {
  if (value === undefined) return "";
  if (typeof value === "string" && AMBIGUOUS.has(value)) return `"${value}"`;
  return value === null ? "null" : formatValue(value);
}

/** Return a number short enough for an axis. */
export function formatShort(value: number): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3)
    return value.toExponential(1).replace(".0e", "e").replace("e+", "e");
  return String(Number(value.toPrecision(4)));
}

const UNITS: [string, number][] = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
];

/** Return seconds as e.g. `2 h 5 min`: two units, never negative. */
export function formatDuration(seconds: number): string {
  const left = Math.max(0, seconds);
  if (left === 0) return "0 s";
  if (left < 1) return `${Math.round(left * 1000)} ms`;
  if (left < 10) return `${left.toFixed(1)} s`;
  let rest = Math.round(left);
  const parts: string[] = [];
  for (const [name, size] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count} ${name}`);
    if (parts.length === 2) break;
  }
  return parts.join(" ");
}

const UNIT_S: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** Return the seconds of a duration such as `30m`; null for other text. */
export function durationSeconds(text: Json | undefined): number | null {
  const match = /^(\d+(?:\.\d+)?)\s*([smhd])$/.exec(String(text ?? "").trim());
  return match ? Number(match[1]) * UNIT_S[match[2]!]! : null;
}

/** Return seconds as a duration of the configuration: `90m`, `2h`. */
export function durationText(seconds: number): string {
  for (const unit of ["d", "h", "m"]) {
    if (seconds >= UNIT_S[unit]! && seconds % UNIT_S[unit]! === 0)
      return `${seconds / UNIT_S[unit]!}${unit}`;
  }
  return `${seconds}s`;
}

const TIME = new Intl.DateTimeFormat(undefined, {
  year: "numeric",
  month: "short",
  day: "numeric",
  hour: "numeric",
  minute: "2-digit",
  second: "2-digit",
  timeZoneName: "short",
});

/** Return an instant in local time, with the name of the time zone. */
export function formatTime(milliseconds: number | null | undefined): string {
  return milliseconds ? TIME.format(milliseconds) : "–";
}

/** Return the name of the local time zone at an instant, such as `UTC` or `GMT+1`. */
export function zoneName(milliseconds: number): string {
  const parts = TIME.formatToParts(milliseconds);
  return parts.find((part) => part.type === "timeZoneName")?.value ?? "local time";
}

const STATE_LABELS: Record<string, string> = {
  NO_MORE_TRIAL: "budget used up",
  TUNER_NO_MORE_TRIAL: "search exhausted",
  USER_CANCELED: "killed",
  SYS_CANCELED: "canceled",
  INITIALIZED: "starting",
  VIEWED: "read only",
};

/** Return e.g. `EARLY_STOPPED` as `early stopped`. */
export function formatState(state: string): string {
  return STATE_LABELS[state] ?? state.toLowerCase().replaceAll("_", " ");
}

/** Return JSON as a Python literal. */
export function pythonLiteral(value: Json): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(", ")}]`;
  const items = Object.entries(value).map(
    ([key, item]) => `${JSON.stringify(key)}: ${pythonLiteral(item)}`,
  );
  return `{${items.join(", ")}}`;
}

/** Return `1 trial`, `2 trials`. */
export function count(number: number, noun: string): string {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}
