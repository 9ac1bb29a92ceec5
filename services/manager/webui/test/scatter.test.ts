import { expect, test } from "vitest";

import { axisBy, axisOf } from "../src/charts/parallel_axes";
import {
  dotSeries,
  dotsOf,
  kindsOf,
  shadeIndex,
  shadesByNumber,
  shadesByRank,
  spreadOf,
} from "../src/charts/scatter";
import { dimensionsOf } from "../src/state/space";
import { MAXIMIZE, MINIMIZE, trial } from "./trials";

const SPACE = dimensionsOf({
  lr: { _type: "loguniform", _value: [0.001, 1] },
  opt: { _type: "choice", _value: ["adam", "sgd"] },
});
const ALL = [
  trial(0, 1, { lr: 0.1, opt: "sgd" }),
  trial(1, 3, { lr: 0.01, opt: "adam" }),
  trial(2, undefined, { lr: 1, opt: "adam" }, "FAILED"),
  trial(3, undefined, { lr: 0.5, opt: "adam" }, "RUNNING"),
  trial(4, 2, { opt: "adam" }),
  trial(5, undefined, { lr: 0.001, opt: "sgd" }, "EARLY_STOPPED", { default: [0, 2] }),
];

test("dots are in the order of x, with those that have no result and without live trials", () => {
  const x = axisOf("p:lr", ALL, SPACE[0], MAXIMIZE);
  const y = axisOf("m:default", ALL, undefined, MAXIMIZE);
  const { dots, omitted } = dotsOf(ALL, x, y, kindsOf(ALL, MAXIMIZE, "default"), new Map());

  expect(dots.map((dot) => [dot.trial.number, dot.kind])).toEqual([
    [5, "intermediate"],
    [1, "result"],
    [0, "result"],
    [2, "none"],
  ]);
  expect(dots.map((dot) => Number(dot.x.toFixed(6)))).toEqual([0, 0.333333, 0.666667, 1]);
  expect(dots.map((dot) => dot.y)).toEqual([0.5, 1, 0, null]);
  expect(omitted).toBe(1);
});

test("points of one category are spread, so that they do not hide each other", () => {
  const categories = axisOf("p:opt", ALL, SPACE[1], MAXIMIZE);
  const numbers = axisOf("p:lr", ALL, SPACE[0], MAXIMIZE);
  const spread = Array.from({ length: 50 }, (_, number) => spreadOf(categories, number));

  expect(new Set(spread).size).toBe(50);
  expect(Math.max(...spread.map(Math.abs))).toBeLessThan(0.04);
  expect(spreadOf(numbers, 7)).toBe(0);
});

test("shades are by number or by rank, and trials without a number have none", () => {
  expect([...shadesByNumber([ALL[4]!, ALL[0]!, ALL[1]!]).values()]).toEqual([0, 0.5, 1]);
  expect(shadesByRank(ALL.slice(0, 3), MINIMIZE, "default")).toEqual(
    new Map([
      ["id0", 1],
      ["id1", 0],
    ]),
  );
  expect([0, 0.19, 0.2, 0.99, 1].map(shadeIndex)).toEqual([0, 0, 1, 4, 4]);
});

test("a series of dots per kind and shade; those without a value are at the edge", () => {
  const x = axisOf("p:lr", ALL, SPACE[0], MAXIMIZE);
  const y = axisOf("m:default", ALL, undefined, MAXIMIZE);
  const shades = new Map([
    ["id0", 0],
    ["id1", 1],
  ]);
  const { dots } = dotsOf(ALL, x, y, kindsOf(ALL, MAXIMIZE, "default"), shades);
  const series = dotSeries(dots, "light");

  expect(series.map((one) => [one.name, one.symbol, one.edge ?? false])).toEqual([
    ["none", "cross", true],
    ["intermediate", "ring", false],
    ["result 0", undefined, false],
    ["result 4", undefined, false],
  ]);
  expect(series[0]!.y).toEqual([null, null, null, 0]);
  expect(series[3]!.y).toEqual([null, 1, null, null]);
  expect(series[2]!.colour).not.toBe(series[3]!.colour);
});

test.each([
  ["p:lr", 0, 1, 8, ["0.001", "0.01", "0.1", "1"]],
  ["p:lr", 0.5, 1, 8, ["0.05", "0.1", "0.2", "0.5", "1"]],
  ["p:opt", 0, 1, 8, ["adam", "sgd"]],
  ["p:opt", 0.5, 1, 8, ["sgd"]],
  ["m:default", 0, 1, 4, ["1", "2", "3"]],
] as const)("ticks of %s from %d to %d", (key, from, to, most, texts) => {
  const axis = axisOf(key, ALL, key === "p:opt" ? SPACE[1] : key === "p:lr" ? SPACE[0] : undefined, MAXIMIZE); // prettier-ignore

  expect(axis.ticksIn(from, to, most).map((tick) => tick.text)).toEqual(texts);
});

test("an axis of one value has it in the middle", () => {
  const axis = axisBy("d", "duration", () => 7, ALL);

  expect(axis.position(ALL[0]!)).toBe(0.5);
  expect(axis.ticksIn(0, 1, 5)).toEqual([{ at: 0.5, text: "7" }]);
});
