// Component around uPlot: axes, series, zoom by dragging, tooltip at the nearest point.
//
// uPlot draws on a canvas; this module adds size, colours of the theme, tooltips and clicks. Screen
// readers get the text `summary` instead of the picture.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";

import { formatShort } from "../format";
import { useApp } from "../state/context";
import { offerPicture } from "./chart_export";
import type { Picture } from "./picture";
import {
  type ColouredCells,
  EDGE,
  type PlotSeries,
  type Ranges,
  type Tick,
  numberTicks,
  plotPicture,
} from "./plot_picture";
import { drawCrowd, seriesOf } from "./plot_series";
import { valueRange, withLines } from "./scales";
import { Tip } from "./tip";

export type { PlotSeries } from "./plot_picture";

/** Ticks of an axis between two of its values. */
export type TickSource = (from: number, to: number) => Tick[];

interface Props {
  /** Title of the chart. */
  label: string;
  /** Description of the content in a sentence or two. */
  summary: string;
  x: number[];
  series: PlotSeries[];
  xTitle: string;
  yTitle: string;
  height: number;
  logY?: boolean;
  /** True: the value axis begins at 0, as bars need. */
  fromZero?: boolean;
  /** Values of limits, drawn as dashed lines across the chart. */
  limits?: { x?: number[]; y?: number[] };
  /** True: x is not a count, so its axis has fractions. */
  fractions?: boolean;
  /** Ticks of axes whose values are positions from 0 to 1. */
  positions?: { x: TickSource; y: TickSource };
  /** Coloured cells below the points, of axes of positions. */
  surface?: ColouredCells;
  /** Content of the tooltip of a point. */
  tip: (series: number, index: number) => ComponentChildren;
  onPick?: (series: number, index: number) => void;
}

interface Picked {
  series: number;
  index: number;
  left: number;
  top: number;
}

/** Maximum distance between the pointer and a picked point, in px. */
const REACH_PX = 30;

export function Plot(props: Props) {
  const { label, summary, x, series, xTitle, yTitle, height, logY = false } = props;
  const { theme } = useApp();
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  /** Data and surface that the plot shows. */
  const drawn = useRef<unknown[]>([]);
  const [pick, setPick] = useState<Picked | null>(null);
  const [zoomed, setZoomed] = useState(false);
  // Names and colours may change without another plot.
  const shape = series
    .map(({ kind, width, size, symbol, edge, pattern }) =>
      [kind, width, size, symbol, edge, pattern].join(" "),
    )
    .join("|");
  /** Ranges of a zoomed plot, for the one that replaces it. */
  const view = useRef<Ranges | null>(null);
  const lines = JSON.stringify(props.limits ?? {});
  const isZoomed = useRef(false);
  const zoom = (on: boolean) => {
    isZoomed.current = on; // at once: the plot asks for its ranges before the next rendering
    setZoomed(on);
  };

  useLayoutEffect(() => {
    const element = box.current!;
    const made = new uPlot(
      options(element, latest, {
        move: (one) => setPick((before) => (same(before, one) ? before : one)),
        zoom,
        isZoomed: () => isZoomed.current,
      }),
      dataOf(latest.current),
      element,
    );
    plot.current = made;
    drawn.current = [x, series, props.surface];
    const before = view.current;
    if (isZoomed.current && before) made.batch(() => setRanges(made, before));
    const observer = new ResizeObserver(() => {
      const width = element.clientWidth;
      if (width > 0 && width !== made.width) made.setSize({ width, height });
    });
    observer.observe(element);
    const withdraw = offerPicture(element, () => pictureOf(made, element, latest.current));
    return () => {
      withdraw();
      observer.disconnect();
      view.current = rangesOf(made);
      made.destroy();
      plot.current = null;
      setPick(null);
    };
  }, [shape, theme, logY, height, xTitle, yTitle, lines]);

  useEffect(() => {
    const current = plot.current;
    const wanted = [x, series, props.surface];
    // A new plot has drawn them already.
    if (!current || wanted.every((one, i) => one === drawn.current[i])) return;
    drawn.current = wanted;
    const ranges = rangesOf(current);
    current.batch(() => {
      current.setData(dataOf(latest.current), !isZoomed.current);
      if (isZoomed.current) setRanges(current, ranges);
    });
    // The range of positions is always the same, so the plot would keep its ticks.
    if (latest.current.positions) current.redraw(false, true);
  }, [x, series, props.surface]);

  const onClick = () => {
    if (pick) props.onPick?.(pick.series, pick.index);
  };
  return (
    <div class="plot">
      <div
        class={pick && props.onPick ? "plot-canvas pickable" : "plot-canvas"}
        ref={box}
        role="img"
        aria-label={`${label}. ${summary}`}
        style={{ height: `${height}px` }}
        onClick={onClick}
      />
      {zoomed ? (
        <button
          type="button"
          class="plain plot-reset"
          onClick={() => {
            zoom(false);
            plot.current?.setData(dataOf(latest.current), true);
          }}
        >
          Show all
        </button>
      ) : null}
      {pick ? (
        <Tip x={pick.left} y={pick.top} width={box.current?.clientWidth ?? 0}>
          {props.tip(pick.series, pick.index)}
        </Tip>
      ) : null}
    </div>
  );
}

