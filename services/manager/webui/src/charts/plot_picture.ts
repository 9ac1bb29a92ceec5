// Picture of a plot, for its SVG: axes, ticks, grid, series and limits as on its canvas.

import { formatShort } from "../format";
import type { Pattern, Picture, Point, Shape } from "./picture";
import { logTicks, niceTicks } from "./scales";

export interface PlotSeries {
  name: string;
  /** A custom property of the style sheet (`--accent`) or a colour. */
  colour: string;
  kind: "points" | "line" | "step" | "bars";
  /** Shape of points: a disc, or a ring, a cross or a square that differ without colour. */
  symbol?: "ring" | "cross" | "square";
  /** True: its points lie at the lower edge, whatever the values: those of trials without one. */
  edge?: boolean;
  y: (number | null | undefined)[];
  width?: number;
  /** Size of points in px. */
  size?: number;
  /** Filling of bars; solid by default. */
  pattern?: Pattern;
  /** False: its points have no tooltip and no click. */
  pickable?: boolean;
}

/** Smallest and largest value of both axes. */
export interface Ranges {
  x: { min: number; max: number };
  y: { min: number; max: number };
}

/** A tick: the value where it is, and its text. */
export interface Tick {
  at: number;
  text: string;
}

/** Square of coloured cells; null: no colour. */
export interface ColouredCells {
  /** Number of columns and of rows. */
  size: number;
  colours: (string | null)[];
}

export interface PlotModel {
  width: number;
  height: number;
  x: readonly number[];
  /** With colours, not custom properties. */
  series: readonly PlotSeries[];
  ranges: Ranges;
  logY: boolean;
  xTitle: string;
  yTitle: string;
  xTicks: readonly Tick[];
  yTicks: readonly Tick[];
  limits: { x?: number[]; y?: number[] };
  /** Colours of the cells of the positions from 0 to 1, row by row from the lower left corner. */
  surface?: ColouredCells;
  colours: { ink: string; grid: string; limit: string };
}

/** Space around the chart for axes and titles, in px. */
const LEFT = 82;
const RIGHT = 14;
const TOP = 12;
const BOTTOM = 48;
/** Height of marks at the lower edge, as a share of the chart. */
export const EDGE = 0.02;
/** Greatest width of a bar, in px, and its share of the distance between two. */
const BAR_PX = 40;
const BAR_SHARE = 0.72;

/** Return the ticks of a range of numbers; `whole` has integers only. */
export function numberTicks(
  { min, max }: { min: number; max: number },
  { log = false, whole = false } = {},
): Tick[] {
  const values = log && min > 0 ? logTicks(min, max) : niceTicks(min, max, 6, whole);
  return values.map((at) => ({ at, text: formatShort(at) }));
}

/** Return the picture of a plot. */
export function plotPicture(model: PlotModel): Picture {
  const { width, height, ranges, logY, colours } = model;
  const inner = { x: LEFT, y: TOP, width: width - LEFT - RIGHT, height: height - TOP - BOTTOM };
  const share = (value: number, { min, max }: { min: number; max: number }, log = false) => {
    if (!(max > min)) return 0.5;
    if (!log) return (value - min) / (max - min);
    return Math.log(value / min) / Math.log(max / min);
  };
  const place: Place = {
    x: (value) => inner.x + inner.width * share(value, ranges.x),
    y: (value) => inner.y + inner.height * (1 - share(value, ranges.y, logY)),
    bottom: inner.y + inner.height,
    height: inner.height,
    // A logarithmic scale has no place for these; the chart counts them.
    shows: (value) => value !== null && value !== undefined && (!logY || value > 0),
  };
  const within = ({ at }: Tick, { min, max }: { min: number; max: number }) =>
    at >= min && at <= max;
  const xTicks = model.xTicks.filter((tick) => within(tick, ranges.x));
  const yTicks = model.yTicks.filter((tick) => within(tick, ranges.y));
  const across = (y: number): Point[] => [
    [inner.x, y],
    [inner.x + inner.width, y],
  ];
  const down = (x: number): Point[] => [
    [x, inner.y],
    [x, place.bottom],
  ];
  const line = (points: Point[], stroke: string): Shape => ({ kind: "line", points, stroke });
  const limit = (points: Point[]): Shape => ({
    ...line(points, colours.limit),
    ...{ dash: [6, 4] },
  });
  const drawn = model.series.flatMap((one) => seriesShapes(one, model.x, place));
  return {
    width,
    height,
    shapes: [
      ...(model.surface
        ? [{ kind: "clip" as const, ...inner, shapes: cellShapes(model.surface, place) }]
        : []),
      ...xTicks.map(({ at }) => line(down(place.x(at)), colours.grid)),
      ...yTicks.map(({ at }) => line(across(place.y(at)), colours.grid)),
      {
        kind: "clip",
        ...inner,
        shapes: [
          ...drawn,
          ...(model.limits.x ?? []).map((at) => limit(down(place.x(at)))),
          ...(model.limits.y ?? []).map((at) => limit(across(place.y(at)))),
        ],
      },
      ...xTicks.map((tick) => label(tick.text, place.x(tick.at), place.bottom + 14, "middle")),
      ...yTicks.map((tick) => label(tick.text, inner.x - 8, place.y(tick.at), "end")),
      label(model.xTitle, inner.x + inner.width / 2, height - 10, "middle"),
      { ...label(model.yTitle, 12, inner.y + inner.height / 2, "middle"), turned: true },
    ],
  };

  function label(text: string, x: number, y: number, anchor: "middle" | "end") {
    return { kind: "text" as const, text, x, y, anchor, colour: colours.ink };
  }
}

