import { expect, test } from "vitest";

import { changedRecord, needsRecord } from "../src/state/deltas";
import { Pace } from "../src/state/pace";
import { waitAfter } from "../src/state/throttle";
import { trial } from "./trials";

const RUNNING = { ...trial(3, undefined, {}, "RUNNING").record, intermediateCount: 2 };

test("an intermediate result is counted once, also if it is repeated", () => {
  const event = { metric: { type: "PERIODICAL", sequence: 2, value: 0.5 } };
  const after = changedRecord(RUNNING, "metric_reported", event)!;

  expect(after).toMatchObject({ intermediateCount: 3, latestIntermediate: 0.5 });
  expect(changedRecord(after, "metric_reported", event)).toBeNull();
});

test("a result, a start and an end change the record", () => {
  const final = { time: 5, metric: { type: "FINAL", value: { default: 1 } } };
  const started = { startedAt: 7, runnerId: "r1", attempt: 1 };

  expect(changedRecord(RUNNING, "metric_reported", final)?.finalMetricData?.[0]).toMatchObject({
    data: { default: 1 },
    timestamp: 5,
  });
  expect(changedRecord({ ...RUNNING, status: "WAITING" }, "trial_started", started)).toMatchObject({
    status: "RUNNING",
    startTime: 7,
    runnerId: "r1",
  });
  expect(changedRecord(RUNNING, "trial_ended", { state: "FAILED", endedAt: 9 })).toMatchObject({
    status: "FAILED",
    endTime: 9,
  });
});

test("late events of an ended trial or an earlier attempt change nothing", () => {
  const second = { ...RUNNING, attempt: 2 };

  expect(changedRecord(second, "trial_ended", { attempt: 1, state: "FAILED" })).toBeNull();
  expect(changedRecord({ ...RUNNING, status: "FAILED" }, "trial_started", {})).toBeNull();
  expect(changedRecord(RUNNING, "trial_waits", {})).toBeNull();
});

test("only what an event does not hold is requested", () => {
  expect(needsRecord("metric_reported", { metric: { value: 1 } })).toBe(false);
  expect(needsRecord("metric_reported", { metric: {} })).toBe(true);
  expect(needsRecord("trial_ended", {})).toBe(true);
});

test("requests are at once, then at a steady rate", () => {
  const pace = new Pace(2, 1_000);

  expect([0, 0, 0, 500].map((now) => pace.take(now))).toEqual([0, 0, 1_000, 1_500]);
  expect(pace.take(60_000)).toBe(0);
});

test("renderings take a small share of the time", () => {
  expect([waitAfter(1, 250), waitAfter(80, 250)]).toEqual([250, 1_000]);
});
