import { expect, test } from "vitest";

import {
  barAt,
  nameOf,
  patternOf,
  spanOf,
  spanText,
  timeAt,
  timeTicks,
  timelineFrame,
  timelineOf,
  timelinePicture,
  timelineText,
} from "../src/charts/timeline";
import type { TrialState } from "../src/api/records";
import type { Trial } from "../src/state/trial";
import { trial } from "./trials";

function run(
  number: number,
  agent: string | undefined,
  from: number | undefined,
  to?: number,
  state: TrialState = "SUCCEEDED",
): Trial {
  const made = trial(number, 1, {}, state);
  const { startTime: _start, endTime: _end, ...record } = made.record;
  return {
    ...made,
    record: {
      ...record,
      ...(from === undefined ? {} : { startTime: from }),
      ...(to === undefined ? {} : { endTime: to }),
      ...(agent === undefined ? {} : { runnerId: agent }),
    },
  };
}

const RUNS = [
  run(0, "agent-2", 10_000, 30_000),
  run(1, "agent-10", 10_000, 20_000, "FAILED"),
  run(2, "agent-2", 20_000, 40_000),
  run(3, "agent-2", 30_000, undefined, "RUNNING"),
  run(4, undefined, 12_000, 13_000),
  run(5, undefined, undefined, undefined, "WAITING"),
];

test("trials that run at the same time have a lane each, and a free lane is used again", () => {
  const { rows, bars, span } = timelineOf(RUNS, 50_000);

  expect(rows).toEqual([
    { agent: "agent-2", lanes: 2, trials: 3 },
    { agent: "agent-10", lanes: 1, trials: 1 },
    { agent: "", lanes: 1, trials: 1 },
  ]);
  expect(bars.map((bar) => [bar.trial.number, bar.row, bar.lane, bar.to])).toEqual([
    [0, 0, 0, 30_000],
    [1, 1, 0, 20_000],
    [4, 2, 0, 13_000],
    [2, 0, 1, 40_000],
    [3, 0, 0, 50_000],
  ]);
  expect(span).toEqual({ from: 10_000, to: 50_000 });
});

test("without a started trial there is no bar, and a clock that went back gives no negative one", () => {
  expect(timelineOf([RUNS[5]!], 5_000).bars).toEqual([]);
  expect(timelineOf([run(0, "a", 9_000, 4_000)], 5_000).bars[0]).toMatchObject({ to: 9_000 });
});

test("a place has a time and the bar there", () => {
  const frame = timelineFrame(timelineOf(RUNS, 50_000), { from: 10_000, to: 50_000 }, 1014, 600);
  const x = (at: number) => 190 + ((at - 10_000) / 40_000) * 810;

  expect(timeAt(frame, x(30_000))).toBeCloseTo(30_000);
  expect(timeAt(frame, 0)).toBe(10_000);
  expect(barAt(frame, x(15_000), 12)?.trial.number).toBe(0);
  expect(barAt(frame, x(35_000), 12)?.trial.number).toBe(3);
  expect(barAt(frame, x(35_000), 34)?.trial.number).toBe(2);
  expect(barAt(frame, x(35_000), 64)).toBeNull();
});

test.each([
  // seconds from, to; offset in minutes; texts
  [0, 40, 0, ["1 Jan 00:00:00", "00:00:10", "00:00:20", "00:00:30", "00:00:40"]],
  [0, 1800, 60, ["1 Jan 01:00", "01:10", "01:20", "01:30"]],
  [79_200, 93_600, 0, ["1 Jan 22:00", "23:00", "2 Jan 00:00", "01:00", "02:00"]],
  [
    0,
    86_400 * 365 * 3000,
    0,
    ["1 Jan 1970", "8 Aug 2569", "16 Mar 3169", "21 Oct 3768", "29 May 4368", "4 Jan 4968"],
  ],
  [0, 86_400 * 4, 0, ["1 Jan", "2 Jan", "3 Jan", "4 Jan", "5 Jan"]],
])("ticks from %d s to %d s at %d min", (from, to, offset, texts) =>
  expect(
    timeTicks({ from: from * 1000, to: to * 1000 }, 5, offset).map((tick) => tick.text),
  ).toEqual(texts),
);

test("states have different fillings, and agents the name of their machine", () => {
  expect(["SUCCEEDED", "FAILED", "RUNNING", "EARLY_STOPPED"].map(patternOf)).toEqual([
    "solid",
    "hatched",
    "outlined",
    "dotted",
  ]);
  const names = new Map([
    ["agent-2", "node7"],
    ["same", "same"],
  ]);
  expect(["agent-2", "same", "x", ""].map((one) => nameOf(one, names))).toEqual([
    "agent-2 on node7",
    "same",
    "x",
    "agent not known",
  ]);
});

test("the picture has a name per agent and a bar per trial in the span", () => {
  const frame = timelineFrame(timelineOf(RUNS, 50_000), { from: 35_000, to: 50_000 }, 1014, 600);
  const colours = { ink: "i", muted: "m", grid: "g", state: (state: string) => state };
  const { shapes, height } = timelinePicture(frame, new Map(), colours, 0);
  const clip = shapes.find((one) => one.kind === "clip")!;
  const texts = shapes.flatMap((one) =>
    one.kind === "text" && one.anchor === "end" ? [one.text] : [],
  );

  expect(texts).toEqual(["agent-2", "agent-10", "agent not known"]);
  expect(clip.kind === "clip" && clip.shapes).toMatchObject([
    { colour: "SUCCEEDED", pattern: "solid" },
    { colour: "RUNNING", pattern: "outlined" },
  ]);
  expect(height).toBe(frame.height);
});

test("a bar far longer than the span is drawn a little beyond the chart only", () => {
  const long = [run(0, "a", 1, 1e10, "FAILED"), run(1, "a", 9e9, 1e10, "FAILED")];
  const span = { from: 5e9, to: 5e9 + 1 };
  const frame = timelineFrame(timelineOf(long, 1e10), span, 1014, 600);
  const colours = { ink: "i", muted: "m", grid: "g", state: (state: string) => state };
  const clip = timelinePicture(frame, new Map(), colours, 0).shapes.find(
    (one) => one.kind === "clip",
  )!;

  expect(clip.kind === "clip" && clip.shapes).toMatchObject([{ x: 182, width: 839 }]);
  expect(barAt(frame, 500, 12)?.trial.number).toBe(0);
  expect(barAt(frame, 500, 34)).toBeNull();
});

test("thousands of agents fit on a canvas", () => {
  const many = Array.from({ length: 2_000 }, (_, i) => run(i, `agent-${i}`, 1, 1_000));
  const frame = timelineFrame(timelineOf(many, 1_000), { from: 0, to: 1_000 }, 1014, 600);

  expect(frame.timeline.rows).toHaveLength(2_000);
  expect(frame.height).toBeLessThan(16_000);
});

test("a timeline is described in words", () =>
  expect(timelineText(timelineOf(RUNS, 50_000))).toBe(
    "5 trials on 3 agents: 3 succeeded, 1 failed, 1 running. 4 slots were used 44 % of the time.",
  ));

test.each([
  ["10..20", { from: 10, to: 20 }],
  ["20..10", null],
  ["now", null],
  ["0..8640000000000000", null],
  ["", null],
])("the range %s of an address", (text, span) => {
  expect(spanOf(text)).toEqual(span);
  if (span) expect(spanText(span)).toBe(text);
});
