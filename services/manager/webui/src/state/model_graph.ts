// Network of a model space as graphs, and the parts of it that one model uses.

import type { Json } from "../api/records";
import { formatValue } from "../format";
import { type Choice, chosenText, usesChoice } from "./architectures";
import { isObject } from "./space";
import type { Trial } from "./trial";

const NODE_KINDS = [
  "input",
  "output",
  "module",
  "function",
  "tensor",
  "layer",
  "inputs",
  "depth",
] as const;
export type NodeKind = (typeof NODE_KINDS)[number];

export interface ModelGraph {
  /** The first one is the network; a malformed one is null, so that positions stay. */
  graphs: (LayerGraph | null)[];
  /** Whether a part of the network is left out. */
  cut: boolean;
}

/** Graph of one module. */
export interface LayerGraph {
  name: string;
  /** Whether the data flow is known; otherwise there are no edges. */
  traced: boolean;
  nodes: GraphNode[];
  edges: GraphEdge[];
}

export interface GraphNode {
  name: string;
  kind: NodeKind;
  text: string;
  /** Labels of the choices of the node or inside of it, its own first. */
  labels: string[];
  /** Position of the graph inside; null: none. */
  graph: number | null;
  candidates: GraphCandidate[];
}

export interface GraphCandidate {
  name: string;
  text: string;
  graph: number | null;
}

export interface GraphEdge {
  /** Positions in the nodes. */
  from: number;
  to: number;
  /** Choice and value that use the edge; null: every model does. */
  condition: { label: string; value: Json } | null;
}

/** Limits of a record: the SDK writes some 1,000 nodes and 2,000 edges. */
const MOST_NODES = 3_000;
const MOST_EDGES = 20_000;
const MOST_CANDIDATES = 500;
const MOST_LABELS = 100;
/** Length of a path into the network. */
const MOST_STEPS = 50;

interface Room {
  nodes: number;
  edges: number;
  cut: boolean;
}

/** Return the graphs of a record without its malformed parts; null if there is no network. */
export function modelGraphOf(record: Json | undefined): ModelGraph | null {
  if (!isObject(record) || !Array.isArray(record["graphs"])) return null;
  const room: Room = { nodes: MOST_NODES, edges: MOST_EDGES, cut: record["cut"] === true };
  const graphs = record["graphs"].slice(0, MOST_NODES).map((one) => graphOf(one, room));
  if (!graphs[0]?.nodes.length) return null;
  const known = (at: number | null) => (at !== null && graphs[at]?.nodes.length ? at : null);
  for (const { nodes } of graphs.filter((one) => one !== null))
    for (const node of nodes) {
      node.graph = known(node.graph);
      for (const candidate of node.candidates) candidate.graph = known(candidate.graph);
    }
  return { graphs, cut: room.cut };
}

function graphOf(record: Json, room: Room): LayerGraph | null {
  if (!isObject(record) || !Array.isArray(record["nodes"])) return null;
  const nodes: GraphNode[] = [];
  const places: (number | undefined)[] = []; // by the position in the record
  for (const one of record["nodes"]) {
    const node = nodeOf(one);
    if (node && room.nodes === 0) room.cut = true;
    const isKept = node !== null && room.nodes > 0;
    places.push(isKept ? nodes.length : undefined);
    if (!isKept) continue;
    room.nodes -= 1;
    nodes.push(node);
  }
  const edges: GraphEdge[] = [];
  for (const one of Array.isArray(record["edges"]) ? record["edges"] : []) {
    const edge = edgeOf(one, places);
    if (edge && room.edges === 0) room.cut = true;
    if (!edge || room.edges === 0) continue;
    room.edges -= 1;
    edges.push(edge);
    // A node depends on the choice of its inputs, too.
    const { labels } = nodes[edge.to]!;
    if (edge.condition && !labels.includes(edge.condition.label)) labels.push(edge.condition.label);
  }
  return { name: textOf(record["name"]), traced: record["traced"] !== false, nodes, edges };
}

