import { expect, test } from "vitest";

import {
  causeOf,
  countEnded,
  durationOf,
  flatten,
  lastFailure,
  loggedAttempt,
  extendRanges,
  numbersOf,
} from "../src/state/trial";
import { trial } from "./trials";

test("parameters without nested ones are not copied", () => {
  const parameters = { lr: 0.1, layers: [8, 16], momentum: null };

  expect(flatten(parameters)).toBe(parameters);
  expect(flatten(null)).toEqual({});
  expect(flatten([1])).toEqual({});
});

test("a nested choice is flat under the name of its parameter", () => {
  const parameters = {
    lr: 0.1,
    model: { _name: "svm", C: 2, kernel: { _name: "rbf", gamma: 1 } },
    sizes: [1, 2],
  };

  expect(flatten(parameters)).toEqual({
    lr: 0.1,
    model: "svm",
    "model/C": 2,
    "model/kernel": "rbf",
    "model/kernel/gamma": 1,
    sizes: [1, 2],
  });
});

test("numbers of a report are found by key, infinities among them, NaN is none", () => {
  expect(numbersOf(0.5)).toEqual({ default: 0.5 });
  expect(numbersOf({ default: "Infinity", loss: "NaN", words: "x", acc: 1 })).toEqual({
    default: Infinity,
    acc: 1,
  });
  expect(numbersOf("words")).toEqual({});
  expect(numbersOf(undefined)).toEqual({});
});

test("the duration runs while the trial does and is never negative", () => {
  expect(durationOf(trial(3, 1), 99_000)).toBe(3);
  expect(durationOf(trial(3, undefined, {}, "RUNNING"), 12_000)).toBe(10);
  expect(durationOf(trial(3, undefined, {}, "RUNNING"), 0)).toBe(0);
});

test("live trials are not done", () => {
  expect(countEnded({ RUNNING: 2, WAITING: 1, SUCCEEDED: 5, FAILED: 1 })).toBe(6);
});

test("the last failure is the newest one", () => {
  const all = [
    trial(2, undefined, {}, "FAILED"),
    trial(5, undefined, {}, "FAILED"),
    trial(7, undefined, {}, "RUNNING"),
    trial(1, undefined, {}, "FAILED"),
  ];

  expect(lastFailure(all)?.number).toBe(5);
  expect(lastFailure([trial(0, 1)])).toBeUndefined();
});

test("the cause says why a trial ended, is being stopped or waits", () => {
  const record = trial(0, undefined, {}, "FAILED").record;

  expect(causeOf({ ...record, endCause: "TIME_LIMIT" })).toBe("time limit");
  expect(causeOf({ ...record, endCause: "STOPPED", stopCause: "USER" })).toBe("stopped by a user");
  expect(causeOf({ ...record, endCause: "STOPPED" })).toBe("stopped");
  expect(causeOf({ ...record, endCause: "SIGNAL", stopCause: "USER" })).toBe(
    "signal to the command",
  );
  expect(causeOf({ ...record, stopCause: "ASSESSOR" })).toBe("being stopped by the assessor");
  expect(causeOf({ ...record, waitCause: "GPU_IN_USE" })).toBe("waits for a GPU in use");
});

test("a trial that succeeded, or of an older version, has no cause", () => {
  const record = trial(0, 1).record;

  expect(causeOf(record)).toBe("");
  expect(causeOf({ ...record, endCause: "SUCCEEDED" })).toBe("");
  expect(causeOf({ ...record, endCause: "UNSPECIFIED", stopCause: "UNSPECIFIED" })).toBe("");
});

test("the description of a job is no parameter of its steps", () => {
  const one = trial(0, 1, { job: { model: { factory: "net:make" } }, step: 2 });

  expect(one.flat).toEqual({ step: 2 });
});

test("ranges grow by finite numbers", () => {
  const ranges = {};
  for (const data of [0.5, "NaN", { default: 0.25, loss: 3 }, "Infinity", 0.75])
    extendRanges(ranges, data);

  expect(ranges).toEqual({ default: [0.25, 0.75], loss: [3, 3] });
});

test("a log is of the last attempt that has started", () => {
  expect(loggedAttempt({ attempt: 1 })).toBe(1);
  expect(loggedAttempt({ attempt: 2 })).toBe(1);
  expect(loggedAttempt({ attempt: 2, runnerId: "r1" })).toBe(2);
});
