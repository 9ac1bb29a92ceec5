// Axes of the parallel coordinates: map values to positions from 0 (bottom) to 1 (top).

import type { Json } from "../api/records";
import { formatShort, parameterText } from "../format";
import { type Goals, modeOf } from "../state/objectives";
import { outcomeOf } from "../state/outcome";
import type { Dimension } from "../state/space";
import type { Trial } from "../state/trial";
import type { Tick } from "./plot_picture";
import { logTicks, niceTicks } from "./scales";

export interface Axis {
  /** `p:lr` or `m:default`. */
  key: string;
  title: string;
  kind: "linear" | "log" | "category";
  /** Position of a trial's value on the axis; null without a value. */
  position: (trial: Trial) => number | null;
  /** Ticks of the whole axis. */
  ticks: { position: number; text: string }[];
  /** Return about `most` ticks between two positions. */
  ticksIn: (from: number, to: number, most: number) => Tick[];
}

/** Maximum number of ticks of a categorical axis; more labels would hide each other. */
const MAX_TICKS = 14;

/** Most characters of the name of a category beside an axis. */
const MAX_NAME = 14;

export type Read = (trial: Trial) => Json | undefined;

/** Return the axis of a parameter or metric over the space and the given trials. */
export function axisOf(
  key: string,
  trials: Trial[],
  dimension: Dimension | undefined,
  goals: Goals,
): Axis {
  const name = key.slice(2);
  const read: Read = key.startsWith("p:")
    ? (t) => t.flat[name]
    : (t) => outcomeOf(t, name, modeOf(goals, name))?.value;
  return axisBy(key, key === "m:default" ? "result" : name, read, trials, dimension);
}

/** Return the axis of any value of trials; a dimension of the space has its bounds and scale. */
export function axisBy(
  key: string,
  title: string,
  read: Read,
  trials: Trial[],
  dimension?: Dimension,
): Axis {
  const values = trials.map(read).filter((value): value is Json => value !== undefined);
  const bounds = dimension?.bounds ?? [];
  const numbers = dimension?.options.length ? null : extentOf(values, bounds);
  if (!numbers) return categories(key, title, read, values, dimension?.options ?? []);
  return numeric({ key, title, read, ...numbers, log: Boolean(dimension?.log) && numbers.low > 0 });
}

/** Return the extent of values and bounds; null without values, or if one is no finite number. */
function extentOf(
  values: readonly Json[],
  bounds: readonly number[],
): { low: number; high: number; whole: boolean } | null {
  let low = Math.min(...bounds);
  let high = Math.max(...bounds);
  let whole = bounds.every(Number.isInteger);
  for (const value of values) {
    if (typeof value !== "number" || !Number.isFinite(value)) return null;
    if (value < low) low = value;
    if (value > high) high = value;
    whole &&= Number.isInteger(value);
  }
  return values.length ? { low, high, whole } : null;
}

function categories(
  key: string,
  title: string,
  read: Read,
  values: Json[],
  options: string[],
): Axis {
  const labels = [...new Set([...options, ...values.map(parameterText)])];
  const positions = new Map(
    labels.map((word, i) => [word, labels.length > 1 ? i / (labels.length - 1) : 0.5]),
  );
  const stride = Math.ceil(labels.length / MAX_TICKS);
  return {
    key,
    title,
    kind: "category",
    position: (trial) => {
      const value = read(trial);
      return value === undefined ? null : (positions.get(parameterText(value)) ?? null);
    },
    ticks: labels
      .filter((_, i) => i % stride === 0)
      .map((text) => ({ text, position: positions.get(text)! })),
    ticksIn: (from, to, most) => {
      const inside = labels
        .map((text) => ({ at: positions.get(text)!, text: cutName(text) }))
        .filter(({ at }) => at >= from && at <= to);
      const step = Math.ceil(inside.length / most);
      return inside.filter((_, i) => i % step === 0);
    },
  };
}

function cutName(text: string): string {
  return text.length > MAX_NAME ? `${text.slice(0, MAX_NAME - 1)}…` : text;
}

interface NumericAxis {
  key: string;
  title: string;
  read: Read;
  low: number;
  high: number;
  log: boolean;
  /** Whether all its values are integers; then its ticks are, too. */
  whole: boolean;
}

function numeric({ key, title, read, low, high, log, whole }: NumericAxis): Axis {
  const scale = log ? Math.log : (value: number) => value;
  const [from, to] = [scale(low), scale(high)];
  const position = (value: number) => (to > from ? (scale(value) - from) / (to - from) : 0.5);
  const value = (at: number) => (log ? Math.exp(from + at * (to - from)) : from + at * (to - from));
  const marks = log ? logTicks(low, high) : niceTicks(low, high, 5, whole);
  return {
    key,
    title,
    kind: log ? "log" : "linear",
    ticks: marks.map((mark) => ({ position: position(mark), text: formatShort(mark) })),
    position: (trial) => {
      const one = read(trial);
      if (typeof one !== "number" || !Number.isFinite(one) || (log && one <= 0)) return null;
      return position(one);
    },
    ticksIn: (first, last, most) => {
      if (!(to > from)) return [{ at: 0.5, text: formatShort(low) }];
      const [least, greatest] = [value(first), value(last)];
      const inside = log ? logTicks(least, greatest) : niceTicks(least, greatest, most, whole);
      const step = Math.ceil(inside.length / (most + 2));
      return inside
        .filter((_, i) => i % step === 0)
        .map((mark) => ({ at: position(mark), text: formatShort(mark) }));
    },
  };
}

/** Ranges that the user selected on axes: lowest and highest position by key. */
export type Brushes = Record<string, [number, number]>;

/** Whether a trial is within every selected range. */
export function passes(trial: Trial, axes: Axis[], brushes: Brushes): boolean {
  return axes.every((axis) => {
    const brush = brushes[axis.key];
    if (!brush) return true;
    const position = axis.position(trial);
    return position !== null && position >= brush[0] && position <= brush[1];
  });
}

// Colour scale of even lightness steps, readable without colour vision (like cividis).
const STOPS: Record<"light" | "dark", [number, number, number][]> = {
  light: [
    [233, 196, 66],
    [148, 160, 116],
    [77, 119, 150],
    [20, 62, 124],
    [3, 22, 71],
  ],
  dark: [
    [58, 84, 130],
    [84, 120, 158],
    [131, 158, 152],
    [196, 190, 108],
    [255, 229, 92],
  ],
};

/** Return the colour of a rank between 0 (worst) and 1 (best). */
export function rankColour(rank: number, theme: "light" | "dark", opacity = 1): string {
  const stops = STOPS[theme];
  const at = Math.max(0, Math.min(1, rank)) * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(at));
  const mix = stops[i]!.map((low, c) => Math.round(low + (stops[i + 1]![c]! - low) * (at - i)));
  return `rgba(${mix.join(",")},${opacity})`;
}
