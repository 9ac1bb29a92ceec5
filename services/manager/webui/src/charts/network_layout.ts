// Layered layout of a graph: data flows down, edges pass between the boxes.
//
// Sugiyama, Tagawa and Toda, 1981: ranks by the longest path, positions in a rank by the mean
// position of the neighbours. An edge over several ranks has a joint in each rank that it passes.

import type { GraphEdge } from "../state/model_graph";

export interface Size {
  width: number;
  height: number;
}

export type Point = readonly [number, number];

/** Box of a node; `x` and `y` are its upper left corner, in px. */
export interface Box extends Size {
  x: number;
  y: number;
}

export interface NetworkLayout extends Size {
  /** Boxes of the nodes, in their order. */
  boxes: Box[];
  /** Points of the edges, in their order. */
  lines: Point[][];
  /** Positions of the nodes in the order of the data flow. */
  order: number[];
}

/** Gaps between boxes of a rank, and between ranks. */
const ACROSS_PX = 28;
const DOWN_PX = 44;
/** Room of an edge that passes a rank. */
const JOINT_PX = 14;
/** Space around the drawing, where joints may be. */
const EDGE_PX = 8;
/** Largest distance of the ends of edges at one side of a box. */
const PORT_PX = 26;
/** Number of joints above which long edges are drawn straight: the time grows with it. */
const MOST_JOINTS = 4_000;
const ORDER_SWEEPS = 8;
const PLACE_SWEEPS = 12;

interface Cell {
  rank: number;
  width: number;
  /** Middle of the cell across. */
  at: number;
  above: number[];
  below: number[];
  isJoint: boolean;
}

/** Return the layout of nodes below each other, for a graph without known data flow. */
export function columnOf(sizes: readonly Size[]): NetworkLayout {
  let y = EDGE_PX;
  const width = Math.max(0, ...sizes.map((size) => size.width));
  const boxes = sizes.map((size) => {
    const box = { ...size, x: EDGE_PX, y };
    y += size.height + DOWN_PX / 3;
    return box;
  });
  return {
    width: width + 2 * EDGE_PX,
    height: y - DOWN_PX / 3 + EDGE_PX,
    boxes,
    lines: [],
    order: sizes.map((_, at) => at),
  };
}

/** Return the layout of nodes with sizes; edges against the flow, in a cycle, lead up. */
export function layoutOf(sizes: readonly Size[], edges: readonly GraphEdge[]): NetworkLayout {
  const flow = flowOrder(sizes.length, edges);
  const forward = edges.map(({ from, to }) => flow[from]! < flow[to]!);
  const ranks = ranksOf(sizes.length, edges, forward, flow);
  const cells = ranks.map((rank, at): Cell => ({
    rank,
    width: sizes[at]!.width,
    at: 0,
    above: [],
    below: [],
    isJoint: false,
  }));
  const joints = addEdges(cells, edges, forward);
  const layers = orderedLayers(cells, flow);
  placeAcross(cells, layers);
  const { tops, bottoms } = placeDown(cells, layers, sizes);
  const boxes = sizes.map((size, at): Box => ({
    ...size,
    x: Math.round(cells[at]!.at - size.width / 2),
    y: tops[cells[at]!.rank]!,
  }));
  const lines = edges.map((_, at) =>
    joints[at]!.flatMap((joint): Point[] => {
      const { rank, at: x } = cells[joint]!;
      return [
        [Math.round(x), tops[rank]!],
        [Math.round(x), bottoms[rank]!],
      ];
    }),
  );
  addEnds(lines, edges, boxes);
  lines.forEach((line, at) => {
    // Down to the end of the rank: taller boxes may stand beside this one.
    const [x, y] = line[0]!;
    const bottom = bottoms[cells[edges[at]!.from]!.rank]!;
    if (forward[at] && y < bottom) line.splice(1, 0, [x, bottom]);
  });
  const order = sizes.map((_, at) => at);
  order.sort((a, b) => boxes[a]!.y - boxes[b]!.y || boxes[a]!.x - boxes[b]!.x || a - b);
  const right = Math.max(0, ...cells.map(({ at, width }) => at + width / 2));
  const last = bottoms.at(-1) ?? 0;
  return { width: Math.ceil(right) + EDGE_PX, height: last + EDGE_PX, boxes, lines, order };
}

/** Return the place of each node in an order in which edges lead on, except those of cycles. */
function flowOrder(size: number, edges: readonly GraphEdge[]): number[] {
  const targets: number[][] = Array.from({ length: size }, () => []);
  const waiting = new Array<number>(size).fill(0);
  for (const { from, to } of edges) {
    targets[from]!.push(to);
    waiting[to]! += 1;
  }
  const places = new Array<number>(size).fill(-1);
  let next = 0;
  const add = (first: number) => {
    const ready = [first];
    for (let at = ready.pop(); at !== undefined; at = ready.pop()) {
      places[at] = next;
      next += 1;
      for (const to of targets[at]!.toReversed()) {
        waiting[to]! -= 1;
        if (waiting[to] === 0 && places[to]! < 0) ready.push(to);
      }
    }
  };
  const starts = waiting.flatMap((count, at) => (count === 0 ? at : []));
  for (const at of starts) if (places[at]! < 0) add(at);
  for (let at = 0; at < size; at += 1) if (places[at]! < 0) add(at); // a cycle begins here
  return places;
}

