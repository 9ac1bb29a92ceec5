// Form fields of parameters: a nested choice has one field for its branch, and those of the
// selected branch.

import type { Json, JsonObject } from "../api/records";
import { describe, isObject, isConstraint, optionLabel } from "./space";

export interface Field {
  /** Full name: `outer/inner` inside of a nested choice. */
  name: string;
  /** Description of the allowed values. */
  hint: string;
  /** Options to choose from; empty: free text. */
  options: string[];
  depth: number;
}

/** Texts of the fields by full name: JSON, or the name of a branch. */
export type Texts = Record<string, string>;

/** Return the field texts of parameters. */
export function fieldTexts(parameters: JsonObject, prefix = ""): Texts {
  const texts: Texts = {};
  for (const [key, value] of Object.entries(parameters)) {
    const name = prefix + key;
    if (isObject(value) && typeof value["_name"] === "string") {
      const { _name, ...inner } = value;
      Object.assign(texts, { [name]: _name }, fieldTexts(inner, `${name}/`));
    } else {
      texts[name] = JSON.stringify(value);
    }
  }
  return texts;
}

/** Return the fields of a search space, with those of the selected branches. */
export function formFields(space: Json | undefined, texts: Texts, prefix = "", depth = 0): Field[] {
  if (!isObject(space)) return [];
  const fields: Field[] = [];
  for (const [key, spec] of Object.entries(space)) {
    if (key === "_name" || isConstraint(key) || !isObject(spec) || !Array.isArray(spec["_value"]))
      continue;
    const name = prefix + key;
    const type = String(spec["_type"]);
    const values = spec["_value"];
    const options =
      type === "choice"
        ? values.map((one) => (isObject(one) ? optionLabel(one) : JSON.stringify(one)))
        : [];
    fields.push({
      name,
      hint: type === "choice" ? "choice" : `${type}: ${describe(type, values)}`,
      options,
      depth,
    });
    const branch = values.find((one) => isObject(one) && optionLabel(one) === texts[name]);
    if (branch) fields.push(...formFields(branch, texts, `${name}/`, depth + 1));
  }
  return fields;
}

/** Return the parameters of the field texts, and messages about invalid texts. */
export function parseFields(
  space: Json | undefined,
  texts: Texts,
): { parameters: JsonObject; problems: string[] } {
  const problems: string[] = [];
  const build = (part: Json | undefined, prefix: string): JsonObject => {
    const made: JsonObject = {};
    if (!isObject(part)) return made;
    for (const [key, spec] of Object.entries(part)) {
      const text = (texts[prefix + key] ?? "").trim();
      if (key === "_name" || isConstraint(key) || !isObject(spec) || text === "") continue;
      const values = Array.isArray(spec["_value"]) ? spec["_value"] : [];
      const branch = values.find((one) => isObject(one) && optionLabel(one) === text);
      if (branch) made[key] = { _name: text, ...build(branch, `${prefix}${key}/`) };
      else made[key] = valueOf(text, prefix + key, problems);
    }
    return made;
  };
  return { parameters: build(space, ""), problems };
}

/** Return the value of a text: JSON, or a bare word. */
function valueOf(text: string, name: string, problems: string[]): Json {
  if (/^[A-Za-z_][\w./ -]*$/.test(text) && !["true", "false", "null"].includes(text)) return text;
  try {
    return JSON.parse(text) as Json;
  } catch {
    problems.push(`${name} must be a number, a word or JSON, got ${text}`);
    return null;
  }
}
