// Parallel coordinates: one axis per parameter and metric, one line per trial.
//
// Dragging a name, or the arrow keys, move an axis; dragging along an axis selects a range.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { count, parameterText } from "../format";
import { Icon } from "../components/icon";
import { NoResult } from "../components/no_result";
import { ChoiceMenu } from "../components/choice_menu";
import { useApp } from "../state/context";
import { keysOf, keysText, placedAt } from "../state/choices";
import { usePlaceValue } from "../state/place_value";
import { usePreference } from "../state/preferences";
import { dimensionsOf } from "../state/space";
import { useStaged } from "../state/staged";
import type { Store } from "../state/store";
import { LoadingPart } from "../components/loading_part";
import { type Goals, modeOf } from "../state/objectives";
import type { Trial } from "../state/trial";
import { type Axis, type Brushes, axisOf, passes } from "./parallel_axes";
import {
  type Colours,
  type Frame,
  axisX,
  drawLines,
  drawOne,
  lineAt,
  linesPicture,
  yPosition,
} from "./parallel_canvas";
import { offerPicture } from "./chart_export";
import { type ParallelLines, linesOf } from "./parallel_lines";
import { colourOf } from "./plot";
import { ColourScale } from "./colour_scale";
import type { Picture } from "./picture";
import { Tip } from "./tip";
import { TrialTip } from "./trial_tip";

/** Maximum number of axes by default. */
const MAX_AXES = 9;
const NONE: ParallelLines = { trials: [], ranks: new Map(), dashed: new Set() };

interface Props {
  store: Store;
  metric: string;
  goals: Goals;
  height: number;
}

export function ParallelChart({ store, metric, goals, height }: Props) {
  const [axisText, setAxisText] = usePlaceValue("axes", `axis-keys:${store.profile?.id}`, "");
  const chosen = useMemo(() => keysOf(axisText), [axisText]);
  const setChosen = (next: string[] | null) => setAxisText(next ? keysText(next) : "");
  const [top, setTop] = usePreference("axes:top", 100);
  const [brushes, setBrushes] = useState<Brushes>({});
  const dimensions = useMemo(
    () => dimensionsOf(store.profile?.params["searchSpace"]),
    [store.profile?.revision],
  );
  const known = useMemo(() => axisKeys(store), [store.version, dimensions]);
  const keys = (chosen ?? usual(known, metric)).filter((key) => known.includes(key));
  const mode = modeOf(goals, metric);
  const found = useMemo(
    () => linesOf(store.trials.values(), goals, metric, top),
    [store.version, goals, metric, top],
  );
  // The axes follow a frame later: both in one would take too long.
  const [lines = NONE] = useStaged(found, 1);
  const { trials, ranks, dashed } = lines;
  const axes = useMemo(() => {
    const byName = new Map(dimensions.map((one) => [one.name, one]));
    return keys.map((key) => axisOf(key, trials, byName.get(key.slice(2)), goals));
  }, [keys.join("|"), trials, dimensions, goals]);
  const inside = useMemo(
    () => trials.filter((trial) => passes(trial, axes, brushes)),
    [trials, axes, brushes],
  );
  if (found.trials.length === 0) return <NoResult store={store} />;
  return (
    <>
      <div class="tools">
        <ChoiceMenu
          label="Axes"
          icon="columns"
          all={known.map((key) => ({ key, title: key === "m:default" ? "result" : key.slice(2) }))}
          chosen={keys}
          onChange={setChosen}
          ordered
        />
        <label>
          Best{" "}
          <input
            type="range"
            min={1}
            max={100}
            value={top}
            aria-valuetext={`${top} percent`}
            onInput={(event) => setTop(Number(event.currentTarget.value))}
          />{" "}
          {top} %
        </label>
        {Object.keys(brushes).length ? (
          <button type="button" class="plain" onClick={() => setBrushes({})}>
            <Icon name="close" /> Clear ranges
          </button>
        ) : null}
        <span class="muted" role="status">
          {inside.length < trials.length ? `${inside.length} of ` : ""}
          {count(found.trials.length, "trial")}
        </span>
      </div>
      <LoadingPart store={store} />
      <Lines
        axes={axes}
        trials={trials}
        ranks={ranks}
        dashed={dashed}
        inside={inside}
        brushes={brushes}
        height={height}
        onMove={(from, to) => setChosen(placedAt(keys, from, to))}
        onBrush={(key, range) => setBrushes(withRange(brushes, key, range))}
      />
      <p class="legend">
        <ColourScale mode={mode} />
        {dashed.size ? (
          <span>dashed: best intermediate result of a trial without a result ({dashed.size})</span>
        ) : null}
        {ranks.size < trials.length ? (
          <span>grey: without a value, or beyond a limit ({trials.length - ranks.size})</span>
        ) : null}
        <span class="muted">
          drag along an axis to mark a range, drag a name to move its axis; lines pass below an axis
          on which they have no value
        </span>
      </p>
    </>
  );
}