function nodeOf(record: Json): GraphNode | null {
  if (!isObject(record) || typeof record["name"] !== "string") return null;
  const kind = NODE_KINDS.find((one) => one === record["kind"]);
  if (!kind) return null;
  const candidates = Array.isArray(record["candidates"]) ? record["candidates"] : [];
  const labels = Array.isArray(record["labels"]) ? record["labels"] : [];
  return {
    name: record["name"],
    kind,
    text: textOf(record["text"]),
    labels: labels.filter((one) => typeof one === "string").slice(0, MOST_LABELS),
    graph: positionOf(record["graph"]),
    candidates: candidates.slice(0, MOST_CANDIDATES).flatMap((one) =>
      isObject(one) && typeof one["name"] === "string"
        ? {
            name: one["name"],
            text: textOf(one["text"]),
            graph: positionOf(one["graph"]),
          }
        : [],
    ),
  };
}

function edgeOf(record: Json, places: readonly (number | undefined)[]): GraphEdge | null {
  if (!Array.isArray(record)) return null;
  const [from, to] = record.slice(0, 2).map((one) => places[positionOf(one) ?? -1]);
  if (from === undefined || to === undefined || from === to) return null;
  if (record.length === 2) return { from, to, condition: null };
  const [label, value] = record.slice(2);
  if (typeof label !== "string" || value === undefined) return null;
  return { from, to, condition: { label, value } };
}

function textOf(record: Json | undefined): string {
  return typeof record === "string" ? record : "";
}

function positionOf(record: Json | undefined): number | null {
  return typeof record === "number" && Number.isInteger(record) && record >= 0 ? record : null;
}

/** One graph on the way into the network. */
export interface Step {
  name: string;
  /** Position of the graph. */
  graph: number;
  /** The way to it, in the address; empty: the network. */
  path: string;
  /** Node, and position of the candidate, that the graph is inside of; null: the network. */
  inside: { node: GraphNode; candidate: number | null } | null;
}

/**
 * Return the graphs from the network to the open one, which is the last.
 *
 * Args:
 *   model: the network.
 *   path: positions of nodes, parted by commas; `2:1` is the second candidate of the third node. The
 *     part that names no graph has no effect.
 */
export function stepsOf(model: ModelGraph, path: string): Step[] {
  const steps: Step[] = [{ name: model.graphs[0]!.name, graph: 0, path: "", inside: null }];
  for (const part of path.split(",").slice(0, MOST_STEPS)) {
    const match = /^(\d+)(?::(\d+))?$/.exec(part);
    const last = steps.at(-1)!;
    const node = match && model.graphs[last.graph]!.nodes[Number(match[1])];
    if (!node) break;
    const at = match[2] === undefined ? null : Number(match[2]);
    const candidate = at === null ? null : node.candidates[at];
    const graph = at === null ? node.graph : (candidate?.graph ?? null);
    if (graph === null || !canOpen(steps, graph)) break;
    steps.push({
      name: candidate ? `${node.name} · ${candidateText(candidate)}` : node.name,
      graph,
      path: last.path ? `${last.path},${part}` : part,
      inside: { node, candidate: at },
    });
  }
  return steps;
}

/** Whether a graph leads further in: one that contains itself would do so without an end. */
export function canOpen(steps: readonly Step[], graph: number | null): graph is number {
  return (
    graph !== null && steps.length <= MOST_STEPS && !steps.some((step) => step.graph === graph)
  );
}

/** Return the name of a candidate with its layer; of one without a name the layer. */
export function candidateText(candidate: GraphCandidate): string {
  const { name, text } = candidate;
  const short = shortText(candidate);
  return text && short === name && text !== name ? `${name}: ${text}` : short;
}

/** Return the name of a candidate, or the layer of one that has only a number. */
function shortText({ name, text }: GraphCandidate): string {
  return text && /^\d*$/.test(name) ? text : name;
}

/** What one model chose at a node. */
export interface NodeChoice {
  text: string;
  /** Whether the model uses each candidate. */
  used: boolean[];
}

