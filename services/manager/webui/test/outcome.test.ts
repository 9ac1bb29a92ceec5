import { expect, test } from "vitest";

import type { Json } from "../src/api/records";
import { linesOf } from "../src/charts/parallel_lines";
import { resultsOf } from "../src/charts/series";
import type { Goals } from "../src/state/objectives";
import {
  metricText,
  outcomeOf,
  pointKind,
  ranksOf,
  resultText,
  shownState,
  standingOf,
} from "../src/state/outcome";
import { MAXIMIZE, MINIMIZE, trial } from "./trials";

const STOPPED = trial(1, undefined, {}, "EARLY_STOPPED", { default: [0.2, 0.6], loss: [1, 2] });
const LIMITED: Goals = {
  objectives: [
    { metric: "accuracy", mode: "maximize" },
    { metric: "latency", mode: "minimize" },
  ],
  limits: [{ metric: "latency", max: 10 }],
  chosen: {},
};

test.each([
  [[3, 1, 2], "maximize", [1, 0, 0.5]],
  [[3, 1, 2], "minimize", [0, 1, 0.5]],
  [[3, null, NaN, 1], "minimize", [0, null, null, 1]],
  [[undefined, 2, Infinity], "maximize", [null, 1, null]],
  [[2, 2, 1], "maximize", [1, 1, 0]],
  [[1, 2], null, [0, 1]],
  [[], "maximize", []],
] as const)("ranks of %j to %s are %j", (values, mode, ranks) =>
  expect(ranksOf([...values], mode)).toEqual(ranks),
);

test("a trial without a result is worth its best intermediate one", () => {
  expect(outcomeOf(STOPPED, "default", "maximize")).toEqual({ value: 0.6, kind: "intermediate" });
  expect(outcomeOf(STOPPED, "loss", "minimize")).toEqual({ value: 1, kind: "intermediate" });
  expect(outcomeOf(STOPPED, "loss", null)).toBeNull();
  expect(outcomeOf(trial(0, undefined, {}, "FAILED"), "default", "maximize")).toBeNull();
});

test("a result is never replaced by an intermediate one", () => {
  const ranges = { default: [0, 9] as [number, number], loss: [1, 2] as [number, number] };

  expect(outcomeOf(trial(0, 3, {}, "SUCCEEDED", ranges), "default", "maximize")).toEqual({
    value: 3,
    kind: "final",
  });
  expect(outcomeOf(trial(0, "NaN", {}, "SUCCEEDED", ranges), "default", "maximize")).toBeNull();
  expect(standingOf(trial(0, 3, {}, "SUCCEEDED", ranges), "loss", "minimize")).toBe(1);
  expect(standingOf(trial(0, "NaN", {}, "SUCCEEDED", ranges), "default", "minimize")).toBeNull();
});

test.each([
  [trial(0, 1), MAXIMIZE, "default", "result"],
  [STOPPED, MAXIMIZE, "default", "intermediate"],
  [trial(0, undefined, {}, "FAILED"), MAXIMIZE, "default", "none"],
  [trial(0, "NaN"), MAXIMIZE, "default", "none"],
  [trial(0, undefined, {}, "RUNNING", { default: [1, 1] }), MAXIMIZE, "default", null],
  [trial(0, { accuracy: 1, latency: 10 }), LIMITED, "accuracy", "result"],
  [trial(0, { accuracy: 1, latency: 11 }), LIMITED, "accuracy", "infeasible"],
])("point %#", (one, goals, metric, kind) => expect(pointKind(one, goals, metric)).toBe(kind));

test("infeasible and intermediate numbers are drawn, and are never the best so far", () => {
  const results = resultsOf(
    [
      trial(0, { accuracy: 0.5, latency: 5 }),
      trial(1, { accuracy: 0.9, latency: 50 }),
      trial(2, undefined, {}, "EARLY_STOPPED", { accuracy: [0.1, 0.95] }),
      trial(3, undefined, {}, "FAILED"),
      trial(4, { accuracy: 0.6, latency: 1 }),
      trial(5, undefined, {}, "RUNNING"),
    ],
    LIMITED,
    "accuracy",
  );

  expect(results.kinds).toEqual(["result", "infeasible", "intermediate", "none", "result"]);
  expect(results.y).toEqual([0.5, 0.9, 0.95, null, 0.6]);
  expect(results.best).toEqual([0.5, 0.5, 0.5, 0.5, 0.6]);
  expect(results.improvements).toEqual([0, 4]);
});

test("lines of all ended trials are drawn, those without a rank first", () => {
  const all = [trial(0, 1), STOPPED, trial(2, undefined, {}, "FAILED"), trial(3, 0)];
  const lines = linesOf(all, MAXIMIZE, "default", 100);
  const best = linesOf(all, MAXIMIZE, "default", 50);

  expect(lines.trials.map((one) => one.number)).toEqual([2, 3, 1, 0]);
  expect([...lines.ranks]).toEqual([
    ["id3", 0],
    ["id1", 0.5],
    ["id0", 1],
  ]);
  expect([...lines.dashed]).toEqual(["id1"]);
  expect(best.trials.map((one) => one.number)).toEqual([1, 0]);
});

test.each<[Json | undefined, Goals | undefined, string]>([
  [0.5, MINIMIZE, "0.5"],
  ["NaN", MINIMIZE, "NaN"],
  [{ default: "NaN", loss: 3, epochs: [1, 2] }, MINIMIZE, "NaN"],
  [{ default: "Infinity" }, undefined, "Infinity"],
  [{ accuracy: 0.5, latency: "NaN", x: 1 }, LIMITED, "accuracy 0.5 · latency NaN"],
  [undefined, MINIMIZE, "–"],
])("the result %j is shown on one line", (result, goals, text) =>
  expect(resultText(trial(0, result), goals)).toBe(text),
);

test("a metric that is not a number is not an absent one", () => {
  expect(metricText(trial(0, { default: 1, loss: "NaN" }), "loss")).toBe("NaN");
  expect(metricText(trial(0, { default: 1 }), "loss")).toBe("–");
  expect(metricText(trial(0, "NaN"), "default")).toBe("NaN");
});

test.each([
  ["DONE", { FAILED: 3 }, { state: "FAILED", label: "done, all failed" }],
  ["DONE", { USER_CANCELED: 1, FAILED: 1 }, { state: "STOPPED", label: "done, no success" }],
  ["DONE", { SUCCEEDED: 1, FAILED: 2 }, { state: "DONE" }],
  ["DONE", { EARLY_STOPPED: 1 }, { state: "DONE" }],
  ["DONE", {}, { state: "DONE" }],
  ["RUNNING", { FAILED: 3 }, { state: "RUNNING" }],
])("%s with %j is shown as %j", (status, counts, shown) =>
  expect(shownState(status, counts as Record<string, number>)).toEqual(shown),
);
