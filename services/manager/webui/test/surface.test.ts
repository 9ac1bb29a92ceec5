import { expect, test } from "vitest";

import { surfaceOf } from "../src/charts/surface";

const CORNERS = [
  { x: 0, y: 0, rank: 0 },
  { x: 1, y: 0, rank: 0 },
  { x: 0, y: 1, rank: 0 },
  { x: 1, y: 1, rank: 1 },
];

test("cells near a trial have about its rank, and those far from all have none", () => {
  const { size, cells } = surfaceOf(CORNERS, 20)!;

  expect(cells).toHaveLength(size * size);
  expect(cells.at(-1)!).toBeGreaterThan(0.99);
  expect(cells[0]!).toBeLessThan(0.01);
  expect(cells[10 * 20 + 10]).toBeNull();
});

test("between two trials the rank is between theirs", () => {
  const pair = [
    { x: 0.4, y: 0.5, rank: 0 },
    { x: 0.6, y: 0.5, rank: 1 },
  ];
  const [cell] = surfaceOf([...pair, ...pair], 1)!.cells;

  expect(cell).toBeCloseTo(0.5);
});

test("too few trials make no surface", () => expect(surfaceOf(CORNERS.slice(1))).toBeNull());
