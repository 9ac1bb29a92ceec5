// Picture of a network, for its files.

import { candidateText, type LayerGraph, type NodeChoice } from "../state/model_graph";
import { boxSize, listedCandidates, nodeText, ROW_PX, TEXT_PX } from "./network_boxes";
import { type Box, headOf, type NetworkLayout, type Point } from "./network_layout";
import type { Picture, Shape } from "./picture";

export interface NetworkColours {
  ink: string;
  muted: string;
  card: string;
  shade: string;
  line: string;
  accent: string;
  accentShade: string;
}

/** What the picture shows of the model that is chosen, by node and by edge. */
export interface Shown {
  choices: readonly (NodeChoice | null)[];
  edges: readonly boolean[];
  /** Whether the model uses this graph. */
  isUsed: boolean;
}

/** Padding of a box. */
const LEFT_PX = 10;
const TOP_PX = 7;
const MARK_PX = 18;
/** Number of straight pieces of a curve. */
const PIECES = 12;

/** Return the picture of a graph with what the page shows of it. */
export function networkPicture(
  graph: LayerGraph,
  layout: NetworkLayout,
  shown: Shown,
  colours: NetworkColours,
): Picture {
  const edges = layout.lines.flatMap((line, at): Shape[] => {
    const isUsed = shown.edges[at]!;
    const stroke = graph.edges[at]!.condition && isUsed ? colours.accent : colours.line;
    const dash = isUsed ? [] : [4, 4];
    return [
      { kind: "line", points: curveOf(line), stroke, width: 1.4, dash },
      { kind: "line", points: headOf(line), fill: stroke },
    ];
  });
  const nodes = layout.boxes.flatMap((box, at) => boxShapes(graph, at, box, shown, colours));
  return { width: layout.width, height: layout.height, shapes: [...edges, ...nodes] };
}

function boxShapes(
  graph: LayerGraph,
  at: number,
  box: Box,
  { choices, isUsed }: Shown,
  colours: NetworkColours,
): Shape[] {
  const node = graph.nodes[at]!;
  const isChoice = node.labels.length > 0 && isUsed;
  const isModule = isChoice || node.kind === "module";
  const fill = isChoice ? colours.accentShade : isModule ? colours.card : colours.shade;
  const edge = isChoice ? colours.accent : colours.line;
  const ink = isUsed ? colours.ink : colours.muted;
  const choice = choices[at] ?? null;
  const texts: Shape[] = [];
  let top = box.y + TOP_PX;
  const add = (text: string, height: number, colour: string, bold = false, indent = 0) => {
    const x = box.x + LEFT_PX + indent;
    const y = top + height / 2;
    texts.push({ kind: "text", x, y, text, colour, anchor: "start", bold });
    top += height;
  };
  add(node.name, ROW_PX, ink, true);
  const text = nodeText(node);
  if (text) add(text, TEXT_PX, colours.muted);
  if (node.labels.length)
    add(isUsed && choice ? choice.text : `choice: ${node.labels.join(", ")}`, TEXT_PX, ink, true);
  // The box tells whether all candidates are listed.
  const listed = listedCandidates(node, box.height >= boxSize(node, true).height);
  node.candidates.slice(0, listed).forEach((candidate, i) => {
    const used = isUsed && (choice?.used[i] ?? true);
    const isChosen = choice !== null && used;
    const mark = `${isChosen ? "✓" : "·"} ${candidateText(candidate)}`;
    add(mark, ROW_PX, used ? ink : colours.muted, isChosen, MARK_PX - LEFT_PX);
  });
  if (listed < node.candidates.length)
    add(`${node.candidates.length - listed} more`, ROW_PX, colours.muted);
  const inside = { x: box.x, y: box.y, width: box.width - LEFT_PX / 2, height: box.height };
  return [
    { kind: "rect", ...box, colour: fill, pattern: "solid" },
    { kind: "rect", ...box, colour: edge, pattern: "outlined" },
    { kind: "clip", ...inside, shapes: texts },
  ];
}

/** Return the points of the smooth path of an edge. */
function curveOf(line: readonly Point[]): Point[] {
  const points: Point[] = [line[0]!];
  for (let at = 1; at < line.length; at += 1) {
    const [[x, y], [nextX, nextY]] = [line[at - 1]!, line[at]!];
    const pieces = x === nextX ? 1 : PIECES;
    for (let piece = 1; piece <= pieces; piece += 1) {
      const part = piece / pieces;
      // Cubic Bézier curve with both handles halfway down, as in `pathOf`.
      const across = part * part * (3 - 2 * part);
      const down = part * (1.5 - 1.5 * part + part * part);
      points.push([x + (nextX - x) * across, y + (nextY - y) * down]);
    }
  }
  return points;
}
