// Steps of a compression job, from its description and its trials.

import type { JsonObject } from "../api/records";
import { stepNumber } from "./parameters";
import { isObject } from "./space";
import type { Trial } from "./trial";

export type StepKind = "prune" | "speedup" | "fine_tune" | "quantize" | "export";

export interface Step {
  /** From 1. */
  number: number;
  kind: StepKind;
  /** Its last trial; undefined: it was not started. */
  trial: Trial | undefined;
  /** Part of all prunable weights that is masked, 0 to 1; null if unknown. */
  sparsity: number | null;
}

/** Part of one target that is masked. */
export interface LayerSparsity {
  target: string;
  sparsity: number;
}

/** Return the description of the job of an experiment; null: it is none. */
export function jobOf(params: JsonObject): JsonObject | null {
  const job = params["compression"];
  return isObject(job) ? job : null;
}

/** Return the steps of a job in order, each with its last trial. */
export function stepsOf(job: JsonObject, trials: Iterable<Trial>): Step[] {
  const latest = new Map<number, Trial>();
  for (const trial of trials) {
    const number = stepNumber(trial.parameters);
    if (number !== null && trial.number >= (latest.get(number)?.number ?? -1))
      latest.set(number, trial);
  }
  const schedule = isObject(job["schedule"]) ? job["schedule"] : {};
  const iterations = typeof schedule["iterations"] === "number" ? schedule["iterations"] : 1;
  const kinds = [...Array<StepKind>(iterations).fill("prune"), ...laterKinds(job)];
  return kinds.map((kind, index) => {
    const trial = latest.get(index + 1);
    return {
      number: index + 1,
      kind,
      trial,
      sparsity: mean(layersOf(trial)),
    };
  });
}

function laterKinds(job: JsonObject): StepKind[] {
  const speedup = job["speedup"];
  const wanted: [StepKind, unknown][] = [
    ["speedup", speedup],
    ["fine_tune", isObject(speedup) && speedup["fine_tuning"]],
    ["quantize", job["quantization"]],
    ["export", job["export"]],
  ];
  return wanted.flatMap(([kind, has]) => (has ? [kind] : []));
}

/** Return the masked part of each weight after a step, in the order of the model. */
export function layersOf(trial: Trial | undefined): LayerSparsity[] {
  const sparsity = isObject(trial?.result) ? trial.result["sparsity"] : null;
  if (!isObject(sparsity)) return [];
  return Object.entries(sparsity).flatMap(([target, part]) =>
    typeof part === "number" ? [{ target, sparsity: part }] : [],
  );
}

function mean(layers: LayerSparsity[]): number | null {
  const weights = layers.filter(({ target }) => target.endsWith(".weight"));
  if (!weights.length) return null;
  return weights.reduce((sum, { sparsity }) => sum + sparsity, 0) / weights.length;
}
