// Component around uPlot: axes, series, zoom by dragging, tooltip at the nearest point.
//
// uPlot draws on a canvas; this module adds size, colours of the theme, tooltips and clicks. Screen
// readers get the text `summary` instead of the picture.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";

import { formatShort } from "../format";
import { useApp } from "../state/context";
import { valueRange, withLines } from "./scales";

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
  /** False: its points have no tooltip and no click. */
  pickable?: boolean;
}

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
  /** Content of the tooltip of a point. */
  tip: (series: number, index: number) => ComponentChildren;
  onPick?: (series: number, index: number) => void;
}

/** Smallest and largest value of both axes. */
interface Ranges {
  x: { min: number; max: number };
  y: { min: number; max: number };
}

interface Pick {
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
  const [pick, setPick] = useState<Pick | null>(null);
  const [zoomed, setZoomed] = useState(false);
  // Names and colours may change without another plot.
  const shape = series
    .map((one) => `${one.kind} ${one.width} ${one.size} ${one.symbol} ${one.edge}`)
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
    const before = view.current;
    if (isZoomed.current && before) made.batch(() => setRanges(made, before));
    const observer = new ResizeObserver(() => {
      const width = element.clientWidth;
      if (width > 0 && width !== made.width) made.setSize({ width, height });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      view.current = rangesOf(made);
      made.destroy();
      plot.current = null;
      setPick(null);
    };
  }, [shape, theme, logY, height, xTitle, yTitle, lines]);

  useEffect(() => {
    const current = plot.current;
    if (!current) return;
    const ranges = rangesOf(current);
    current.batch(() => {
      current.setData(dataOf(latest.current), !isZoomed.current);
      if (isZoomed.current) setRanges(current, ranges);
    });
  }, [x, series]);

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
        <Tip pick={pick} width={box.current?.clientWidth ?? 0}>
          {props.tip(pick.series, pick.index)}
        </Tip>
      ) : null}
    </div>
  );
}

function Tip({
  pick,
  width,
  children,
}: {
  pick: Pick;
  width: number;
  children: ComponentChildren;
}) {
  const left = pick.left > width / 2;
  return (
    <div
      class="tip"
      style={{
        top: `${pick.top}px`,
        ...(left ? { right: `${width - pick.left + 14}px` } : { left: `${pick.left + 14}px` }),
      }}
    >
      {children}
    </div>
  );
}

function same(a: Pick | null, b: Pick | null): boolean {
  return (
    a?.series === b?.series && a?.index === b?.index && a?.left === b?.left && a?.top === b?.top
  );
}

/** Height of marks at the lower edge, as a share of the chart. */
const EDGE = 0.02;

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
  move: (pick: Pick | null) => void;
  zoom: (zoomed: boolean) => void;
  isZoomed: () => boolean;
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
    (range: (low: number | null, high: number | null) => [number, number]) =>
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
      x: {
        time: false,
        range: props.fractions
          ? kept((low, high) => valueRange(...withLines(low, high, props.limits?.x ?? [])))
          : kept(spread),
      },
      y: props.logY
        ? { distr: 3 }
        : {
            range: kept((low, high) =>
              valueRange(...withLines(low, high, props.limits?.y ?? []), props.fromZero),
            ),
          },
      // Marks of trials without a value: at the lower edge, at every zoom.
      edge: { range: [0, 1] },
    },
    cursor: {
      x: false,
      y: false,
      points: { show: false },
      drag: { x: true, y: true, uni: 24, setScale: true },
    },
    axes: [
      props.fractions
        ? { ...axis(props.xTitle), size: 28, values: (_plot, all) => all.map(formatShort) }
        : {
            ...axis(props.xTitle),
            size: 28,
            incrs: WHOLE_STEPS,
            values: (_plot, all) => all.map((one) => (Number.isInteger(one) ? String(one) : "")),
          },
      {
        ...axis(props.yTitle),
        size: 62,
        values: (_plot, all) => all.map((one) => (one === null ? "" : formatShort(one))),
      },
    ],
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

function seriesOf(one: PlotSeries, stroke: () => string): uPlot.Series {
  if (one.kind === "points") {
    return {
      stroke,
      ...(one.edge ? { scale: "edge" } : {}),
      paths: () => null,
      points: pointsOf(one, stroke),
    };
  }
  if (one.kind === "bars") {
    return {
      stroke,
      fill: stroke,
      width: 0,
      points: { show: false },
      paths: uPlot.paths.bars!({ size: [0.72, 40, 1], gap: 0 }),
    };
  }
  return {
    stroke,
    width: one.width ?? 2,
    spanGaps: true,
    points: { show: one.size !== undefined, size: one.size ?? 0, fill: stroke, width: 0 },
    ...(one.kind === "step" ? { paths: uPlot.paths.stepped!({ align: 1 }) } : {}),
  };
}

function pointsOf(one: PlotSeries, stroke: () => string): uPlot.Series.Points {
  const size = one.size ?? 6;
  if (!one.symbol) return { show: true, size, fill: stroke, width: 0 };
  if (one.symbol === "ring")
    return { show: true, size: size + 1, stroke, fill: "transparent", width: 1.5 };
  const cross = one.symbol === "cross";
  return {
    show: true,
    size,
    stroke,
    fill: "transparent",
    width: 1.5,
    paths: (plot, index, from, to) => {
      const path = new Path2D();
      const half = (size / 2) * devicePixelRatio;
      const scale = plot.series[index]!.scale!;
      for (let i = from; i <= to; i += 1) {
        const value = plot.data[index]![i];
        if (value === null || value === undefined) continue;
        const x = plot.valToPos(plot.data[0][i]!, "x", true);
        const y = plot.valToPos(value, scale, true);
        if (cross) {
          path.moveTo(x - half, y - half);
          path.lineTo(x + half, y + half);
          path.moveTo(x - half, y + half);
          path.lineTo(x + half, y - half);
        } else path.rect(x - half, y - half, 2 * half, 2 * half);
      }
      return { stroke: path, fill: null };
    },
  };
}

/** Return the point nearest to the pointer, within `REACH_PX`. */
function nearest(plot: uPlot, series: PlotSeries[]): Pick | null {
  const { left = -1, top = -1 } = plot.cursor;
  const xs = plot.data[0];
  if (left < 0 || top < 0 || xs.length === 0) return null;
  const from = plot.posToIdx(left - REACH_PX);
  const to = plot.posToIdx(left + REACH_PX);
  let found: Pick | null = null;
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
