// Text of a table as comma-separated values (RFC 4180).

import type { Json } from "../api/records";
import type { Column } from "./columns";
import type { Trial } from "./trial";

/** Begins of texts that spreadsheets take for formulas. */
const FORMULA = /^[=+\-@\t\r]/;

/** Return trials as CSV, one column each; numbers with all digits, other values as JSON. */
export function trialsCsv(columns: Column[], trials: Trial[], now: number): string {
  const head = columns.map((column) => cell(column.title));
  const rows = trials.map((trial) => columns.map((column) => cell(column.value(trial, now))));
  return [head, ...rows].map((row) => row.join(",") + "\r\n").join("");
}

/** Return one value; a text that a spreadsheet would take for a formula begins with a quote. */
export function cell(value: Json | undefined): string {
  if (value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const safe = FORMULA.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