function same(a: Picked | null, b: Picked | null): boolean {
  return (
    a?.series === b?.series && a?.index === b?.index && a?.left === b?.left && a?.top === b?.top
  );
}

/** Room beyond the positions 0 and 1, so that points there are not clipped. */
const POSITION_ROOM = 0.04;

/** Return what a plot shows now, with the colours of the theme. */
function pictureOf(plot: uPlot, element: HTMLElement, props: Props): Picture {
  const ranges = rangesOf(plot);
  const { positions, fractions = false, logY = false } = props;
  const colour = (name: string) => colourOf(element, name);
  return plotPicture({
    width: plot.width,
    height: plot.height,
    x: props.x,
    series: props.series.map((one) => ({ ...one, colour: colour(one.colour) })),
    ranges,
    logY,
    xTitle: props.xTitle,
    yTitle: props.yTitle,
    xTicks: positions
      ? positions.x(ranges.x.min, ranges.x.max)
      : numberTicks(ranges.x, { whole: !fractions }),
    yTicks: positions
      ? positions.y(ranges.y.min, ranges.y.max)
      : numberTicks(ranges.y, { log: logY }),
    limits: props.limits ?? {},
    ...(props.surface ? { surface: props.surface } : {}),
    colours: { ink: colour("--muted"), grid: colour("--grid"), limit: colour("--s-failed") },
  });
}

function rangesOf({ scales }: uPlot): Ranges {
  const range = (name: string) => ({ min: scales[name]!.min!, max: scales[name]!.max! });
  return { x: range("x"), y: range("y") };
}

function setRanges(plot: uPlot, { x, y }: Ranges): void {
  plot.setScale("x", x);
  plot.setScale("y", y);
}

function dataOf({ x, series, logY }: Props): uPlot.AlignedData {
  const shown = (one: PlotSeries) => {
    if (one.edge) return one.y.map((value) => (value === null ? null : EDGE));
    // A logarithmic scale has no place for these; the chart counts them.
    return logY ? one.y.map((value) => ((value ?? 0) > 0 ? value : null)) : one.y;
  };
  return [x, ...series.map(shown)] as uPlot.AlignedData;
}

/** Return the value of a custom property, or the colour itself. */
export function colourOf(element: Element, colour: string): string {
  return colour.startsWith("--")
    ? getComputedStyle(element).getPropertyValue(colour).trim()
    : colour;
}

interface PlotListener {
  move: (pick: Picked | null) => void;
  zoom: (zoomed: boolean) => void;
  isZoomed: () => boolean;
}

