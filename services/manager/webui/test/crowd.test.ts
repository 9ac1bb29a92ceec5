import { expect, test } from "vitest";

import { type Pixels, columnsOf, stampPoints } from "../src/charts/crowd";

const empty = (width: number, height: number): Pixels => ({
  width,
  height,
  data: new Uint8ClampedArray(4 * width * height),
});
const PLUS = { side: 3, coverage: [0, 100, 0, 100, 255, 100, 0, 100, 0] };
const RED = [200, 10, 20, 1] as const;

/** Opacities, row by row. */
function opacities({ width, height, data }: Pixels): number[][] {
  const row = (y: number) =>
    Array.from({ length: width }, (_, x) => data[4 * (y * width + x) + 3]!);
  return Array.from({ length: height }, (_, y) => row(y));
}

test("a point covers the pixels around the nearest one, in its colour", () => {
  const pixels = empty(4, 3);

  stampPoints(pixels, [1.6, 0.7], PLUS, RED);

  expect(opacities(pixels)).toEqual([
    [0, 0, 100, 0],
    [0, 100, 255, 100],
    [0, 0, 100, 0],
  ]);
  expect([...pixels.data.slice(4 * 6, 4 * 6 + 4)]).toEqual([200, 10, 20, 255]);
});

test("points that overlap are one shape: a pixel has the greater coverage", () => {
  const pixels = empty(4, 1);

  stampPoints(pixels, [1, 0, 2, 0], PLUS, RED);

  expect(opacities(pixels)).toEqual([[100, 255, 255, 100]]);
});

test("points beyond the edges are cut, not wrapped", () => {
  const pixels = empty(3, 3);

  stampPoints(pixels, [-1, 1, 3, 3, 9, 9], PLUS, RED);

  expect(opacities(pixels)).toEqual([
    [0, 0, 0],
    [100, 0, 0],
    [0, 0, 0],
  ]);
});

test("a transparent colour makes the point as transparent", () => {
  const pixels = empty(1, 1);

  stampPoints(pixels, [0, 0], PLUS, [1, 2, 3, 0.4]);

  expect(pixels.data[3]).toBe(102);
});

test("bars in one column of pixels are as high as the highest of them", () => {
  expect(columnsOf([0.1, 50, 0.9, 20, 1.2, 30])).toEqual([
    { x: 0, top: 20 },
    { x: 1, top: 30 },
  ]);
  expect(columnsOf([])).toEqual([]);
});
