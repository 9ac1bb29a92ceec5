// Ranges, ticks and units of axes: pure functions.

/** Least margin as a share of the values: in a narrower range ticks would be equal numbers. */
const LEAST_ROOM = 1e-12;

/** Return the range of a value axis with a margin; `fromZero` keeps 0 at its edge, as bars need. */
export function valueRange(
  low: number | null,
  high: number | null,
  fromZero = false,
): [number, number] {
  if (low === null || high === null || !Number.isFinite(low) || !Number.isFinite(high))
    return [0, 1];
  if (fromZero) {
    if (low === 0 && high === 0) return [0, 1];
    const room = Math.max(Math.abs(low), Math.abs(high)) * 0.05;
    return [low < 0 ? low - room : 0, high > 0 ? high + room : 0];
  }
  const least = Math.max(Math.abs(low), Math.abs(high)) * LEAST_ROOM;
  const room = high > low ? Math.max((high - low) * 0.08, least) : Math.abs(high) * 0.08 || 1;
  return [low - room, high + room];
}

/** Return the extremes with those lines that lie near: one far away would squeeze the values. */
export function withLines(
  low: number | null,
  high: number | null,
  lines: readonly number[],
): [number | null, number | null] {
  if (low === null || high === null) return [low, high];
  const reach = high > low ? high - low : Math.abs(high) || 1;
  const near = lines.filter((line) => line >= low - reach && line <= high + reach);
  return [Math.min(low, ...near), Math.max(high, ...near)];
}

/** Values on a logarithmic scale, and how many it cannot show. */
export interface LogSplit {
  /** Whether there is a value > 0, without which there is no such scale. */
  possible: boolean;
  /** Number of finite values <= 0. */
  omitted: number;
}

/** Return what a logarithmic scale shows of values. */
export function logSplit(values: Iterable<number | null | undefined>): LogSplit {
  let omitted = 0;
  let possible = false;
  for (const value of values) {
    if (value === null || value === undefined || !Number.isFinite(value)) continue;
    if (value > 0) possible = true;
    else omitted += 1;
  }
  return { possible, omitted };
}

/** Return the sentence about values that a logarithmic scale leaves out; empty: all are shown. */
export function logNote({ possible, omitted }: LogSplit): string {
  if (omitted === 0) return "";
  const noun = omitted === 1 ? "1 value" : `${omitted.toLocaleString("en")} values`;
  return possible
    ? `${noun} ≤ 0 cannot be drawn on the logarithmic scale.`
    : `The scale is linear: no value is > 0.`;
}

/** Return round numbers from `low` to `high`, about `wanted` of them, both ends included or not. */
export function niceTicks(low: number, high: number, wanted = 5, whole = false): number[] {
  if (!(high > low)) return Number.isFinite(low) ? [low] : [];
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 2.5, 5, 10].find((one) => one * power >= rough * (1 - 1e-9))!;
  const step = whole ? Math.max(1, Math.ceil(factor * power)) : factor * power;
  const ticks: number[] = [];
  const first = Math.ceil(low / step - 1e-9);
  // Of integers above 2⁵³, the next one is the same.
  for (let i = first; i * step <= high + step * 1e-9 && ticks.length <= wanted; i += 1)
    ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

/** Return the powers of ten between two positive numbers, with 2 and 5 if there are few. */
export function logTicks(low: number, high: number): number[] {
  if (!(high > low) || !(low > 0)) return low > 0 ? [low] : [];
  const [from, to] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const within = (factors: number[], stride: number) => {
    const found: number[] = [];
    for (let power = from; power <= to; power += stride)
      for (const factor of factors) {
        const tick = Number(`${factor}e${power}`);
        if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) found.push(tick);
      }
    return found;
  };
  const decades = within([1], Math.max(1, Math.ceil((to - from) / 6)));
  if (decades.length >= 3) return decades;
  const more = within([1, 2, 5], 1);
  return more.length >= 2 ? more : niceTicks(low, high);
}

/** Return the unit in which durations are readable, and its number of seconds. */
export function durationUnit(seconds: number): { name: string; size: number } {
  if (seconds >= 2 * 86_400) return { name: "days", size: 86_400 };
  if (seconds >= 2 * 3_600) return { name: "hours", size: 3_600 };
  if (seconds >= 2 * 60) return { name: "minutes", size: 60 };
  return { name: "seconds", size: 1 };
}
