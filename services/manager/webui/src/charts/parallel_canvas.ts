// Canvas rendering of parallel coordinates, in batches of lines so that the page stays responsive.

import { type Axis, type Brushes, passes, rankColour } from "./parallel_axes";
import type { Trial } from "../state/trial";
import type { Picture, Point, Shape } from "./picture";

export interface Frame {
  width: number;
  height: number;
  axes: Axis[];
}

const TOP = 44;
const BOTTOM = 40;
/** Distance below an axis at which lines without a value pass. */
const LANE_PX = 24;
const SIDE = 70;
/** Half the length of a stroke on a single axis. */
const STROKE_PX = 6;
/** Lines of the first animation frame, and of each later one at least and at most. */
const FIRST_BATCH = 100;
const LEAST_BATCH = 20;
const MOST_BATCH = 1_000;
/** Time from frame to frame up to which the browser keeps up, in ms. */
const QUICK_MS = 25;
/** Maximum number of thick lines, for the best trials. */
const MAX_STRONG = 10;

export function axisX(frame: Frame, index: number): number {
  const gaps = frame.axes.length - 1;
  return gaps > 0 ? SIDE + (index * (frame.width - 2 * SIDE)) / gaps : frame.width / 2;
}

export function positionY(frame: Frame, position: number): number {
  return TOP + (1 - position) * (frame.height - TOP - BOTTOM);
}

export function yPosition(frame: Frame, y: number): number {
  return Math.max(0, Math.min(1, 1 - (y - TOP) / (frame.height - TOP - BOTTOM)));
}

