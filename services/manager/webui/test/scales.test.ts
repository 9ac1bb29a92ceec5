import { expect, test } from "vitest";

import { axisOf } from "../src/charts/parallel_axes";
import {
  durationUnit,
  logNote,
  logSplit,
  logTicks,
  niceTicks,
  valueRange,
  withLines,
} from "../src/charts/scales";
import { dimensionsOf } from "../src/state/space";
import { MAXIMIZE, trial } from "./trials";

test.each([
  [10, 100, true, [0, 105]],
  [0, 0, true, [0, 1]],
  [-5, 10, true, [-5.5, 10.5]],
  [0, 100, false, [-8, 108]],
  [50, 50, false, [46, 54]],
  [0, 0, false, [-1, 1]],
  [null, null, false, [0, 1]],
] as const)("the range of %s to %s, from zero %s", (low, high, fromZero, range) => {
  expect(valueRange(low, high, fromZero)).toEqual(range);
});

test("a range of great values has room for ticks that differ", () => {
  const [low, high] = valueRange(1e16, 1e16 + 2);

  expect(high - low).toBeGreaterThan(1e4);
});

test.each([
  [[1, 2, null], true, 0, ""],
  [[1, 0, -3, NaN], true, 2, "2 values ≤ 0 cannot be drawn on the logarithmic scale."],
  [[-1], false, 1, "The scale is linear: no value is > 0."],
  [[], false, 0, ""],
])("a logarithmic scale of %j", (values, possible, omitted, note) => {
  expect(logSplit(values)).toEqual({ possible, omitted });
  expect(logNote(logSplit(values))).toBe(note);
});

test.each([
  [0, 1, false, [0, 0.2, 0.4, 0.6, 0.8, 1]],
  [0.013, 0.087, false, [0.02, 0.04, 0.06, 0.08]],
  [1, 5, true, [1, 2, 3, 4, 5]],
  [0, 3, true, [0, 1, 2, 3]],
  [-250, 250, false, [-200, -100, 0, 100, 200]],
  [2, 2, false, [2]],
] as const)("ticks from %d to %d, whole %s", (low, high, whole, ticks) =>
  expect(niceTicks(low, high, 5, whole)).toEqual(ticks),
);

test("ticks between neighbouring great numbers end", () =>
  expect(niceTicks(1e17, 1e17 + 32, 5, true).length).toBeLessThan(7));

test.each([
  [1e-5, 0.1, [1e-5, 1e-4, 1e-3, 0.01, 0.1]],
  [1, 20, [1, 2, 5, 10, 20]],
  [1e-12, 1e12, [1e-12, 1e-8, 1e-4, 1, 1e4, 1e8, 1e12]],
  [3, 4, [3, 3.2, 3.4, 3.6, 3.8, 4]],
])("logarithmic ticks from %d to %d", (low, high, ticks) =>
  expect(logTicks(low, high)).toEqual(ticks),
);

test("durations have a unit that a person reads", () => {
  expect([30, 300, 9_000, 300_000].map((seconds) => durationUnit(seconds).name)).toEqual([
    "seconds",
    "minutes",
    "hours",
    "days",
  ]);
});

test("an axis spans the space, and null, lists and no value differ", () => {
  const space = dimensionsOf({
    lr: { _type: "uniform", _value: [0, 1] },
    units: { _type: "choice", _value: [null, "null", [8, 16], 32] },
  });
  const all = [
    trial(0, 1, { lr: 0.5, units: null }),
    trial(1, 2, { lr: 0.25, units: [8, 16] }),
    trial(2, 3, { lr: 0.25 }),
  ];
  const lr = axisOf("p:lr", all, space[0], MAXIMIZE);
  const units = axisOf("p:units", all, space[1], MAXIMIZE);

  expect(all.map(lr.position)).toEqual([0.5, 0.25, 0.25]);
  expect(lr.ticks.map((tick) => tick.text)).toEqual(["0", "0.2", "0.4", "0.6", "0.8", "1"]);
  expect(units.ticks.map((tick) => tick.text)).toEqual(["null", '"null"', "[8,16]", "32"]);
  expect(all.map(units.position)).toEqual([0, 2 / 3, null]);
});

test("the axis of a metric has the best intermediate result of a trial without one", () => {
  const stopped = trial(1, undefined, {}, "EARLY_STOPPED", { default: [0, 4] });
  const all = [trial(0, 2), stopped, trial(2, undefined, {}, "FAILED")];
  const axis = axisOf("m:default", all, undefined, MAXIMIZE);

  expect(all.map(axis.position)).toEqual([0, 1, null]);
});

test.each([
  [0, 10, [12], [0, 12]],
  [0, 10, [-10], [-10, 10]],
  [0, 10, [1e6], [0, 10]],
  [5, 5, [8], [5, 8]],
  [null, null, [1], [null, null]],
] as const)("the range %s to %s with lines %j", (low, high, lines, range) =>
  expect(withLines(low, high, lines)).toEqual(range),
);
