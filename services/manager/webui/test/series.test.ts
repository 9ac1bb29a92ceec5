import { expect, test } from "vitest";

import { axisOf, passes, rankColour } from "../src/charts/parallel_axes";
import {
  parseCurveFilter,
  durationsOf,
  median,
  matchesCurve,
  resultsOf,
} from "../src/charts/series";
import { visibleRows } from "../src/table/visible_rows";
import { MAXIMIZE, MINIMIZE, trial } from "./trials";

const TRIALS = [
  trial(2, 5),
  trial(0, 3),
  trial(1, 4),
  trial(3, undefined),
  trial(4, "Infinity"),
  trial(5, 1),
];

test("the best so far never gets worse, in either direction", () => {
  const down = resultsOf(TRIALS, MINIMIZE, "default");
  const up = resultsOf(TRIALS, MAXIMIZE, "default");

  expect([down.x, down.y, down.best, down.improvements]).toEqual([
    [0, 1, 2, 3, 4, 5],
    [3, 4, 5, null, null, 1],
    [3, 3, 3, 3, 3, 1],
    [0, 5],
  ]);
  expect([up.best, up.improvements]).toEqual([
    [3, 4, 5, 5, 5, 5],
    [0, 1, 2],
  ]);
});

test("durations are in the order of the trials", () => {
  expect(durationsOf([trial(2, 1), trial(1, 1)], 0)).toMatchObject({ x: [1, 2], y: [1, 2] });
  expect([median([3, 1, 2]), median([4, 1, 2, 3]), median([])]).toEqual([2, 2.5, NaN]);
});

test("the filter of intermediate results asks one place for a range", () => {
  const rule = parseCurveFilter("4", "0.8", "1");

  expect(matchesCurve([0.1, 0.2, 0.3, 0.9], rule)).toBe(true);
  expect(matchesCurve([0.9, 0.9, 0.9, 0.7], rule)).toBe(false);
  expect(matchesCurve([0.9], rule)).toBe(false);
  expect(matchesCurve([], null)).toBe(true);
  expect([
    parseCurveFilter("", "0", "1"),
    parseCurveFilter("0", "", ""),
    parseCurveFilter("x", "", ""),
  ]).toEqual([null, null, null]);
  expect(matchesCurve([5], parseCurveFilter("1", "", "4"))).toBe(false);
});

test("axes place numbers by distance or ratio, and categories evenly", () => {
  const all = [
    trial(0, 1, { lr: 0.001, opt: "adam" }),
    trial(1, 2, { lr: 0.1, opt: "sgd" }),
    trial(2, 3, { lr: 0.01 }),
  ];
  const log = {
    name: "lr",
    type: "loguniform",
    range: "",
    options: [],
    log: true,
    depth: 0,
    bounds: null,
    branch: "",
  };

  const ratio = axisOf("p:lr", all, log, MAXIMIZE);
  const words = axisOf("p:opt", all, undefined, MAXIMIZE);
  const result = axisOf("m:default", all, undefined, MAXIMIZE);

  expect(all.map((one) => Number(ratio.position(one)!.toFixed(6)))).toEqual([0, 1, 0.5]);
  expect(all.map(words.position)).toEqual([0, 1, null]);
  expect(all.map(result.position)).toEqual([0, 0.5, 1]);
  expect([ratio.kind, words.kind, result.kind]).toEqual(["log", "category", "linear"]);
  expect(
    all.filter((one) => passes(one, [ratio, words], { "p:lr": [0.4, 1] })).map((one) => one.number),
  ).toEqual([1, 2]);
  expect(
    all.filter((one) => passes(one, [ratio, words], { "p:opt": [0, 1] })).map((one) => one.number),
  ).toEqual([0, 1]);
});

test("an axis with one value has it in the middle", () => {
  const axis = axisOf("p:lr", [trial(0, 1, { lr: 2 })], undefined, MAXIMIZE);

  expect([axis.position(trial(1, 1, { lr: 2 })), axis.ticks]).toEqual([
    0.5,
    [{ position: 0.5, text: "2" }],
  ]);
});

test("colours of ranks lie on the scale", () => {
  expect([rankColour(0, "light"), rankColour(2, "light", 0.5)]).toEqual([
    "rgba(233,196,66,1)",
    "rgba(3,22,71,0.5)",
  ]);
});

test("few rows of a long table are drawn, and none beyond its end", () => {
  expect(visibleRows(0, 720, 36, 10_000)).toEqual({ first: 0, end: 37 });
  expect(visibleRows(36 * 5000, 720, 36, 10_000)).toEqual({ first: 4992, end: 5029 });
  expect(visibleRows(36 * 9999, 720, 36, 10_000).end).toBe(10_000);
  expect(visibleRows(36 * 9999, 720, 36, 3)).toEqual({ first: 0, end: 3 });
});