/** Resize a canvas to the pixels of the screen and return its context, in CSS px. */
function prepared(canvas: HTMLCanvasElement, { width, height }: Frame): CanvasRenderingContext2D {
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d")!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

function trace(context: CanvasRenderingContext2D, frame: Frame, trial: Trial): void {
  context.beginPath();
  linePoints(frame, trial).forEach(([x, y], i) =>
    i === 0 ? context.moveTo(x, y) : context.lineTo(x, y),
  );
  context.stroke();
}

/** Return the corners of a trial's line; on a single axis it is a short stroke. */
function linePoints(frame: Frame, trial: Trial): Point[] {
  const points = frame.axes.map((axis, i): Point => [axisX(frame, i), trialY(frame, axis, trial)]);
  const only = points.length === 1 ? points[0]! : null;
  if (!only) return points;
  return [
    [only[0] - STROKE_PX, only[1]],
    [only[0] + STROKE_PX, only[1]],
  ];
}

/** Return the y position of a trial; below the axis if the trial lacks the parameter. */
function trialY(frame: Frame, axis: Axis, trial: Trial): number {
  const position = axis.position(trial);
  return position === null ? frame.height - BOTTOM + LANE_PX : positionY(frame, position);
}

export interface Colours {
  theme: "light" | "dark";
  ink: string;
  muted: string;
  line: string;
  accent: string;
  surface: string;
  font: string;
}

/** Lines to draw: trials in their order, ranks and dashes by id. */
export interface LineSet {
  trials: Trial[];
  ranks: Map<string, number>;
  dashed: Set<string>;
}

interface StyledLine {
  trial: Trial;
  colour: string;
  width: number;
  opacity: number;
  dash: number[];
}

/** Return the lines in the order in which they are drawn, so that the best are on top. */
function styledLines(
  frame: Frame,
  { trials, ranks, dashed }: LineSet,
  brushes: Brushes,
  colours: Colours,
): StyledLine[] {
  const inside = trials.filter((trial) => passes(trial, frame.axes, brushes));
  const chosen = new Set(inside);
  // Many lines need transparency, or the last ones would hide all others.
  const opacity = Math.min(0.85, 8 / Math.sqrt(inside.length + 1));
  const strong = inside.length - Math.min(MAX_STRONG, Math.ceil(inside.length * 0.03));
  const dash = (trial: Trial) => (dashed.has(trial.id) ? [6, 4] : []);
  const faint = trials
    .filter((trial) => !chosen.has(trial))
    .map((trial): StyledLine => ({
      trial,
      colour: colours.line,
      width: 1,
      opacity: 1,
      dash: dash(trial),
    }));
  const clear = inside.map((trial, i): StyledLine => {
    const rank = ranks.get(trial.id);
    const best = i >= strong && rank !== undefined;
    return {
      trial,
      colour:
        rank === undefined ? colours.muted : rankColour(rank, colours.theme, best ? 1 : opacity),
      width: best ? 2 : 1,
      opacity: rank === undefined ? 0.35 : 1,
      dash: dash(trial),
    };
  });
  return [...faint, ...clear];
}

/** Draw lines (worst first, so that the best are on top) and axes; returns a cancel function. */
export function drawLines(
  canvas: HTMLCanvasElement,
  frame: Frame,
  lines: LineSet,
  brushes: Brushes,
  colours: Colours,
): () => void {
  const context = prepared(canvas, frame);
  const queue = styledLines(frame, lines, brushes, colours);
  context.lineJoin = "round";
  let at = 0;
  let turn = 0;
  let size = FIRST_BATCH;
  let last = performance.now();
  const step = (now: number) => {
    size = nextBatch(size, now - last);
    last = now;
    for (const end = Math.min(queue.length, at + size); at < end; at += 1) {
      const line = queue[at]!;
      context.lineWidth = line.width;
      context.strokeStyle = line.colour;
      context.globalAlpha = line.opacity;
      context.setLineDash(line.dash);
      trace(context, frame, line.trial);
    }
    context.globalAlpha = 1;
    context.setLineDash([]);
    if (at < queue.length) turn = requestAnimationFrame(step);
    else drawAxes(context, frame, brushes, colours);
  };
  step(last);
  return () => cancelAnimationFrame(turn);
}

/** Return the number of lines of the next frame after one that took `ms` with `size` lines.
 *
 * The browser fills lines after the script has traced them, so only the frames tell what they cost.
 */
export function nextBatch(size: number, ms: number): number {
  const wanted = ms > QUICK_MS ? size / 2 : size * 1.25;
  return Math.max(LEAST_BATCH, Math.min(MOST_BATCH, Math.round(wanted)));
}

/** Return the same lines and axes as a picture, with the names of the axes. */
export function linesPicture(
  frame: Frame,
  lines: LineSet,
  brushes: Brushes,
  colours: Colours,
): Picture {
  const traces = styledLines(frame, lines, brushes, colours).map((line): Shape => ({
    kind: "line",
    points: linePoints(frame, line.trial),
    stroke: line.colour,
    width: line.width,
    opacity: line.opacity,
    dash: line.dash,
  }));
  const axes = frame.axes.flatMap((axis, i): Shape[] => {
    const x = axisX(frame, i);
    const last = i === frame.axes.length - 1 && i > 0;
    const text = { kind: "text" as const, colour: colours.ink };
    const [top, bottom] = [positionY(frame, 1), positionY(frame, 0)];
    return [
      {
        kind: "line",
        points: [
          [x, top],
          [x, bottom],
        ],
        stroke: colours.muted,
      },
      ...axis.ticks.map((tick): Shape => ({
        ...text,
        x: last ? x + TICK_PX : x - TICK_PX,
        y: positionY(frame, tick.position),
        text: cutTick(tick.text),
        anchor: last ? "start" : "end",
        size: 11.5,
      })),
      { ...text, x, y: NAME_PX, text: axis.title, anchor: "middle", bold: true },
    ];
  });
  return { width: frame.width, height: frame.height, shapes: [...traces, ...axes] };
}

/** Distance of the texts of ticks from their axis, and middle of the names of axes, in px. */
const TICK_PX = 7;
const NAME_PX = 16;

function cutTick(text: string): string {
  return text.length > 12 ? `${text.slice(0, 11)}…` : text;
}

function drawAxes(
  context: CanvasRenderingContext2D,
  frame: Frame,
  brushes: Brushes,
  colours: Colours,
): void {
  context.font = colours.font;
  context.textBaseline = "middle";
  frame.axes.forEach((axis, i) => {
    const x = axisX(frame, i);
    context.strokeStyle = colours.muted;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, positionY(frame, 1));
    context.lineTo(x, positionY(frame, 0));
    context.stroke();
    const last = i === frame.axes.length - 1 && i > 0;
    context.textAlign = last ? "left" : "right";
    for (const tick of axis.ticks) {
      const text = cutTick(tick.text);
      const y = positionY(frame, tick.position);
      const at = last ? x + TICK_PX : x - TICK_PX;
      context.strokeStyle = colours.surface;
      context.lineWidth = 4;
      context.lineJoin = "round";
      context.strokeText(text, at, y); // a halo keeps text readable over lines
      context.fillStyle = colours.ink;
      context.fillText(text, at, y);
    }
    const brush = brushes[axis.key];
    if (brush) {
      context.fillStyle = colours.accent;
      const top = positionY(frame, brush[1]);
      context.fillRect(x - 4, top, 8, Math.max(2, positionY(frame, brush[0]) - top));
    }
  });
}

/** Draw one line on the canvas above the others. */
export function drawOne(
  canvas: HTMLCanvasElement,
  frame: Frame,
  trial: Trial | null,
  colours: Colours,
): void {
  const context = prepared(canvas, frame);
  if (!trial) return;
  context.lineJoin = "round";
  context.lineWidth = 5;
  context.strokeStyle = colours.surface;
  trace(context, frame, trial);
  context.lineWidth = 2.5;
  context.strokeStyle = colours.accent;
  trace(context, frame, trial);
}

/** Maximum distance between the pointer and a picked line, in px. */
const REACH_PX = 8;

/** Return the trial whose line is nearest to a point; among equals the top one. */
export function lineAt(frame: Frame, trials: Trial[], x: number, y: number): Trial | null {
  const gaps = frame.axes.length - 1;
  if (gaps < 1) return null;
  const width = (frame.width - 2 * SIDE) / gaps;
  const left = Math.max(0, Math.min(gaps - 1, Math.floor((x - SIDE) / width)));
  const part = Math.max(0, Math.min(1, (x - axisX(frame, left)) / width));
  const [a, b] = [frame.axes[left]!, frame.axes[left + 1]!];
  let found: Trial | null = null;
  let least = REACH_PX;
  for (const trial of trials) {
    const from = trialY(frame, a, trial);
    const to = trialY(frame, b, trial);
    const distance = Math.abs(from + (to - from) * part - y);
    if (distance <= least) {
      least = distance;
      found = trial;
    }
  }
  return found;
}