function axisKeys(store: Store): string[] {
  const parameters = store.parameters().map((name) => `p:${name}`);
  return [...parameters, ...[...store.metricKeys].map((key) => `m:${key}`)];
}

function usual(known: string[], metric: string): string[] {
  const parameters = known.filter((key) => key.startsWith("p:")).slice(0, MAX_AXES - 1);
  return [...parameters, `m:${metric}`];
}

function withRange(brushes: Brushes, key: string, range: [number, number] | null): Brushes {
  const { [key]: _before, ...others } = brushes;
  return range ? { ...others, [key]: range } : others;
}

interface LinesProps {
  axes: Axis[];
  trials: Trial[];
  ranks: Map<string, number>;
  dashed: Set<string>;
  inside: Trial[];
  brushes: Brushes;
  height: number;
  onMove: (from: number, to: number) => void;
  onBrush: (key: string, range: [number, number] | null) => void;
}

function Lines({
  axes,
  trials,
  ranks,
  dashed,
  inside,
  brushes,
  height,
  onMove,
  onBrush,
}: LinesProps) {
  const { go, theme } = useApp();
  const box = useRef<HTMLDivElement>(null);
  const base = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [hit, setHit] = useState<{ trial: Trial; x: number; y: number } | null>(null);
  const brushing = useRef<{ key: string; from: number } | null>(null);
  const frame: Frame = { width, height, axes };

  const picture = useRef<(() => Picture) | null>(null);
  picture.current = () =>
    linesPicture(frame, { trials, ranks, dashed }, brushes, coloursOf(box.current!, theme));

  useEffect(() => offerPicture(box.current!, () => picture.current!()), []);
  useEffect(() => {
    const element = box.current!;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(
    () =>
      width
        ? drawLines(
            base.current!,
            frame,
            { trials, ranks, dashed },
            brushes,
            coloursOf(box.current!, theme),
          )
        : undefined,
    [axes, trials, ranks, dashed, brushes, width, height, theme],
  );
  useEffect(() => {
    if (width) drawOne(over.current!, frame, hit?.trial ?? null, coloursOf(box.current!, theme));
  }, [hit?.trial, axes, width, height, theme]);

  const at = (event: PointerEvent) => {
    const rect = box.current!.getBoundingClientRect();
    return { x: event.clientX - rect.left, y: event.clientY - rect.top };
  };
  const nearAxis = (x: number) => axes.find((_, i) => Math.abs(axisX(frame, i) - x) < 12);
  const summary = `${count(axes.length, "axis").replace("axiss", "axes")}: ${axes.map((axis) => axis.title).join(", ")}. ${describeBest(inside, axes, ranks)}`;
  return (
    <div
      class="parallel"
      ref={box}
      style={{ height: `${height}px` }}
      onPointerDown={(event) => {
        const { x, y } = at(event);
        const axis = (event.target as Element).tagName === "CANVAS" ? nearAxis(x) : undefined;
        if (!axis) return;
        brushing.current = { key: axis.key, from: yPosition(frame, y) };
        (event.currentTarget as Element).setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        const { x, y } = at(event);
        const mark = brushing.current;
        if (mark) {
          const to = yPosition(frame, y);
          onBrush(mark.key, [Math.min(mark.from, to), Math.max(mark.from, to)]);
        } else {
          const trial = lineAt(frame, inside, x, y);
          setHit(trial ? { trial, x, y } : null);
        }
      }}
      onPointerUp={(event) => {
        const mark = brushing.current;
        brushing.current = null;
        // A click on an axis removes its range.
        if (mark && Math.abs(mark.from - yPosition(frame, at(event).y)) < 0.01)
          onBrush(mark.key, null);
        else if (!mark && hit && (event.target as Element).tagName === "CANVAS")
          go({ trial: hit.trial.id });
      }}
      onPointerLeave={() => setHit(null)}
    >
      <canvas ref={base} role="img" aria-label={`Parallel coordinates. ${summary}`} />
      <canvas ref={over} aria-hidden="true" class={hit ? "pickable" : ""} />
      {width
        ? axes.map((axis, i) => (
            <AxisName
              key={axis.key}
              axis={axis}
              x={axisX(frame, i)}
              index={i}
              frame={frame}
              onMove={onMove}
            />
          ))
        : null}
      {hit ? (
        <Tip x={hit.x} y={hit.y + 14} width={width}>
          <TrialTip trial={hit.trial} />
        </Tip>
      ) : null}
    </div>
  );
}

function coloursOf(element: Element, theme: "light" | "dark"): Colours {
  const read = (name: string) => colourOf(element, name);
  return {
    theme,
    ink: read("--ink"),
    muted: read("--muted"),
    line: read("--grid"),
    accent: read("--hit"),
    surface: read("--card"),
    font: `11.5px ${getComputedStyle(element).fontFamily}`,
  };
}

function describeBest(trials: Trial[], axes: Axis[], ranks: Map<string, number>): string {
  const best = trials.at(-1);
  if (!best) return "No trial is within the selected ranges.";
  if (!ranks.has(best.id)) return "No trial has a result to rank it by.";
  const values = axes
    .filter((axis) => axis.key.startsWith("p:"))
    .filter((axis) => axis.title in best.flat)
    .map((axis) => `${axis.title} ${parameterText(best.flat[axis.title])}`);
  return `The best trial, ${best.number}, has ${values.join(", ")}.`;
}

interface AxisNameProps {
  axis: Axis;
  x: number;
  index: number;
  frame: Frame;
  onMove: (from: number, to: number) => void;
}

function AxisName({ axis, x, index, frame, onMove }: AxisNameProps) {
  const [offset, setOffset] = useState(0);
  const start = useRef<number | null>(null);
  const last = frame.axes.length - 1;
  const gap = last > 0 ? axisX(frame, 1) - axisX(frame, 0) : 1;
  const move = (to: number) => {
    const next = Math.max(0, Math.min(last, to));
    if (next !== index) onMove(index, next);
  };
  return (
    <button
      type="button"
      class="axis-name"
      title={`${axis.title}${axis.kind === "log" ? " (logarithmic)" : ""}: drag or use the arrow keys to move`}
      style={{ left: `${x + offset}px`, maxWidth: `${Math.max(60, gap - 8)}px` }}
      onKeyDown={(event) => {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (step) {
          event.preventDefault();
          move(index + step);
        }
      }}
      onPointerDown={(event) => {
        start.current = event.clientX;
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        if (start.current !== null) setOffset(event.clientX - start.current);
      }}
      onPointerUp={() => {
        start.current = null;
        if (Math.abs(offset) > gap / 2) move(index + Math.round(offset / gap));
        setOffset(0);
      }}
    >
      {axis.title}
    </button>
  );
}
