import { expect, test } from "vitest";

import type { Profile } from "../src/api/records";
import { aligned, bestCurve, runName, sharedMetrics } from "../src/charts/experiment_curves";
import { trial } from "./trials";

function profile(
  id: string,
  params: Profile["params"] = {},
  mode: "minimize" | "maximize" = "maximize",
): Profile {
  // prettier-ignore
  return {
    ...{ id, params, optimizeMode: mode, startTime: 1_000, revision: 1, execDuration: 0 },
    ...{ logDir: "", nextSequenceId: 0, status: "DONE", algorithm: "TPE", repeatable: true },
  };
}

// The trial of number n ends at 2000 + 1000 n ms.
const TRIALS = [trial(0, 5), trial(1, 3), trial(2, 7), trial(3, 6), trial(4, undefined)];

test.each([
  ["maximize", "trials", [1, 3, 4], [5, 7, 7], 7, 3],
  ["minimize", "trials", [1, 2, 4], [5, 3, 3], 3, 2],
  ["maximize", "time", [1, 3, 4], [5, 7, 7], 7, 3],
] as const)("the best so far, %s over %s", (mode, by, x, y, best, at) =>
  expect(
    bestCurve({ profile: profile("a", {}, mode), trials: TRIALS }, "default", by),
  ).toMatchObject({ x, y, best, bestAt: at, results: 4, mode }),
);

test("results beyond a limit and of no finite number do not count", () => {
  const limited = profile("a", {
    objectives: [{ metric: "loss", mode: "minimize" }],
    constraints: [{ metric: "latency", max: 10 }],
  });
  const trials = [
    trial(0, { loss: 1, latency: 20 }),
    trial(1, { loss: "NaN", latency: 1 }),
    trial(2, { loss: 3, latency: 5 }),
  ];

  expect(bestCurve({ profile: limited, trials }, "loss", "trials")).toMatchObject({
    x: [3],
    y: [3],
    best: 3,
    results: 1,
  });
});

test("a metric without a direction has no best result", () =>
  expect(
    bestCurve(
      { profile: profile("a"), trials: [trial(0, { default: 1, size: 2 })] },
      "size",
      "time",
    ),
  ).toMatchObject({ mode: null, x: [], best: null, bestTrial: null }));

test("curves share one axis and end with their last result", () =>
  expect(
    aligned([
      { x: [1, 3, 4], y: [5, 7, 7] },
      { x: [2, 6], y: [1, 1] },
      { x: [], y: [] },
    ]),
  ).toEqual({
    x: [1, 2, 3, 4, 6],
    y: [
      [5, 5, 7, 7, null],
      [null, 1, 1, 1, 1],
      [null, null, null, null, null],
    ],
  }));

test("metrics of more experiments come first, and an experiment has its name or id", () => {
  const runs = [
    { profile: profile("a"), trials: [trial(0, { default: 1, loss: 2 })] },
    { profile: profile("b", { experimentName: "B" }), trials: [trial(0, { default: 1, acc: 2 })] },
    { profile: profile("c"), trials: [trial(0, { default: 1, acc: 2 })] },
  ];

  expect(sharedMetrics(runs)).toEqual(["default", "acc", "loss"]);
  expect(runs.map((run) => runName(run.profile))).toEqual(["a", "B", "c"]);
});
