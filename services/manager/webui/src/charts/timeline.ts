// Timeline of trials on agents: rows, lanes, bars, ticks of time and their picture.

import { formatState } from "../format";
import { LIVE, type Trial } from "../state/trial";
import type { Pattern, Picture, Shape } from "./picture";
import type { Tick } from "./plot_picture";

export interface Bar {
  trial: Trial;
  /** Index of the row of its agent. */
  row: number;
  /** Lane within the row: trials that run at the same time have different ones. */
  lane: number;
  /** Milliseconds since 1970. */
  from: number;
  to: number;
}

export interface TimelineRow {
  /** Id of the agent; empty: not known. */
  agent: string;
  lanes: number;
  trials: number;
}

/** Range of time, in milliseconds since 1970. */
export interface Span {
  from: number;
  to: number;
}

export interface Timeline {
  rows: TimelineRow[];
  bars: Bar[];
  /** From the first start to the last end; with a second at least. */
  span: Span;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Return the timeline of the last attempts of started trials; `now` ends those that run. */
export function timelineOf(trials: Iterable<Trial>, now: number): Timeline {
  const started = [...trials]
    .filter((trial) => trial.record.startTime)
    .sort((a, b) => a.record.startTime! - b.record.startTime! || a.number - b.number);
  const agents = [...new Set(started.map((trial) => trial.record.runnerId ?? ""))].sort(byName);
  /** For each row the end of the last bar of each lane. */
  const ends: number[][] = agents.map(() => []);
  const counts = agents.map(() => 0);
  const places = new Map(agents.map((agent, i) => [agent, i]));
  const bars = started.map((trial): Bar => {
    const from = trial.record.startTime!;
    const to = Math.max(from, trial.record.endTime ?? (LIVE.has(trial.state) ? now : from));
    const row = places.get(trial.record.runnerId ?? "")!;
    counts[row]! += 1;
    const lanes = ends[row]!;
    let lane = 0;
    while (lane < lanes.length && lanes[lane]! > from) lane += 1;
    lanes[lane] = to;
    return { trial, row, lane, from, to };
  });
  const first = bars[0]?.from ?? now;
  const last = bars.reduce((most, bar) => Math.max(most, bar.to), first);
  return {
    rows: agents.map((agent, i) => ({ agent, lanes: ends[i]!.length, trials: counts[i]! })),
    bars,
    span: { from: first, to: Math.max(last, first + SECOND) },
  };
}

/** Made once: thousands of agents would need seconds with one for each comparison. */
const NAMES = new Intl.Collator("en", { numeric: true });

/** Compare names with the numbers in them; the unknown agent is last. */
function byName(a: string, b: string): number {
  if (!a || !b) return Number(!a) - Number(!b);
  return NAMES.compare(a, b);
}

const STEPS = [
  SECOND,
  2 * SECOND,
  5 * SECOND,
  10 * SECOND,
  15 * SECOND,
  30 * SECOND,
  MINUTE,
  2 * MINUTE,
  5 * MINUTE,
  10 * MINUTE,
  15 * MINUTE,
  30 * MINUTE,
  HOUR,
  2 * HOUR,
  3 * HOUR,
  6 * HOUR,
  12 * HOUR,
  DAY,
  2 * DAY,
  7 * DAY,
  14 * DAY,
  28 * DAY,
  91 * DAY,
  364 * DAY,
];

/**
 * Return about `most` ticks at round local times; the first one, and each first one of a day, has
 * the date. `offset` is that of local time from UTC in minutes, east positive.
 */
export function timeTicks({ from, to }: Span, most: number, offset: number): Tick[] {
  const shift = offset * MINUTE;
  const step =
    STEPS.find((one) => (to - from) / one <= most) ?? Math.ceil((to - from) / most / DAY) * DAY;
  const ticks: Tick[] = [];
  let day = "";
  for (let at = Math.ceil((from + shift) / step) * step; at <= to + shift; at += step) {
    const iso = new Date(at).toISOString();
    const monthDay = `${Number(iso.slice(8, 10))} ${MONTHS[Number(iso.slice(5, 7)) - 1]}`;
    const date = step < YEAR_STEP ? monthDay : `${monthDay} ${iso.slice(0, 4)}`;
    const time = step < MINUTE ? iso.slice(11, 19) : iso.slice(11, 16);
    ticks.push({
      at: at - shift,
      text: step >= DAY ? date : date === day ? time : `${date} ${time}`,
    });
    day = date;
  }
  return ticks;
}

/** Step from which on ticks have the year. */
const YEAR_STEP = 91 * DAY;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Filling of the bars by state, which tells them apart without colour. */
const PATTERNS: Record<string, Pattern> = {
  RUNNING: "outlined",
  WAITING: "outlined",
  UNKNOWN: "outlined",
  FAILED: "hatched",
  EARLY_STOPPED: "dotted",
  USER_CANCELED: "dotted",
  SYS_CANCELED: "dotted",
};

export function patternOf(state: string): Pattern {
  return PATTERNS[state] ?? "solid";
}

/** Places of a timeline in a chart, in px. */
export interface TimelineFrame {
  timeline: Timeline;
  span: Span;
  width: number;
  height: number;
  /** Width of the names at the left edge. */
  left: number;
  laneHeight: number;
  /** Distance between two rows. */
  rowGap: number;
}

const TOP = 8;
const BOTTOM = 34;
const RIGHT = 14;
const ROW_GAP = 6;
const LANE_GAP = 2;
/** Greatest height of all lanes, and of all gaps between rows: browsers have no larger canvas. */
const MOST_HEIGHT = 12_000;
const MOST_GAPS = 3_000;
const MIN_LANE = 6;
const MAX_LANE = 22;
/** Least width of a bar: a short trial stays visible. */
const MIN_BAR = 2;
/** How far a bar that goes on outside of the chart is drawn beyond it: its end is not seen. */
const BEYOND = 8;
const MAX_LEFT = 190;
/** Distance of the names from the bars, and about the width of a letter. */
const NAME_GAP = 10;
const LETTER_PX = 7.2;

/** Return the places of a timeline; it is as high as its lanes need, about `height` if they fit. */
export function timelineFrame(
  timeline: Timeline,
  span: Span,
  width: number,
  height: number,
): TimelineFrame {
  const lanes = timeline.rows.reduce((sum, row) => sum + row.lanes, 0);
  const rowGap = Math.min(ROW_GAP, MOST_GAPS / Math.max(1, timeline.rows.length));
  const gaps = timeline.rows.length * rowGap;
  const room = (height - TOP - BOTTOM - gaps) / Math.max(1, lanes);
  const wanted = Math.max(MIN_LANE, Math.min(MAX_LANE, room));
  const laneHeight = Math.min(wanted, MOST_HEIGHT / Math.max(1, lanes));
  return {
    timeline,
    span,
    width,
    height: TOP + BOTTOM + gaps + lanes * laneHeight,
    left: Math.min(MAX_LEFT, width * 0.28),
    laneHeight,
    rowGap,
  };
}

/** Return the top of each row. */
function rowTops({ timeline, laneHeight, rowGap }: TimelineFrame): number[] {
  let next = TOP;
  return timeline.rows.map(({ lanes }) => {
    const top = next;
    next += lanes * laneHeight + rowGap;
    return top;
  });
}

/** Return the instant at a place. */
export function timeAt(frame: TimelineFrame, x: number): number {
  const { span, left, width } = frame;
  const share = (x - left) / Math.max(1, width - left - RIGHT);
  return span.from + Math.max(0, Math.min(1, share)) * (span.to - span.from);
}

function placeOf(frame: TimelineFrame, at: number): number {
  const { span, left, width } = frame;
  return left + ((at - span.from) / (span.to - span.from)) * (width - left - RIGHT);
}

interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

function barRect(frame: TimelineFrame, bar: Bar, top: number): Rect {
  // Of a bar that is far longer than the span, a pattern would be drawn over millions of px.
  const from = Math.max(frame.left - BEYOND, placeOf(frame, bar.from));
  const to = Math.min(frame.width + BEYOND, placeOf(frame, bar.to));
  return {
    x: from,
    y: top + bar.lane * frame.laneHeight,
    width: Math.max(MIN_BAR, to - from - 1),
    height: Math.max(1, frame.laneHeight - LANE_GAP),
  };
}

/** Return the bar at a place; null if there is none. */
export function barAt(frame: TimelineFrame, x: number, y: number): Bar | null {
  const tops = rowTops(frame);
  let found: Bar | null = null;
  for (const bar of frame.timeline.bars) {
    const rect = barRect(frame, bar, tops[bar.row]!);
    const inside =
      x >= rect.x - 1 && x <= rect.x + rect.width + 1 && y >= rect.y && y <= rect.y + rect.height;
    if (inside && x >= frame.left) found = bar; // the last one is on top
  }
  return found;
}

export interface TimelineColours {
  ink: string;
  muted: string;
  grid: string;
  /** Colour of a state. */
  state: (state: string) => string;
}

/** Return the picture of a timeline; `names` are those of agents by id. */
export function timelinePicture(
  frame: TimelineFrame,
  names: ReadonlyMap<string, string>,
  colours: TimelineColours,
  offset: number,
): Picture {
  const { timeline, span, width, height, left } = frame;
  const bottom = height - BOTTOM;
  const ticks = timeTicks(span, Math.max(2, Math.floor((width - left) / 130)), offset);
  const tops = rowTops(frame);
  const inner = { x: left, y: 0, width: width - left - RIGHT, height: bottom };
  const shapes: Shape[] = [];
  for (const { at } of ticks) {
    const x = placeOf(frame, at);
    shapes.push({
      kind: "line",
      points: [
        [x, TOP],
        [x, bottom],
      ],
      stroke: colours.grid,
    });
  }
  const bars = timeline.bars
    .filter((bar) => bar.to >= span.from && bar.from <= span.to)
    .map((bar): Shape => ({
      kind: "rect",
      ...barRect(frame, bar, tops[bar.row]!),
      colour: colours.state(bar.trial.state),
      pattern: patternOf(bar.trial.state),
    }));
  shapes.push({ kind: "clip", ...inner, shapes: bars });
  timeline.rows.forEach((row, i) => {
    const middle = tops[i]! + (row.lanes * frame.laneHeight) / 2;
    shapes.push({
      kind: "text",
      x: left - NAME_GAP,
      y: middle,
      text: cutTo(nameOf(row.agent, names), Math.floor((left - NAME_GAP) / LETTER_PX)),
      anchor: "end",
      colour: colours.ink,
    });
  });
  for (const tick of ticks)
    shapes.push({
      kind: "text",
      x: placeOf(frame, tick.at),
      y: bottom + 12,
      text: tick.text,
      anchor: "middle",
      colour: colours.muted,
    });
  return { width, height, shapes };
}

/** Return the name of an agent with its machine; of the unknown one a sentence. */
export function nameOf(agent: string, names: ReadonlyMap<string, string>): string {
  if (!agent) return "agent not known";
  const machine = names.get(agent);
  return machine && machine !== agent ? `${agent} on ${machine}` : agent;
}

function cutTo(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, Math.max(1, most - 1))}…` : text;
}

/** Return a timeline in words: rows, trials and how much of the time lanes were used. */
export function timelineText({ rows, bars, span }: Timeline): string {
  const agents = rows.length === 1 ? "1 agent" : `${rows.length} agents`;
  const trials = bars.length === 1 ? "1 trial" : `${bars.length.toLocaleString("en")} trials`;
  const lanes = rows.reduce((sum, row) => sum + row.lanes, 0);
  const busy = bars.reduce((sum, bar) => sum + bar.to - bar.from, 0);
  const used = Math.round((100 * busy) / Math.max(1, lanes * (span.to - span.from)));
  const states = new Map<string, number>();
  for (const { trial } of bars) states.set(trial.state, (states.get(trial.state) ?? 0) + 1);
  const parts = [...states].map(([state, count]) => `${count} ${formatState(state)}`);
  return `${trials} on ${agents}: ${parts.join(", ")}. ${lanes} ${lanes === 1 ? "slot was" : "slots were"} used ${used} % of the time.`;
}

/** Return a range of time as text of the address, and back; null without a valid one. */
export function spanText({ from, to }: Span): string {
  return `${Math.round(from)}..${Math.round(to)}`;
}

/** Later instants have no date of four digits. */
const LAST_INSTANT = Date.UTC(9999, 0);

export function spanOf(text: string): Span | null {
  const found = /^(\d+)\.\.(\d+)$/.exec(text);
  if (!found) return null;
  const span = { from: Number(found[1]), to: Number(found[2]) };
  return span.to > span.from && span.to < LAST_INSTANT ? span : null;
}