interface Place {
  x: (value: number) => number;
  y: (value: number) => number;
  bottom: number;
  height: number;
  shows: (value: number | null | undefined) => boolean;
}

function seriesShapes(one: PlotSeries, x: readonly number[], place: Place): Shape[] {
  const found = x
    .map((at, i) => ({ at, value: one.y[i] }))
    .filter(({ value }) => (one.edge ? value !== null : place.shows(value)));
  const points = found.map(({ at, value }): Point => [
    place.x(at),
    one.edge ? place.bottom - place.height * EDGE : place.y(value!),
  ]);
  const marks = points.map(([px, py]): Shape => ({
    kind: "mark",
    x: px,
    y: py,
    size: one.size ?? 6,
    symbol: one.symbol ?? "disc",
    colour: one.colour,
  }));
  switch (one.kind) {
    case "points":
      return marks;
    case "bars":
      return barShapes(one, points, x.map(place.x), place);
    case "line":
    case "step": {
      const shape: Shape = {
        kind: "line",
        points: one.kind === "step" ? stepped(points) : points,
        stroke: one.colour,
        width: one.width ?? 2,
      };
      return [shape, ...(one.size === undefined ? [] : marks)];
    }
  }
}

function cellShapes({ size, colours }: ColouredCells, place: Place): Shape[] {
  return colours.flatMap((colour, i): Shape[] => {
    if (colour === null) return [];
    const [column, row] = [i % size, Math.floor(i / size)];
    const [x, right] = [place.x(column / size), place.x((column + 1) / size)];
    const [y, bottom] = [place.y((row + 1) / size), place.y(row / size)];
    return [{ kind: "rect", x, y, width: right - x, height: bottom - y, colour, pattern: "solid" }];
  });
}

/** Return the corners of steps that change at each point. */
export function stepped(points: readonly Point[]): Point[] {
  return points.flatMap((point, i): Point[] => {
    const before = points[i - 1];
    return before && before[1] !== point[1] ? [[point[0], before[1]], point] : [point];
  });
}

function barShapes(
  one: PlotSeries,
  points: readonly Point[],
  places: readonly number[],
  place: Place,
): Shape[] {
  const gap = places.reduce(
    (least, at, i) => (i ? Math.min(least, at - places[i - 1]!) : least),
    BAR_PX / BAR_SHARE,
  );
  const width = Math.max(1, Math.min(BAR_PX, gap * BAR_SHARE));
  const zero = Math.min(place.bottom, Math.max(place.bottom - place.height, place.y(0)));
  return points.map(([x, y]) => ({
    kind: "rect",
    x: x - width / 2,
    y: Math.min(y, zero),
    width,
    height: Math.abs(zero - y),
    colour: one.colour,
    pattern: one.pattern ?? "solid",
  }));
}