function ranksOf(
  size: number,
  edges: readonly GraphEdge[],
  forward: readonly boolean[],
  flow: readonly number[],
): number[] {
  const ranks = new Array<number>(size).fill(0);
  const used = edges.filter((_, at) => forward[at]);
  const sorted = used.toSorted((a, b) => flow[a.from]! - flow[b.from]!);
  for (const { from, to } of sorted) ranks[to] = Math.max(ranks[to]!, ranks[from]! + 1);
  // What nothing leads to stands just above its first reader.
  const isRead = new Set(used.map(({ to }) => to));
  const first = new Map<number, number>();
  for (const { from, to } of used)
    if (!isRead.has(from)) first.set(from, Math.min(first.get(from) ?? Infinity, ranks[to]!));
  for (const [at, rank] of first) ranks[at] = rank - 1;
  return ranks;
}

/** Connect cells, with new ones where an edge passes a rank; return those of each edge. */
function addEdges(
  cells: Cell[],
  edges: readonly GraphEdge[],
  forward: readonly boolean[],
): number[][] {
  const spans = edges.map(({ from, to }, at) =>
    forward[at] ? cells[to]!.rank - cells[from]!.rank : 0,
  );
  const isStraight = spans.reduce((sum, span) => sum + Math.max(0, span - 1), 0) > MOST_JOINTS;
  return edges.map(({ from, to }, at) => {
    const joints: number[] = [];
    if (spans[at]! < 1 || (isStraight && spans[at]! > 1)) return joints;
    let before = from;
    const connect = (next: number) => {
      cells[before]!.below.push(next);
      cells[next]!.above.push(before);
      before = next;
    };
    for (let rank = cells[from]!.rank + 1; rank < cells[to]!.rank; rank += 1) {
      const joint = { rank, width: JOINT_PX, at: 0, above: [], below: [], isJoint: true };
      joints.push(cells.push(joint) - 1);
      connect(joints.at(-1)!);
    }
    connect(to);
    return joints;
  });
}

/** Return the cells of each rank from left to right, with few crossings of edges. */
function orderedLayers(cells: readonly Cell[], flow: readonly number[]): number[][] {
  const layers: number[][] = [];
  cells.forEach(({ rank }, at) => (layers[rank] ??= []).push(at));
  const full = Array.from(layers, (layer) => layer ?? []);
  for (const layer of full) layer.sort((a, b) => (flow[a] ?? a) - (flow[b] ?? b));
  const places: number[] = [];
  const number = (layer: number[]) => layer.forEach((at, place) => (places[at] = place));
  full.forEach(number);
  for (let sweep = 0; sweep < ORDER_SWEEPS; sweep += 1) {
    const isDown = sweep % 2 === 0;
    for (const layer of isDown ? full : full.toReversed()) {
      const wanted = new Map(
        layer.map((at) => {
          const near = isDown ? cells[at]!.above : cells[at]!.below;
          return [at, near.length ? mean(near.map((one) => places[one]!)) : places[at]!];
        }),
      );
      layer.sort((a, b) => wanted.get(a)! - wanted.get(b)! || places[a]! - places[b]!);
      number(layer);
    }
  }
  return full;
}

/** Set the middle of each cell: near its neighbours, and beside the others of its rank. */
function placeAcross(cells: readonly Cell[], layers: readonly number[][]): void {
  for (const layer of layers)
    pack(
      cells,
      layer,
      layer.map(() => 0),
    );
  for (let sweep = 0; sweep <= PLACE_SWEEPS; sweep += 1) {
    const isDown = sweep % 2 === 0;
    for (const layer of isDown ? layers : layers.toReversed()) {
      const wanted = layer.map((one) => {
        const { above, below, at } = cells[one]!;
        const near =
          sweep === PLACE_SWEEPS || !(isDown ? above : below).length
            ? [...above, ...below]
            : isDown
              ? above
              : below;
        return near.length ? mean(near.map((other) => cells[other]!.at)) : at;
      });
      pack(cells, layer, wanted);
    }
  }
  // Straight chains: what only one cell leads to, and that leads to nothing else, is right below it.
  for (const layer of layers)
    pack(
      cells,
      layer,
      layer.map((one) => {
        const [above, ...others] = cells[one]!.above;
        const isChain = above !== undefined && !others.length && cells[above]!.below.length === 1;
        return isChain ? cells[above]!.at : cells[one]!.at;
      }),
    );
  const left = Math.min(...cells.map(({ at, width }) => at - width / 2), Infinity);
  for (const cell of cells) cell.at += EDGE_PX - left;
}

