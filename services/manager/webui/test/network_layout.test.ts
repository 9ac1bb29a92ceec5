import { expect, test } from "vitest";

import { boxSize, listedCandidates } from "../src/charts/network_boxes";
import { type Box, columnOf, headOf, layoutOf, pathOf } from "../src/charts/network_layout";
import type { GraphEdge, GraphNode } from "../src/state/model_graph";

const edge = (from: number, to: number): GraphEdge => ({ from, to, condition: null });
const sizes = (count: number) =>
  Array.from({ length: count }, (_, at) => ({
    width: 100 + (at % 3) * 40,
    height: 40 + (at % 4) * 30,
  }));

const chain = (count: number) => Array.from({ length: count - 1 }, (_, at) => edge(at, at + 1));
const GRAPHS: [string, number, GraphEdge[]][] = [
  ["no node", 0, []],
  ["one node", 1, []],
  ["nodes without edges", 7, []],
  ["a chain", 20, chain(20)],
  ["skip connections", 20, [...chain(20), edge(0, 5), edge(2, 19), edge(5, 9), edge(0, 19)]],
  ["a dense block", 12, range(12).flatMap((to) => range(to).map((from) => edge(from, to)))],
  ["branches", 14, range(12).flatMap((at) => [edge(0, at + 1), edge(at + 1, 13)])],
  ["random edges", 60, random(60, 150)],
  ["equal edges", 2, [edge(0, 1), edge(0, 1), edge(0, 1)]],
];

test.each(GRAPHS)("with %s no two boxes overlap", (_, count, edges) => {
  const { boxes, width, height } = layoutOf(sizes(count), edges);

  for (const [at, one] of boxes.entries()) {
    for (const other of boxes.slice(at + 1)) expect(overlap(one, other)).toBe(false);
    expect(one.x).toBeGreaterThanOrEqual(0);
    expect(one.y).toBeGreaterThanOrEqual(0);
    expect(one.x + one.width).toBeLessThanOrEqual(width);
    expect(one.y + one.height).toBeLessThanOrEqual(height);
  }
});

test.each(GRAPHS)("with %s edges lead down, from box to box", (_, count, edges) => {
  const { boxes, lines } = layoutOf(sizes(count), edges);

  edges.forEach(({ from, to }, at) => {
    const line = lines[at]!;
    expect(line[0]![1]).toBe(boxes[from]!.y + boxes[from]!.height);
    expect(line.at(-1)![1]).toBe(boxes[to]!.y);
    for (const [box, [x]] of [
      [boxes[from]!, line[0]!],
      [boxes[to]!, line.at(-1)!],
    ] as const)
      expect(x >= box.x && x <= box.x + box.width).toBe(true);
    for (let i = 1; i < line.length; i += 1)
      expect(line[i]![1]).toBeGreaterThanOrEqual(line[i - 1]![1]);
  });
});

test.each(GRAPHS)("with %s no edge crosses a box of another node", (_, count, edges) => {
  const { boxes, lines } = layoutOf(sizes(count), edges);

  edges.forEach(({ from, to }, at) => {
    const others = boxes.filter((_, i) => i !== from && i !== to);
    for (const [x, y] of lines[at]!)
      expect(
        others.some(
          (box) => x > box.x && x < box.x + box.width && y > box.y && y < box.y + box.height,
        ),
      ).toBe(false);
  });
});

test("the layout of a graph is always the same", () => {
  const [, count, edges] = GRAPHS[7]!;

  expect(layoutOf(sizes(count), edges)).toEqual(layoutOf(sizes(count), edges));
});

test("the nodes are in the order of the data flow", () => {
  const { order } = layoutOf(sizes(4), [edge(3, 1), edge(1, 0), edge(0, 2)]);

  expect(order).toEqual([3, 1, 0, 2]);
});

test("an input that is read late stands above its reader", () => {
  const { boxes } = layoutOf(sizes(5), [...chain(4), edge(4, 3)]);

  expect(boxes[4]!.y).toBe(boxes[2]!.y);
});

test("a chain is straight below a branch", () => {
  const edges = [
    edge(0, 1),
    edge(0, 2),
    edge(1, 3),
    edge(2, 3),
    edge(0, 3),
    edge(3, 4),
    edge(4, 5),
  ];

  const { boxes } = layoutOf(sizes(6), edges);

  const middles = boxes.slice(3).map(({ x, width }) => x + width / 2);
  for (const middle of middles) expect(Math.abs(middle - middles[0]!)).toBeLessThanOrEqual(1);
});

test("a cycle has a layout, in which one edge leads up", () => {
  const edges = [edge(0, 1), edge(1, 2), edge(2, 0), edge(2, 3)];

  const { boxes, lines } = layoutOf(sizes(4), edges);

  expect(boxes.map(({ y }) => y).toSorted((a, b) => a - b)).toEqual(boxes.map(({ y }) => y));
  const ups = lines.filter((line) => line.at(-1)![1] < line[0]![1]);
  expect(ups).toEqual([lines[2]]);
  expect(headOf(lines[2]!)[1]![1]).toBeGreaterThan(lines[2]!.at(-1)![1]);
});

test("a large graph has a layout within the time limit of a test", () => {
  const edges = range(1_000).flatMap((to) =>
    range(5).flatMap((by) => (to > by * 50 ? edge(to - 1 - by * 50, to) : [])),
  );

  const { boxes } = layoutOf(sizes(1_000), edges);

  expect(boxes.length).toBe(1_000);
});

test("nodes of unknown order stand below each other", () => {
  const { boxes, lines, order } = columnOf(sizes(4));

  expect(lines).toEqual([]);
  expect(order).toEqual([0, 1, 2, 3]);
  expect(new Set(boxes.map(({ x }) => x)).size).toBe(1);
  for (let at = 1; at < boxes.length; at += 1)
    expect(boxes[at]!.y).toBeGreaterThan(boxes[at - 1]!.y + boxes[at - 1]!.height);
});

test("an edge is upright at its points, and ends with an arrowhead", () => {
  expect(
    pathOf([
      [5, 0],
      [5, 10],
      [9, 20],
    ]),
  ).toBe("M5 0V10C5 15 9 15 9 20");
  expect(
    headOf([
      [5, 0],
      [9, 20],
    ]),
  ).toEqual([
    [9, 20],
    [5, 13],
    [13, 13],
  ]);
});

test("a box lists six candidates, and one more where that takes no more room", () => {
  const node = (count: number): GraphNode => ({
    name: "block",
    kind: "layer",
    text: "",
    labels: ["block"],
    graph: null,
    candidates: range(count).map((at) => ({ name: String(at), text: "", graph: null })),
  });

  expect([6, 7, 8].map((count) => listedCandidates(node(count), false))).toEqual([6, 7, 6]);
  expect(listedCandidates(node(8), true)).toBe(8);
  expect(boxSize(node(8), false).height).toBe(boxSize(node(7), false).height);
  expect(boxSize(node(8), true).height).toBeGreaterThan(boxSize(node(8), false).height);
});

function overlap(one: Box, other: Box): boolean {
  return (
    one.x < other.x + other.width &&
    other.x < one.x + one.width &&
    one.y < other.y + other.height &&
    other.y < one.y + one.height
  );
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, at) => at);
}

/** Return edges without cycles, always the same. */
function random(nodes: number, count: number): GraphEdge[] {
  let state = 7;
  const next = () => (state = (state * 48_271) % 2_147_483_647) % nodes;
  return range(count).flatMap(() => {
    const [a, b] = [next(), next()];
    return a === b ? [] : edge(Math.min(a, b), Math.max(a, b));
  });
}
