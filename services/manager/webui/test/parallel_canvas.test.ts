import { expect, test } from "vitest";

import { nextBatch } from "../src/charts/parallel_canvas";

test("a slow frame halves the lines of the next one, a quick one adds some", () => {
  expect(nextBatch(400, 60)).toBe(200);
  expect(nextBatch(400, 16.7)).toBe(500);
});

test("a frame draws some lines even on a slow machine, and not all on a quick one", () => {
  expect(nextBatch(20, 500)).toBe(20);
  expect(nextBatch(1000, 5)).toBe(1000);
});