/**
 * Place the cells of a rank as near to wanted places as their widths allow, in their order.
 *
 * Without the widths between them the places have only to ascend, so this is isotonic regression;
 * joints weigh more, which keeps long edges straight.
 */
function pack(cells: readonly Cell[], layer: readonly number[], wanted: readonly number[]): void {
  const offsets: number[] = [];
  layer.forEach((one, at) => {
    const before = at ? cells[layer[at - 1]!]! : null;
    const { width, isJoint } = cells[one]!;
    const gap = before?.isJoint && isJoint ? 0 : ACROSS_PX;
    offsets.push(before ? offsets[at - 1]! + (before.width + width) / 2 + gap : 0);
  });
  const blocks: { sum: number; weight: number; count: number }[] = [];
  layer.forEach((one, at) => {
    const weight = cells[one]!.isJoint ? 4 : 1;
    let block = { sum: (wanted[at]! - offsets[at]!) * weight, weight, count: 1 };
    for (let last = blocks.at(-1); last; last = blocks.at(-1)) {
      if (last.sum / last.weight <= block.sum / block.weight) break;
      blocks.pop();
      block = {
        sum: last.sum + block.sum,
        weight: last.weight + block.weight,
        count: last.count + block.count,
      };
    }
    blocks.push(block);
  });
  let at = 0;
  for (const { sum, weight, count } of blocks)
    for (const end = at + count; at < end; at += 1)
      cells[layer[at]!]!.at = sum / weight + offsets[at]!;
}

/** Return the upper and the lower end of each rank. */
function placeDown(
  cells: readonly Cell[],
  layers: readonly number[][],
  sizes: readonly Size[],
): { tops: number[]; bottoms: number[] } {
  const tops: number[] = [];
  const bottoms: number[] = [];
  let top = EDGE_PX;
  for (const layer of layers) {
    const heights = layer.map((at) => (cells[at]!.isJoint ? 0 : sizes[at]!.height));
    tops.push(top);
    bottoms.push(top + Math.max(0, ...heights));
    top = bottoms.at(-1)! + DOWN_PX;
  }
  return { tops, bottoms };
}

/** Add the ends of edges at the boxes, beside each other in the order of where they come from. */
function addEnds(lines: Point[][], edges: readonly GraphEdge[], boxes: readonly Box[]): void {
  const middle = ({ x, width }: Box) => x + width / 2;
  const isUp = edges.map(({ from, to }) => boxes[to]!.y < boxes[from]!.y + boxes[from]!.height);
  const end = (
    own: (edge: GraphEdge) => number,
    other: (edge: GraphEdge) => number,
    at: number,
  ) => {
    const groups = new Map<string, number[]>();
    edges.forEach((edge, i) => {
      const key = `${own(edge)} ${isUp[i]}`;
      const group = groups.get(key);
      if (group) group.push(i);
      else groups.set(key, [i]);
    });
    const ends: Point[] = [];
    for (const group of groups.values()) {
      const box = boxes[own(edges[group[0]!]!)]!;
      const from = (i: number) => lines[i]!.at(at)?.[0] ?? middle(boxes[other(edges[i]!)]!);
      const gap = Math.min(PORT_PX, (box.width * 0.7) / group.length);
      const isBelow = isUp[group[0]!] ? at !== 0 : at === 0;
      group
        .toSorted((a, b) => from(a) - from(b) || a - b)
        .forEach((i, place) => {
          const x = middle(box) + (place - (group.length - 1) / 2) * gap;
          ends[i] = [Math.round(x), isBelow ? box.y + box.height : box.y];
        });
    }
    return ends;
  };
  const starts = end(
    ({ from }) => from,
    ({ to }) => to,
    0,
  );
  const stops = end(
    ({ to }) => to,
    ({ from }) => from,
    -1,
  );
  lines.forEach((line, i) => {
    line.unshift(starts[i]!);
    line.push(stops[i]!);
  });
}

/** Return the path of an edge in SVG: smooth, upright at each point. */
export function pathOf(line: readonly Point[]): string {
  const parts = [`M${line[0]!.join(" ")}`];
  for (let at = 1; at < line.length; at += 1) {
    const [[x, y], [nextX, nextY]] = [line[at - 1]!, line[at]!];
    const half = (y + nextY) / 2;
    parts.push(x === nextX ? `V${nextY}` : `C${x} ${half} ${nextX} ${half} ${nextX} ${nextY}`);
  }
  return parts.join("");
}

/** Return the corners of the arrowhead at the end of an edge. */
export function headOf(line: readonly Point[]): Point[] {
  const [x, y] = line.at(-1)!;
  const back = y >= line[0]![1] ? -7 : 7;
  return [
    [x, y],
    [x - 4, y + back],
    [x + 4, y + back],
  ];
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
