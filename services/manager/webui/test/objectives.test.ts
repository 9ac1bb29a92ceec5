import { expect, test } from "vitest";

import type { JsonObject, Profile } from "../src/api/records";
import {
  type Goals,
  bestTrial,
  brokenLimits,
  feasibilityOf,
  frontOf,
  goalsOf,
  isFeasible,
  modeOf,
  ranked,
} from "../src/state/objectives";
import { MAXIMIZE, MINIMIZE, trial } from "./trials";

const profile = (params: JsonObject, optimizeMode: Profile["optimizeMode"] = "minimize") =>
  ({ params, optimizeMode }) as Profile;
const BOTH: Goals = goalsOf(
  profile({
    objectives: [
      { metric: "accuracy", mode: "maximize" },
      { metric: "latency", mode: "minimize" },
    ],
    constraints: [{ metric: "memory", max: 100 }],
  }),
);
const measured = (number: number, accuracy: number | string, latency: number, memory?: number) =>
  trial(number, { accuracy, latency, ...(memory === undefined ? {} : { memory }) });
const MEASURED = [
  measured(0, 0.9, 50, 90),
  measured(1, 0.99, 80, 101),
  measured(2, 0.8, 10, 100),
  measured(3, 0.85, 60, 50),
  measured(4, "NaN", 1, 50),
  measured(5, 0.95, 70),
];
const numbers = (trials: { number: number }[]) => trials.map((one) => one.number);

test.each([
  ["accuracy", "maximize"],
  ["latency", "minimize"],
  ["memory", "minimize"],
  ["default", null],
  ["other", null],
])("the direction of %s is %s", (metric, mode) => expect(modeOf(BOTH, metric)).toBe(mode));

test("without objectives the direction is that of the algorithm, unless the user selects one", () => {
  expect(modeOf(goalsOf(profile({})), "default")).toBe("minimize");
  expect(modeOf(goalsOf(profile({}, "maximize")), "default")).toBe("maximize");
  expect(modeOf(goalsOf(profile({}), { default: "maximize" }), "default")).toBe("maximize");
  expect(modeOf(goalsOf(profile({})), "loss")).toBeNull();
});

test("a result is feasible up to its limit; without the number it is not", () => {
  expect(MEASURED.map((one) => isFeasible(one, BOTH))).toEqual([
    true,
    false,
    true,
    true,
    true,
    false,
  ]);
  expect(brokenLimits(MEASURED[1]!, BOTH)).toEqual([{ metric: "memory", max: 100 }]);
  expect(brokenLimits(MEASURED[0]!, BOTH)).toEqual([]);
});

test("the best trial keeps the limits, in the direction of each metric", () => {
  expect(bestTrial(MEASURED, BOTH, "accuracy")?.number).toBe(0);
  expect(bestTrial(MEASURED, BOTH, "latency")?.number).toBe(4);
  expect(bestTrial(MEASURED, BOTH, "other")).toBeUndefined();
  expect(bestTrial([trial(0, "-Infinity"), trial(1, 3)], MINIMIZE, "default")?.number).toBe(1);
  expect(bestTrial([trial(5, 3), trial(1, 3)], MINIMIZE, "default")?.number).toBe(1);
});

test("infeasible results follow feasible ones, and what is not finite is last", () => {
  expect(numbers(ranked(MEASURED, BOTH, "accuracy"))).toEqual([0, 3, 2, 1, 5]);
  expect(numbers(ranked(MEASURED, BOTH, "latency"))).toEqual([4, 2, 0, 3, 5, 1]);
});

test("the best trial comes first in either direction, earlier ones before equal later ones", () => {
  const all = [
    trial(0, 2),
    trial(1, 5),
    trial(2, undefined),
    trial(3, 5),
    trial(4, { default: 1, loss: 9 }),
    trial(5, "Infinity"),
    trial(6, "-Infinity"),
  ];

  expect(numbers(ranked(all, MAXIMIZE, "default"))).toEqual([1, 3, 0, 4, 5, 6]);
  expect(numbers(ranked(all, MINIMIZE, "default"))).toEqual([4, 0, 1, 3, 6, 5]);
  expect(numbers(ranked(all, MINIMIZE, "loss"))).toEqual([4]);
});

test("the front has the feasible trials that none beats in all objectives", () => {
  expect(numbers(frontOf(MEASURED, BOTH))).toEqual([0, 2]);
  expect(numbers(frontOf([measured(7, 1, 1, 1), measured(8, 1, 1, 1)], BOTH))).toEqual([7, 8]);
});

test("results are counted by whether they keep the limits", () => {
  expect(feasibilityOf([...MEASURED, trial(9, undefined)], BOTH)).toEqual({
    results: 6,
    feasible: 3,
    infeasible: 2,
    incomplete: 1,
  });
});
