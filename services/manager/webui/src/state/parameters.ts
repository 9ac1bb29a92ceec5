// What a set of parameters is of: a model of an architecture search, or a step of a compression job.

import type { Json, JsonObject } from "../api/records";
import { isObject } from "./space";

/** Return the choices of a model by label; null: the trial evaluates none. */
export function sampleOf(parameters: Json): JsonObject | null {
  if (!isObject(parameters) || !("model" in parameters)) return null;
  return isObject(parameters["sample"]) ? parameters["sample"] : null;
}

/** Return the number of the step that a set of parameters names; null: it is of no job. */
export function stepNumber(parameters: Json): number | null {
  if (!isObject(parameters) || !isObject(parameters["job"])) return null;
  const number = parameters["step"];
  return typeof number === "number" ? number : null;
}
