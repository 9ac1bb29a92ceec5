// Architectures of a neural architecture search: its choices, how often each candidate was chosen,
// and the models that no other one dominates.

import type { Json } from "../api/records";
import { formatShort, formatValue } from "../format";
import { isObject } from "./space";
import type { Trial } from "./trial";

export type ChoiceKind = "layer" | "inputs" | "depth" | "value" | "number" | "other";

/** One label of the model space. */
export interface Choice {
  label: string;
  kind: ChoiceKind;
  candidates: Candidate[];
  /** Number of all candidates; more than `candidates` if the space was cut off. */
  size: number;
  /** Number of inputs that are chosen; null: any number, or no inputs. */
  chosen: number | null;
  /** Range of a number, as text; empty for others. */
  range: string;
  /** Nesting depth: 0 outside of all layer choices. */
  depth: number;
  /** The candidate of a layer choice that it is inside of. */
  inside: { label: string; candidate: string } | null;
}

export interface Candidate {
  /** Value in a sample. */
  value: Json;
  /** Value, and the layer that it stands for. */
  text: string;
}

/** Counts of one choice among some models. */
export interface Tally {
  /** Number of models with each candidate, in the order of the candidates. */
  counts: number[];
  /** Least and greatest number; null for other kinds, or without models. */
  extent: [number, number] | null;
}

const KINDS: ReadonlySet<Json> = new Set<ChoiceKind>([
  "layer",
  "inputs",
  "depth",
  "value",
  "number",
  "other",
]);

/** Whether a search space is one of architectures. */
export function isArchitectureSpace(space: Json | undefined): boolean {
  return isObject(space) && Object.values(space).some((one) => isObject(one) && "kind" in one);
}

/** Return the choices of a space in its order, those inside a candidate below their choice. */
export function choicesOf(space: Json | undefined): Choice[] {
  if (!isObject(space)) return [];
  const found = new Map<string, Choice>();
  for (const [label, entry] of Object.entries(space)) {
    const choice = choiceOf(label, entry);
    if (choice) found.set(label, choice);
  }
  const inside = new Map<string, Choice[]>();
  for (const choice of found.values()) {
    const outer = choice.inside && found.has(choice.inside.label) ? choice.inside.label : "";
    inside.set(outer, [...(inside.get(outer) ?? []), choice]);
  }
  const ordered: Choice[] = [];
  const add = (choice: Choice, depth: number) => {
    ordered.push({ ...choice, depth });
    if (found.delete(choice.label))
      for (const inner of inside.get(choice.label) ?? []) add(inner, depth + 1);
  };
  for (const choice of inside.get("") ?? []) add(choice, 0);
  return ordered;
}

function choiceOf(label: string, entry: Json): Choice | null {
  if (!isObject(entry) || !KINDS.has(entry["kind"] ?? null) || !Array.isArray(entry["_value"]))
    return null;
  const kind = entry["kind"] as ChoiceKind;
  const values = entry["_value"];
  const layers = Array.isArray(entry["candidates"]) ? entry["candidates"] : [];
  const isRange = kind === "number" || kind === "other";
  const place = entry["inside"];
  return {
    label,
    kind,
    candidates: isRange
      ? []
      : values.map((value, i) => ({ value, text: candidateText(value, layers[i]) })),
    size: typeof entry["size"] === "number" ? entry["size"] : values.length,
    chosen: typeof entry["chosen"] === "number" ? entry["chosen"] : null,
    range: isRange ? rangeText(String(entry["_type"]), values) : "",
    depth: 0,
    inside:
      isObject(place) && typeof place["label"] === "string"
        ? { label: place["label"], candidate: formatValue(place["value"]) }
        : null,
  };
}

function candidateText(value: Json, layer: Json | undefined): string {
  const text = formatValue(value);
  return typeof layer === "string" ? `${text}: ${layer}` : text;
}

function rangeText(type: string, values: Json[]): string {
  const texts = values.map((one) =>
    typeof one === "number" ? formatShort(one) : formatValue(one),
  );
  if (/normal$/.test(type)) return `mean ${texts[0]}, deviation ${texts[1]}`;
  if (!/uniform$/.test(type)) return texts.join(", ");
  return `${texts[0]} … ${texts[1]}${texts[2] ? `, step ${texts[2]}` : ""}`;
}

/** Return how often each candidate of a choice occurs among models. */
export function tallyOf(choice: Choice, trials: readonly Trial[]): Tally {
  const positions = new Map(choice.candidates.map(({ value }, i) => [JSON.stringify(value), i]));
  const counts = choice.candidates.map(() => 0);
  let extent: [number, number] | null = null;
  for (const trial of trials) {
    const value = trial.flat[choice.label];
    if (value === undefined) continue;
    if (choice.kind === "number" && typeof value === "number")
      extent = extent ? [Math.min(extent[0], value), Math.max(extent[1], value)] : [value, value];
    const chosen = choice.kind === "inputs" && Array.isArray(value) ? value : [value];
    for (const one of chosen) {
      const at = positions.get(JSON.stringify(one));
      if (at !== undefined) counts[at]! += 1;
    }
  }
  return { counts, extent };
}

/** Whether a model uses a choice: one inside a candidate has no effect unless that is chosen. */
export function usesChoice(choice: Choice, choices: readonly Choice[], trial: Trial): boolean {
  const { inside } = choice;
  if (!inside) return true;
  const outer = choices.find(({ label }) => label === inside.label);
  return (
    formatValue(trial.flat[inside.label]) === inside.candidate &&
    (!outer || usesChoice(outer, choices, trial))
  );
}

/** Return what a model chose, as text: names of candidates where they have some. */
export function chosenText(choice: Choice, trial: Trial): string {
  const value = trial.flat[choice.label];
  if (value === undefined) return "–";
  const texts = new Map(choice.candidates.map((one) => [JSON.stringify(one.value), one.text]));
  const text = (one: Json) => texts.get(JSON.stringify(one)) ?? formatValue(one);
  if (choice.kind === "inputs" && Array.isArray(value))
    return value.length ? value.map(text).join(", ") : "none";
  return text(value);
}

/** A metric, and whether smaller values are better. */
export interface Goal {
  key: string;
  minimize: boolean;
}

/** Return the models that no other one dominates, in the order of the first metric. */
export function frontOf(trials: Iterable<Trial>, [first, second]: [Goal, Goal]): Trial[] {
  const loss = ({ key, minimize }: Goal, trial: Trial) => (minimize ? 1 : -1) * trial.metrics[key]!;
  const complete = [...trials].filter((trial) =>
    [first, second].every(({ key }) => Number.isFinite(trial.metrics[key] ?? NaN)),
  );
  complete.sort((a, b) => loss(first, a) - loss(first, b) || loss(second, a) - loss(second, b));
  const front: Trial[] = [];
  for (const trial of complete) {
    const last = front.at(-1);
    const equal =
      last &&
      loss(first, last) === loss(first, trial) &&
      loss(second, last) === loss(second, trial);
    if (!last || equal || loss(second, trial) < loss(second, last)) front.push(trial);
  }
  return front;
}
