// Size of the boxes of a network: rows of text of fixed height, as in the style sheet.

import type { GraphNode } from "../state/model_graph";
import type { Size } from "./network_layout";

/** Number of candidates that a box lists before a click. */
const FEW_CANDIDATES = 6;
const WIDTH_PX = 216;
const WIDE_PX = 276;
/** Border and padding, above and below together. */
const FRAME_PX = 14;
export const ROW_PX = 24;
export const TEXT_PX = 18;

/** Return the number of candidates that a box lists. */
export function listedCandidates({ candidates }: GraphNode, all: boolean): number {
  // One more takes no more room than the row that would say so.
  return all || candidates.length <= FEW_CANDIDATES + 1 ? candidates.length : FEW_CANDIDATES;
}

/** Return the text of a node below its name; empty if that says it all. */
export function nodeText({ name, text, kind }: GraphNode): string {
  if (kind === "layer") return "one of these layers";
  if (kind === "depth") return "the first of these, in a row";
  return text || (kind === "module" || name === kind ? "" : kind);
}

/** Return the size of a node's box; `all`: with all candidates. */
export function boxSize(node: GraphNode, all: boolean): Size {
  const listed = listedCandidates(node, all);
  const rows = 1 + listed + (listed < node.candidates.length ? 1 : 0);
  const texts = (nodeText(node) ? 1 : 0) + (node.labels.length ? 1 : 0);
  return {
    width: node.candidates.length ? WIDE_PX : WIDTH_PX,
    height: FRAME_PX + rows * ROW_PX + texts * TEXT_PX,
  };
}