/** Number of values that the text of a choice lists. */
const MOST_VALUES = 3;

/**
 * Return what a model chose at a node; null if the node depends on no choice.
 *
 * Args:
 *   node: the node.
 *   choices: choices of the space.
 *   trial: the model.
 *   read: names of the nodes that it reads by choice, where the edges are known.
 */
export function choiceAt(
  node: GraphNode,
  choices: readonly Choice[],
  trial: Trial,
  read: readonly string[] = [],
): NodeChoice | null {
  const { kind, labels, candidates } = node;
  const own = labels[0];
  if (own === undefined) return null;
  const value = trial.flat[own];
  const isUsed = (label: string) => {
    const choice = choices.find((one) => one.label === label);
    return Object.hasOwn(trial.flat, label) && (!choice || usesChoice(choice, choices, trial));
  };
  const all = (used: boolean) => candidates.map(() => used);
  if (!labels.some(isUsed)) return { text: "not used by this model", used: all(false) };
  const reads = read.length ? `; reads ${read.join(", ")}` : "";
  if (kind === "inputs" && read.length)
    return { text: `chosen: ${read.join(", ")}`, used: all(true) };
  if (kind === "layer") {
    const chosen = candidates.findIndex(({ name }) => name === formatValue(value));
    if (chosen >= 0)
      return {
        text: `chosen: ${shortText(candidates[chosen]!)}${reads}`,
        used: candidates.map((_, at) => at === chosen),
      };
  }
  if (kind === "depth" && typeof value === "number")
    return {
      text: `chosen: ${formatValue(value)} of ${candidates.length}${reads}`,
      used: candidates.map((_, at) => at < value),
    };
  const values = (kind === "inputs" ? [own] : labels).filter(isUsed).map((label) => {
    const choice = choices.find((one) => one.label === label);
    return `${label} ${choice ? chosenText(choice, trial) : formatValue(trial.flat[label])}`;
  });
  const more = values.length - MOST_VALUES;
  const text = values.slice(0, MOST_VALUES).join(", ");
  const rest = more > 0 ? `, ${more} more` : "";
  return { text: `chosen: ${text}${rest}${reads}`, used: all(true) };
}

/** Whether a model uses an edge; one whose choice it does not name counts as used. */
export function usesEdge({ condition }: GraphEdge, trial: Trial): boolean {
  if (!condition) return true;
  const chosen = trial.flat[condition.label];
  if (chosen === undefined) return true;
  const wanted = JSON.stringify(condition.value);
  return (Array.isArray(chosen) ? chosen : [chosen]).some((one) => JSON.stringify(one) === wanted);
}

/** Return, for each node, the names of the nodes that a model reads there by choice. */
export function chosenInputs({ nodes, edges }: LayerGraph, trial: Trial): string[][] {
  const read: string[][] = nodes.map(() => []);
  for (const edge of edges)
    if (edge.condition && Object.hasOwn(trial.flat, edge.condition.label) && usesEdge(edge, trial))
      read[edge.to]!.push(nodes[edge.from]!.name);
  return read;
}

/** Whether a model uses the open graph: it may be inside of a candidate that was not chosen. */
export function usesSteps(
  steps: readonly Step[],
  choices: readonly Choice[],
  trial: Trial,
): boolean {
  return steps.every(({ inside }) => {
    if (!inside || inside.candidate === null) return true;
    return choiceAt(inside.node, choices, trial)?.used[inside.candidate] ?? true;
  });
}

/** Return the number of nodes of a graph, and of those that depend on choices, as a sentence. */
export function summaryOf({ nodes }: LayerGraph): string {
  const chosen = nodes.filter(({ labels }) => labels.length > 0).length;
  const all = `${nodes.length.toLocaleString("en")} ${nodes.length === 1 ? "node" : "nodes"}`;
  return `${all}, ${chosen || "none"} of ${nodes.length === 1 ? "it" : "them"} with choices`;
}
