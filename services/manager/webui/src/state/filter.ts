// Parser of the trial table's search: `failed lr:0.001..0.1 optimizer=adam,sgd #12`.
//
// A word matches number, id, state and parameter values. A name with `=`, `:`, `!=`, `<`, `<=`,
// `>` or `>=` tests one column. A trial must match all parts. `name=null` finds the value null,
// `name=[8,16]` a list, and `name=` trials without a value.

import type { Json } from "../api/records";
import { formatState, formatValue, parameterText } from "../format";
import type { Column } from "./columns";
import { remarksText } from "./remarks";
import type { Trial } from "./trial";

type Test = (trial: Trial, now: number) => boolean;

export interface Filter {
  test: Test;
  /** Messages about invalid parts, which are ignored. */
  problems: string[];
}

const PART = /(?:\[[^\]"]*\]|[^\s"]|"[^"]*"?)+/g;
const ASKED = /^([^\s<>=:!"]+|"[^"]+")(<=|>=|!=|<|>|=|:)(.*)$/;
const RANGE = /^(-?[\d.]*(?:e[-+]?\d+)?)(?:\.\.|…)(-?[\d.]*(?:e[-+]?\d+)?)$/i;
/** Alternative names of columns. */
const ALIASES: Record<string, string> = {
  no: "number",
  "#": "number",
  status: "state",
  metric: "result",
  default: "result",
  trial: "id",
  tag: "tags",
  starred: "star",
};

/** Return the filter of a search text over these columns. */
export function parseFilter(text: string, columns: Column[]): Filter {
  const tests: Test[] = [];
  const problems: string[] = [];
  for (const part of text.match(PART) ?? []) {
    const asked = ASKED.exec(part);
    if (!asked) {
      tests.push(
        part.startsWith("#") ? numberTest(part.slice(1), problems) : wordTest(unquoted(part)),
      );
      continue;
    }
    const name = unquoted(asked[1]!);
    const column = find(name, columns);
    if (!column) problems.push(`There is no column "${name}".`);
    else tests.push(columnTest(column, asked[2]!, asked[3]!, problems));
  }
  return { test: (trial, now) => tests.every((one) => one(trial, now)), problems };
}

function unquoted(text: string): string {
  return text.replaceAll('"', "");
}

function find(name: string, columns: Column[]): Column | undefined {
  const wanted = name.toLowerCase();
  const key = ALIASES[wanted] ?? wanted;
  return (
    columns.find((one) => one.key === key || one.title === name) ??
    columns.find((one) => one.title.toLowerCase() === wanted) ??
    // `lr` finds `model/lr` unless another column has the name `lr`
    columns.find((one) => one.title.toLowerCase().endsWith(`/${wanted}`))
  );
}

function numberTest(text: string, problems: string[]): Test {
  const range = RANGE.exec(text);
  if (range) return (trial) => within(trial.number, range[1]!, range[2]!);
  const wanted = text.split(",").map(Number);
  if (wanted.some(Number.isNaN)) problems.push(`"#${text}" is not a trial number.`);
  return (trial) => wanted.includes(trial.number);
}

/** Texts that a number's text may contain. */
const IN_NUMBER = /^[-\d.einfty]*$/;

function wordTest(text: string): Test {
  const word = text.toLowerCase();
  const state = word.replaceAll(" ", "_");
  const inNumbers = IN_NUMBER.test(word);
  return (trial) =>
    trial.id.toLowerCase().startsWith(word) ||
    String(trial.number) === word ||
    trial.state.toLowerCase().startsWith(state) ||
    formatState(trial.state).startsWith(word) ||
    (trial.record.remarks !== undefined &&
      remarksText(trial.record.remarks).toLowerCase().includes(word)) ||
    hasWord(trial.flat, word, inNumbers);
}

/** Whether the text of a value has a word; numbers are formatted only if theirs may have it. */
function hasWord(flat: Trial["flat"], word: string, inNumbers: boolean): boolean {
  for (const name in flat) {
    const value = flat[name]!;
    if (typeof value !== "number") {
      if (comparable(parameterText(value)).includes(word)) return true;
    } else if (inNumbers && formatValue(value).includes(word)) return true;
  }
  return false;
}

function columnTest(column: Column, operator: string, text: string, problems: string[]): Test {
  if (operator === "=" || operator === ":") {
    const range = RANGE.exec(text);
    if (range && (range[1] || range[2])) {
      return (trial, now) => within(column.value(trial, now), range[1]!, range[2]!);
    }
    const wanted = valuesIn(text);
    return (trial, now) => wanted.some((one) => equals(column, trial, now, one));
  }
  if (operator === "!=") {
    const wanted = valuesIn(text);
    return (trial, now) => !wanted.some((one) => equals(column, trial, now, one));
  }
  const limit = Number(unquoted(text));
  if (unquoted(text) === "" || Number.isNaN(limit)) {
    problems.push(`"${column.title}${operator}" needs a number, got "${text}".`);
    return () => true;
  }
  return (trial, now) => {
    const value = column.value(trial, now);
    if (typeof value !== "number") return false;
    if (operator === "<") return value < limit;
    if (operator === "<=") return value <= limit;
    return operator === ">" ? value > limit : value >= limit;
  };
}

/** Return the values of a list; commas inside of quotes, brackets and braces do not part them. */
export function valuesIn(text: string): string[] {
  const found = [""];
  let depth = 0;
  let quoted = false;
  for (const letter of text) {
    if (letter === '"') quoted = !quoted;
    else if (!quoted && "[{".includes(letter)) depth += 1;
    else if (!quoted && "]}".includes(letter)) depth -= 1;
    if (letter === "," && !quoted && depth <= 0) found.push("");
    else found[found.length - 1] += letter;
  }
  return found;
}

/** Return a value's text so that the search reads it as one value. */
export function searchText(text: string): string {
  if (/^([[{]|"")/.test(text) || !/[\s,"]/.test(text)) return text;
  return `"${unquoted(text)}"`;
}

function equals(column: Column, trial: Trial, now: number, wanted: string): boolean {
  const value = column.value(trial, now);
  if (wanted === "" || value === undefined) return wanted === "" && value === undefined;
  if (typeof value === "number") return value === Number(wanted);
  if (column.many && Array.isArray(value))
    return value.some((one) => comparable(parameterText(one)) === comparable(wanted));
  const text = comparable(wanted);
  return comparable(parameterText(value)) === text || comparable(column.text(trial, now)) === text;
}

/** Return text without case, quotes and spaces between the items of a list. */
function comparable(text: string): string {
  return text === '""' ? text : unquoted(text.replace(/,\s+/g, ",")).toLowerCase();
}

function within(value: Json | undefined, low: string, high: string): boolean {
  if (typeof value !== "number") return false;
  return (low === "" || value >= Number(low)) && (high === "" || value <= Number(high));
}