/** Range of an axis for the extremes of its values. */
type RangeOf = (low: number | null, high: number | null) => [number, number];

const positionRange: RangeOf = () => [-POSITION_ROOM, 1 + POSITION_ROOM];

function xRange({ positions, fractions, limits }: Props): RangeOf {
  if (positions) return positionRange;
  if (!fractions) return spread;
  return (low, high) => valueRange(...withLines(low, high, limits?.x ?? []));
}

function yRange({ positions, fromZero, limits }: Props): RangeOf {
  if (positions) return positionRange;
  return (low, high) => valueRange(...withLines(low, high, limits?.y ?? []), fromZero);
}

/** Return both axes; `axis` makes what they share. */
function axesOf(latest: { current: Props }, axis: (title: string) => uPlot.Axis): uPlot.Axis[] {
  const { xTitle, yTitle, positions, fractions } = latest.current;
  const x = { ...axis(xTitle), size: 28 };
  const y = { ...axis(yTitle), size: 62 };
  if (positions)
    return [
      { ...x, ...positionTicks(() => latest.current.positions!.x) },
      { ...y, ...positionTicks(() => latest.current.positions!.y) },
    ];
  const short = (_plot: uPlot, all: (number | null)[]) =>
    all.map((one) => (one === null ? "" : formatShort(one)));
  const whole = (_plot: uPlot, all: number[]) =>
    all.map((one) => (Number.isInteger(one) ? String(one) : ""));
  return [
    fractions ? { ...x, values: short } : { ...x, incrs: WHOLE_STEPS, values: whole },
    { ...y, values: short },
  ];
}

/** Return the options of a plot; `latest` holds the properties of the last rendering. */
function options(
  element: HTMLElement,
  latest: { current: Props },
  listener: PlotListener,
): uPlot.Options {
  const props = latest.current;
  const ink = colourOf(element, "--muted");
  const line = colourOf(element, "--grid");
  const font = `12px ${getComputedStyle(element).fontFamily}`;
  // A zoomed plot keeps its ranges, to which these functions would add a margin at each drawing.
  const kept =
    (range: RangeOf) =>
    (_plot: uPlot, low: number | null, high: number | null): uPlot.Range.MinMax =>
      listener.isZoomed() && low !== null && high !== null ? [low, high] : range(low, high);
  const axis = (title: string): uPlot.Axis => ({
    stroke: ink,
    font,
    labelFont: font,
    label: title,
    labelSize: 20,
    labelGap: 2,
    grid: { stroke: line, width: 1 },
    ticks: { show: false },
  });
  return {
    width: element.clientWidth || 600,
    height: props.height,
    legend: { show: false },
    padding: [12, 14, 0, 0],
    scales: {
      x: { time: false, range: kept(xRange(props)) },
      y: props.logY ? { distr: 3 } : { range: kept(yRange(props)) },
      // Marks of trials without a value: at the lower edge, at every zoom.
      edge: { range: [0, 1] },
    },
    cursor: {
      x: false,
      y: false,
      points: { show: false },
      drag: { x: true, y: true, uni: 24, setScale: true },
    },
    axes: axesOf(latest, axis),
    series: [
      {},
      ...props.series.map((one, i) =>
        seriesOf(one, () => colourOf(element, latest.current.series[i]?.colour ?? one.colour)),
      ),
    ],
    hooks: {
      setCursor: [(plot) => listener.move(nearest(plot, latest.current.series))],
      setSelect: [
        (plot) => {
          if (plot.select.width > 0 || plot.select.height > 0) listener.zoom(true);
        },
      ],
      drawSeries: [
        (plot, index) => {
          const one = latest.current.series[index - 1];
          if (one) drawCrowd(plot, index, one, colourOf(element, one.colour));
        },
      ],
      drawClear: [(plot) => drawCells(plot, latest.current.surface)],
      draw: [(plot) => drawLimits(plot, props.limits ?? {}, colourOf(element, "--s-failed"))],
      init: [
        (plot) => {
          // Before uPlot's own listener, which asks for the ranges.
          plot.over.addEventListener("dblclick", () => listener.zoom(false), true);
          plot.over.addEventListener("mouseleave", () => listener.move(null));
        },
      ],
    },
  };
}

