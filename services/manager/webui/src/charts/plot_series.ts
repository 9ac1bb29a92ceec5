// Series of a plot as uPlot draws them: lines, bars, points of all shapes, and crowds of them.

import uPlot from "uplot";

import { canvasFilling } from "./canvas_pattern";
import { CROWD, type Stamp, columnsOf, stampPoints } from "./crowd";
import type { PlotSeries } from "./plot_picture";

/** Width of the lines of rings, crosses and squares, in px. */
const LINE_PX = 1.5;
/** Share of the room of a bar that it takes, and its greatest width in px. */
const BAR_SHARE = 0.72;
const MAX_BAR = 40;

/** Return the options of a series. */
export function seriesOf(one: PlotSeries, stroke: () => string): uPlot.Series {
  if (one.kind === "points") {
    return {
      stroke,
      ...(one.edge ? { scale: "edge" } : {}),
      paths: () => null,
      points: { ...pointsOf(one, stroke), show: (plot, index) => !isCrowd(plot, index) },
    };
  }
  if (one.kind === "bars") {
    const pattern = one.pattern ?? "solid";
    const bars = uPlot.paths.bars!({ size: [BAR_SHARE, MAX_BAR, 1], gap: 0 });
    return {
      stroke,
      fill: (plot) => canvasFilling(plot.ctx, stroke(), pattern),
      width: pattern === "solid" ? 0 : LINE_PX,
      points: { show: false },
      paths: (plot, index, from, to) =>
        pattern === "solid" && to - from > plot.bbox.width
          ? columnPaths(plot, index, from, to)
          : bars(plot, index, from, to),
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

/** Draw the points of a series if they are a crowd; called after each series. */
export function drawCrowd(plot: uPlot, index: number, one: PlotSeries, colour: string): void {
  if (one.kind !== "points" || !isCrowd(plot, index)) return;
  const stamp = stampOf(one);
  // Points at the edge of the plot are not cut.
  const room = stamp.side;
  const { left, top, width, height } = plot.bbox;
  const picture = new ImageData(Math.ceil(width) + 2 * room, Math.ceil(height) + 2 * room);
  const places = placesOf(plot, index);
  for (let i = 0; i < places.length; i += 2) {
    places[i]! += room - left;
    places[i + 1]! += room - top;
  }
  stampPoints(picture, places, stamp, rgbaOf(colour));
  const layer = document.createElement("canvas");
  layer.width = picture.width;
  layer.height = picture.height;
  layer.getContext("2d")!.putImageData(picture, 0, 0);
  plot.ctx.drawImage(layer, Math.round(left) - room, Math.round(top) - room);
}

/** Whether so many points of a series are in view that they are drawn as pixels. */
function isCrowd(plot: uPlot, index: number): boolean {
  const [from, to] = plot.series[0]!.idxs ?? [0, -1];
  if (to - from < CROWD) return false;
  const values = plot.data[index]!;
  let found = 0;
  for (let i = from; i <= to; i += 1) if (typeof values[i] === "number") found += 1;
  return found > CROWD;
}

/** Return x and y of the points in view in turn, in pixels of the canvas. */
function placesOf(plot: uPlot, index: number, [from, to] = plot.series[0]!.idxs!): number[] {
  const scale = plot.series[index]!.scale ?? "y";
  const places: number[] = [];
  for (let i = from; i <= to; i += 1) {
    const value = plot.data[index]![i];
    if (value === null || value === undefined) continue;
    places.push(plot.valToPos(plot.data[0][i]!, "x", true), plot.valToPos(value, scale, true));
  }
  return places;
}

/** Return the paths of bars of which several share a column of pixels. */
function columnPaths(plot: uPlot, index: number, from: number, to: number): uPlot.Series.Paths {
  const fill = new Path2D();
  const bottom = plot.valToPos(0, plot.series[index]!.scale ?? "y", true);
  for (const { x, top } of columnsOf(placesOf(plot, index, [from, to])))
    fill.rect(x, top, 1, bottom - top);
  return { fill, stroke: null, clip: null, band: null, flags: 0 };
}

/** Return the mask of a point, with soft edges. */
function stampOf(one: PlotSeries): Stamp {
  const size = ((one.size ?? 6) + (one.symbol ? LINE_PX : 0)) * devicePixelRatio;
  const side = 2 * Math.ceil(size / 2) + 1;
  const canvas = document.createElement("canvas");
  canvas.width = side;
  canvas.height = side;
  const context = canvas.getContext("2d", { willReadFrequently: true })!;
  const half = ((one.size ?? 6) / 2) * devicePixelRatio;
  const path = new Path2D();
  if (one.symbol === "cross" || one.symbol === "square")
    addSymbol(path, one.symbol, side / 2, side / 2, half);
  else path.arc(side / 2, side / 2, half, 0, 2 * Math.PI);
  context.lineWidth = LINE_PX * devicePixelRatio;
  if (one.symbol) context.stroke(path);
  else context.fill(path);
  const { data } = context.getImageData(0, 0, side, side);
  return { side, coverage: data.filter((_, i) => i % 4 === 3) };
}

/** Return red, green and blue from 0 to 255, and opacity from 0 to 1. */
function rgbaOf(colour: string): [number, number, number, number] {
  const canvas = document.createElement("canvas");
  canvas.width = 1;
  canvas.height = 1;
  const context = canvas.getContext("2d", { willReadFrequently: true })!;
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  const [red, green, blue, opacity] = context.getImageData(0, 0, 1, 1).data;
  return [red!, green!, blue!, opacity! / 255];
}

function addSymbol(
  path: Path2D,
  symbol: "cross" | "square",
  x: number,
  y: number,
  half: number,
): void {
  if (symbol === "square") {
    path.rect(x - half, y - half, 2 * half, 2 * half);
    return;
  }
  path.moveTo(x - half, y - half);
  path.lineTo(x + half, y + half);
  path.moveTo(x - half, y + half);
  path.lineTo(x + half, y - half);
}

function pointsOf(one: PlotSeries, stroke: () => string): uPlot.Series.Points {
  const { size = 6, symbol } = one;
  if (!symbol) return { size, fill: stroke, width: 0 };
  if (symbol === "ring") return { size: size + 1, stroke, fill: "transparent", width: LINE_PX };
  return {
    size,
    stroke,
    fill: "transparent",
    width: LINE_PX,
    paths: (plot, index, from, to) => {
      const path = new Path2D();
      const half = (size / 2) * devicePixelRatio;
      const places = placesOf(plot, index, [from, to]);
      for (let i = 0; i < places.length; i += 2)
        addSymbol(path, symbol, places[i]!, places[i + 1]!, half);
      return { stroke: path, fill: null };
    },
  };
}
