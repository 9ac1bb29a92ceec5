// The search space as the page reads it: what each parameter may be, in words and as a rule.

import type { Json, JsonObject } from "../api/records";
import { show, showShort } from "../format";

export interface Dimension {
  /** Full name; inside a nested choice `outer/inner`. */
  name: string;
  /** `uniform`, `choice`, …; as the space writes it. */
  type: string;
  /** What it may be, in words. */
  range: string;
  /** Values of a choice, as text; empty for numbers. */
  options: string[];
  /** Whether equal ratios and not equal distances matter. */
  log: boolean;
  /** 0 for a parameter that is always there, more inside nested choices. */
  depth: number;
}

/** Whether a key of a space is a rule about parameters and none of them. */
export function isRuleOfSpace(key: string): boolean {
  return /^_(constraints|forbid)/.test(key);
}

/** Return the dimensions of a space in its own order; an unreadable one has none. */
export function dimensionsOf(space: Json | undefined, prefix = "", depth = 0): Dimension[] {
  if (!isObject(space)) return [];
  const found: Dimension[] = [];
  for (const [key, spec] of Object.entries(space)) {
    if (key === "_name" || isRuleOfSpace(key)) continue;
    const name = prefix ? `${prefix}/${key}` : key;
    if (!isObject(spec) || typeof spec["_type"] !== "string" || !Array.isArray(spec["_value"]))
      continue;
    const type = spec["_type"];
    const value = spec["_value"];
    const options = type === "choice" ? value.map(optionName) : [];
    found.push({ name, type, range: inWords(type, value), options, log: /log/.test(type), depth });
    if (type === "choice")
      for (const option of value) found.push(...dimensionsOf(option, name, depth + 1));
  }
  // A parameter that several branches have is one dimension of the page.
  return [...new Map(found.map((one) => [one.name, one])).values()];
}

/** Return the name of a branch, or a value as text. */
export function optionName(option: Json): string {
  return isObject(option) && typeof option["_name"] === "string" ? option["_name"] : show(option);
}

/** Return what a parameter of this type may be, in words. */
export function inWords(type: string, value: Json[]): string {
  const [a, b, q] = value.map((one) => (typeof one === "number" ? showShort(one) : show(one)));
  if (type === "choice") return value.map(optionName).join(", ");
  if (type === "randint") return wholeNumbers(value[0], value[1]);
  if (/normal/.test(type)) return `mean ${a}, deviation ${b}${q ? `, step ${q}` : ""}`;
  return `${a} … ${b}${q ? `, step ${q}` : ""}`;
}

/** Return the whole numbers from `low` on that are below `high`, in words. */
function wholeNumbers(low: Json | undefined, high: Json | undefined): string {
  if (typeof low !== "number" || typeof high !== "number") return "whole numbers";
  const last = Math.ceil(high) - 1;
  return low >= last ? `${showShort(low)}` : `${showShort(low)} … ${showShort(last)}`;
}

/** Return what is wrong with parameters a user made up, in words; empty if nothing. */
export function problemsWith(parameters: JsonObject, space: Json | undefined): string[] {
  if (!isObject(space)) return [];
  const problems: string[] = [];
  for (const [name, spec] of Object.entries(space)) {
    if (isRuleOfSpace(name) || !isObject(spec) || !Array.isArray(spec["_value"])) continue;
    const value = parameters[name];
    if (value === undefined) problems.push(`${name} is missing`);
    else problems.push(...problemOf(name, value, String(spec["_type"]), spec["_value"]));
  }
  for (const name of Object.keys(parameters)) {
    if (!(name in space)) problems.push(`${name} is no parameter of the search space`);
  }
  return problems;
}

function problemOf(name: string, value: Json, type: string, range: Json[]): string[] {
  if (type === "choice") {
    if (isObject(value) && typeof value["_name"] === "string") {
      const branch = range.find((one) => optionName(one) === value["_name"]);
      if (!isObject(branch))
        return [
          `${name} must be one of ${range.map(optionName).join(", ")}, got ${value["_name"]}`,
        ];
      const { _name: _ignored, ...inner } = value;
      const { _name: _alsoIgnored, ...rules } = branch;
      return problemsWith(inner, rules).map((text) => `in ${name}: ${text}`);
    }
    const known = range.some((one) => JSON.stringify(one) === JSON.stringify(value));
    return known
      ? []
      : [`${name} must be one of ${range.map(optionName).join(", ")}, got ${show(value)}`];
  }
  if (typeof value !== "number" || !Number.isFinite(value))
    return [`${name} must be a number, got ${show(value)}`];
  if (/normal/.test(type)) return [];
  const [low, high] = range as [number, number];
  if (type === "randint" && !(Number.isInteger(value) && value >= low && value < high)) {
    return [`${name} must be an integer from ${low} to ${high - 1}, got ${show(value)}`];
  }
  return value >= low && value <= high
    ? []
    : [`${name} must be from ${show(low)} to ${show(high)}, got ${show(value)}`];
}

/** Whether a value has names in it. */
export function isObject(value: Json | undefined): value is JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