/** Return the ticks and texts of an axis of positions. */
function positionTicks(source: () => TickSource): Pick<uPlot.Axis, "splits" | "values"> {
  let shown: Tick[] = [];
  return {
    splits: (_plot, _axis, from, to) => {
      shown = source()(from, to);
      return shown.map((tick) => tick.at);
    },
    values: (_plot, all) => all.map((at) => shown.find((tick) => tick.at === at)?.text ?? ""),
  };
}

const WHOLE_STEPS = [
  1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1e3, 2e3, 2.5e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5,
  1e6,
];

/** Return a range with margins, so that the first and last points are not clipped. */
function spread(low: number | null, high: number | null): [number, number] {
  if (low === null || high === null) return [0, 1];
  const room = Math.max((high - low) * 0.015, 0.5);
  return [low - room, high + room];
}

function drawCells(plot: uPlot, surface: ColouredCells | undefined): void {
  if (!surface) return;
  const { ctx: context, bbox } = plot;
  const { size, colours } = surface;
  context.save();
  context.beginPath();
  context.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  context.clip();
  // Whole pixels, so that no lines appear between cells.
  const at = (part: number, scale: "x" | "y") =>
    Math.round(plot.valToPos(part / size, scale, true));
  colours.forEach((colour, i) => {
    if (colour === null) return;
    const [column, row] = [i % size, Math.floor(i / size)];
    const [left, top] = [at(column, "x"), at(row + 1, "y")];
    context.fillStyle = colour;
    context.fillRect(left, top, at(column + 1, "x") - left, at(row, "y") - top);
  });
  context.restore();
}

function drawLimits(plot: uPlot, limits: { x?: number[]; y?: number[] }, colour: string): void {
  const { ctx: context, bbox } = plot;
  context.save();
  context.beginPath();
  context.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = devicePixelRatio;
  context.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
  context.beginPath();
  for (const limit of limits.x ?? []) {
    const x = plot.valToPos(limit, "x", true);
    context.moveTo(x, bbox.top);
    context.lineTo(x, bbox.top + bbox.height);
  }
  for (const limit of limits.y ?? []) {
    const y = plot.valToPos(limit, "y", true);
    context.moveTo(bbox.left, y);
    context.lineTo(bbox.left + bbox.width, y);
  }
  context.stroke();
  context.restore();
}

/** Return the point nearest to the pointer, within `REACH_PX`. */
function nearest(plot: uPlot, series: PlotSeries[]): Picked | null {
  const { left = -1, top = -1 } = plot.cursor;
  const xs = plot.data[0];
  if (left < 0 || top < 0 || xs.length === 0) return null;
  const from = plot.posToIdx(left - REACH_PX);
  const to = plot.posToIdx(left + REACH_PX);
  let found: Picked | null = null;
  let least = REACH_PX ** 2;
  for (let index = from; index <= to; index += 1) {
    const x = plot.valToPos(xs[index]!, "x");
    for (let s = 1; s < plot.data.length; s += 1) {
      const one = series[s - 1];
      const value = one && one.pickable !== false ? plot.data[s]![index] : null;
      if (value === null || value === undefined) continue;
      const y = plot.valToPos(value, plot.series[s]!.scale ?? "y");
      const bar = one!.kind === "bars" && y < top ? 0 : (y - top) ** 2; // a bar is picked anywhere on it
      const distance = (x - left) ** 2 + bar;
      if (distance < least) {
        least = distance;
        found = {
          series: s - 1,
          index,
          left: x + plot.bbox.left / devicePixelRatio,
          top: y + plot.bbox.top / devicePixelRatio,
        };
      }
    }
  }
  return found;
}
