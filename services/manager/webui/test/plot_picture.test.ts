import { expect, test } from "vitest";

import type { Shape } from "../src/charts/picture";
import { type PlotModel, numberTicks, plotPicture, stepped } from "../src/charts/plot_picture";

const MODEL: PlotModel = {
  width: 296, // 200 between the axes
  height: 160, // 100 between the edges
  x: [0, 5, 10],
  series: [],
  ranges: { x: { min: 0, max: 10 }, y: { min: 0, max: 4 } },
  logY: false,
  xTitle: "trial",
  yTitle: "result",
  xTicks: [{ at: 0, text: "0" }, { at: 20, text: "20" }], // prettier-ignore
  yTicks: [{ at: 4, text: "4" }],
  limits: {},
  colours: { ink: "ink", grid: "grid", limit: "limit" },
};

function inside(model: Partial<PlotModel>): Shape[] {
  const clip = plotPicture({ ...MODEL, ...model }).shapes.find((one) => one.kind === "clip");
  return clip && clip.kind === "clip" ? clip.shapes : [];
}

const series = { name: "s", colour: "red", width: 2 };

test("ticks outside of a zoomed range have no line and no text", () => {
  const texts = plotPicture(MODEL).shapes.flatMap((one) => (one.kind === "text" ? [one.text] : []));

  expect(texts).toEqual(["0", "4", "trial", "result"]);
});

test("a line goes through its points and over missing ones", () =>
  expect(inside({ series: [{ ...series, kind: "line", y: [0, null, 4] }] })).toEqual([
    { kind: "line", points: [[82, 112], [282, 12]], stroke: "red", width: 2 }, // prettier-ignore
  ]));

test("points without a value are at the lower edge", () => {
  const y = [0, null, 0];
  const marks = inside({ series: [{ ...series, kind: "points", edge: true, y, symbol: "cross" }] });

  expect(marks).toMatchObject([
    { kind: "mark", x: 82, y: 110, symbol: "cross" },
    { kind: "mark", x: 282, y: 110 },
  ]);
});

test("a logarithmic scale leaves out what is not positive", () => {
  const marks = inside({
    logY: true,
    ranges: { x: { min: 0, max: 10 }, y: { min: 0.01, max: 1 } },
    series: [{ ...series, kind: "points", y: [0.1, 0, -1] }],
  });

  expect(marks).toMatchObject([{ x: 82, y: 62 }]);
});

test("bars stand on zero, also those below it", () => {
  const bars = inside({
    ranges: { x: { min: 0, max: 10 }, y: { min: -4, max: 4 } },
    series: [{ ...series, kind: "bars", y: [4, null, -2], pattern: "hatched" }],
  });

  expect(bars).toMatchObject([
    { y: 12, height: 50, width: 40, pattern: "hatched" },
    { y: 62, height: 25 },
  ]);
});

test("limits are dashed lines across the chart", () =>
  expect(inside({ limits: { x: [5], y: [2] } })).toEqual([
    { kind: "line", points: [[182, 12], [182, 112]], stroke: "limit", dash: [6, 4] }, // prettier-ignore
    { kind: "line", points: [[82, 62], [282, 62]], stroke: "limit", dash: [6, 4] }, // prettier-ignore
  ]));

test("steps change at each point", () =>
  expect(stepped([[0, 1], [2, 1], [3, 5]])).toEqual([[0, 1], [2, 1], [3, 1], [3, 5]])); // prettier-ignore

test.each([
  [{ min: 0, max: 1 }, {}, ["0", "0.2", "0.4", "0.6", "0.8", "1"]],
  [{ min: 0.5, max: 3.5 }, { whole: true }, ["1", "2", "3"]],
  [{ min: 0.001, max: 1 }, { log: true }, ["0.001", "0.01", "0.1", "1"]],
])("ticks of %j with %j", (range, how, texts) =>
  expect(numberTicks(range, how).map((tick) => tick.text)).toEqual(texts),
);
