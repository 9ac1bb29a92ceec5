// Search spaces: dimensions to display, and validation of parameters.

import type { Json, JsonObject } from "../api/records";
import { formatValue, formatShort, parameterText } from "../format";

export interface Dimension {
  /** Full name; inside a nested choice `outer/inner`. */
  name: string;
  /** `uniform`, `choice`, …, as the space writes it; of a model space `layer`, `inputs`, …. */
  type: string;
  /** Description of the allowed values. */
  range: string;
  /** Values of a choice, as text; empty for numbers. */
  options: string[];
  /** Whether the scale is logarithmic. */
  log: boolean;
  /** Nesting depth: 0 for unconditional parameters. */
  depth: number;
  /** Smallest and largest allowed number; null without both. */
  bounds: [number, number] | null;
  /** Branch of the choice around it; empty for unconditional parameters. */
  branch: string;
}

/** Whether all values of a parameter are numbers. */
export function isNumeric({ type, options }: Dimension): boolean {
  const isNumber = (text: string) => text !== "" && Number.isFinite(Number(text));
  return type
    .split(", ")
    .every((one) =>
      one === "choice" ? options.length > 0 && options.every(isNumber) : NUMBERS.test(one),
    );
}

const NUMBERS = /^(randint|q?(log)?(uniform|normal))$/;

/** Whether a key of a space is a constraint and not a parameter. */
export function isConstraint(key: string): boolean {
  return /^_(constraints|forbid)/.test(key);
}

/** Return the dimensions of a space in its order; none for an invalid space. */
export function dimensionsOf(space: Json | undefined): Dimension[] {
  const merged = new Map<string, Dimension>();
  for (const one of dimensionsIn(space, "", 0, "")) {
    const before = merged.get(one.name);
    merged.set(one.name, before ? joined(before, one) : one);
  }
  return [...merged.values()];
}

function dimensionsIn(
  space: Json | undefined,
  prefix: string,
  depth: number,
  branch: string,
): Dimension[] {
  if (!isObject(space)) return [];
  const found: Dimension[] = [];
  for (const [key, spec] of Object.entries(space)) {
    if (key === "_name" || isConstraint(key)) continue;
    const name = prefix ? `${prefix}/${key}` : key;
    if (!isObject(spec) || typeof spec["_type"] !== "string" || !Array.isArray(spec["_value"]))
      continue;
    const type = spec["_type"];
    const value = spec["_value"];
    found.push({
      name,
      type: typeof spec["kind"] === "string" ? spec["kind"] : type,
      range: describe(type, Array.isArray(spec["candidates"]) ? spec["candidates"] : value),
      options: type === "choice" ? value.map(optionLabel) : [],
      log: /log/.test(type),
      depth,
      bounds: boundsOf(type, value),
      branch,
    });
    if (type === "choice")
      for (const option of value)
        found.push(...dimensionsIn(option, name, depth + 1, optionLabel(option)));
  }
  return found;
}

/** Return one dimension for a parameter of two branches, with the values of both. */
function joined(one: Dimension, other: Dimension): Dimension {
  const labelled = (some: Dimension) =>
    some.branch && !some.branch.includes(" | ") ? `${some.branch}: ${some.range}` : some.range;
  const equal = one.range === other.range && one.type === other.type;
  return {
    ...one,
    type: one.type === other.type ? one.type : `${one.type}, ${other.type}`,
    range: equal ? one.range : `${labelled(one)}; ${labelled(other)}`,
    options:
      one.options.length && other.options.length
        ? [...new Set([...one.options, ...other.options])]
        : [],
    log: one.log && other.log,
    bounds:
      one.bounds && other.bounds
        ? [Math.min(one.bounds[0], other.bounds[0]), Math.max(one.bounds[1], other.bounds[1])]
        : null,
    branch: equal ? one.branch : `${one.branch} | ${other.branch}`,
  };
}

function boundsOf(type: string, value: Json[]): [number, number] | null {
  const [low, high] = value;
  if (typeof low !== "number" || typeof high !== "number" || /normal|choice/.test(type))
    return null;
  const last = type === "randint" ? Math.ceil(high) - 1 : high;
  return low <= last ? [low, last] : null;
}

/** Return the name of a branch, or the text of a value. */
export function optionLabel(option: Json): string {
  return isObject(option) && typeof option["_name"] === "string"
    ? option["_name"]
    : parameterText(option);
}

/** Return a description of the allowed values of a parameter. */
export function describe(type: string, value: Json[]): string {
  const [a, b, q] = value.map((one) =>
    typeof one === "number" ? formatShort(one) : formatValue(one),
  );
  if (/^(choice|subset|other|distribution)$/.test(type)) return value.map(optionLabel).join(", ");
  if (type === "randint") return describeIntegers(value[0], value[1]);
  if (/normal/.test(type)) return `mean ${a}, deviation ${b}${q ? `, step ${q}` : ""}`;
  return `${a} … ${b}${q ? `, step ${q}` : ""}`;
}

/** Return a description of the integers in `[low, high)`. */
function describeIntegers(low: Json | undefined, high: Json | undefined): string {
  if (typeof low !== "number" || typeof high !== "number") return "integers";
  const last = Math.ceil(high) - 1;
  return low >= last ? `${formatShort(low)}` : `${formatShort(low)} … ${formatShort(last)}`;
}

/** Return messages about parameters of the user that violate the space; empty: valid. */
export function validateParameters(parameters: JsonObject, space: Json | undefined): string[] {
  if (!isObject(space)) return [];
  const problems: string[] = [];
  for (const [name, spec] of Object.entries(space)) {
    if (isConstraint(name) || !isObject(spec) || !Array.isArray(spec["_value"])) continue;
    const value = parameters[name];
    if (value === undefined) problems.push(`${name} is missing`);
    else problems.push(...validateValue(name, value, String(spec["_type"]), spec["_value"]));
  }
  for (const name of Object.keys(parameters)) {
    if (!(name in space)) problems.push(`${name} is not a parameter of the search space`);
  }
  return problems;
}

function validateValue(name: string, value: Json, type: string, range: Json[]): string[] {
  if (type === "choice") {
    if (isObject(value) && typeof value["_name"] === "string") {
      const branch = range.find((one) => optionLabel(one) === value["_name"]);
      if (!isObject(branch))
        return [
          `${name} must be one of ${range.map(optionLabel).join(", ")}, got ${value["_name"]}`,
        ];
      const { _name: _ignored, ...inner } = value;
      const { _name: _alsoIgnored, ...rules } = branch;
      return validateParameters(inner, rules).map((text) => `in ${name}: ${text}`);
    }
    const known = range.some((one) => JSON.stringify(one) === JSON.stringify(value));
    return known
      ? []
      : [`${name} must be one of ${range.map(optionLabel).join(", ")}, got ${formatValue(value)}`];
  }
  if (typeof value !== "number" || !Number.isFinite(value))
    return [`${name} must be a number, got ${formatValue(value)}`];
  if (/normal/.test(type)) return [];
  const [low, high] = range as [number, number];
  if (type === "randint" && !(Number.isInteger(value) && value >= low && value < high)) {
    return [`${name} must be an integer from ${low} to ${high - 1}, got ${formatValue(value)}`];
  }
  return value >= low && value <= high
    ? []
    : [
        `${name} must be from ${formatValue(low)} to ${formatValue(high)}, got ${formatValue(value)}`,
      ];
}

/** Whether a value is a JSON object. */
export function isObject(value: Json | undefined): value is JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
