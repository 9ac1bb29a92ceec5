// Timeline of trials: when each ran on which agent. Dragging selects a range of time.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { formatDuration, formatState, formatTime, zoneName } from "../format";
import { LoadingPart } from "../components/loading_part";
import { useApp, useClock } from "../state/context";
import { fetchMachines } from "../state/machines";
import { usePlaceValue } from "../state/place_value";
import type { Store } from "../state/store";
import { LIVE, TRIAL_STATES } from "../state/trial";
import { offerPicture } from "./chart_export";
import { type Picture, drawPicture } from "./picture";
import { colourOf } from "./plot";
import {
  type Bar,
  type Span,
  type TimelineColours,
  barAt,
  nameOf,
  patternOf,
  spanOf,
  spanText,
  timeAt,
  timelineFrame,
  timelineOf,
  timelinePicture,
  timelineText,
} from "./timeline";
import { Tip } from "./tip";
import { TrialTip } from "./trial_tip";

/** Shortest drag that selects a range; a shorter one is a click. */
const DRAG_PX = 6;

export function TimelineChart({ store, height }: { store: Store; height: number }) {
  const { theme } = useApp();
  const running = [...store.trials.values()].some(
    (trial) => LIVE.has(trial.state) && trial.record.startTime,
  );
  const now = useClock(running);
  const second = running ? Math.floor(now / 1000) : 0;
  const [text, setText] = usePlaceValue("span", "", "");
  const names = useMachineNames(store);
  const timeline = useMemo(() => timelineOf(store.trials.values(), now), [store.version, second]);
  const span = useMemo(() => spanOf(text) ?? timeline.span, [text, timeline]);
  if (timeline.bars.length === 0) return <p class="empty">No trial has started yet.</p>;
  const states = TRIAL_STATES.filter((state) =>
    timeline.bars.some((bar) => bar.trial.state === state),
  );
  return (
    <figure class="chart">
      <div class="tools">
        <span class="muted">
          times in {zoneName(span.from)}; the last attempt of each trial; drag to zoom, click a bar
          to open its trial
        </span>
        {text ? (
          <button type="button" class="plain" onClick={() => setText("")}>
            Show all
          </button>
        ) : null}
      </div>
      <LoadingPart store={store} />
      <Bars
        key={theme}
        timeline={timeline}
        span={span}
        names={names}
        height={height}
        onSpan={(one) => setText(spanText(one))}
      />
      <figcaption class="legend">
        {states.map((state) => (
          <span key={state}>
            <i class="bar-key" data-state={state} data-pattern={patternOf(state)} />{" "}
            {formatState(state)}
          </span>
        ))}
        <span class="muted">{timelineText(timeline)}</span>
      </figcaption>
    </figure>
  );
}

/** Return the names of the machines of agents, as far as they are known. */
function useMachineNames(store: Store): ReadonlyMap<string, string> {
  const [names, setNames] = useState<ReadonlyMap<string, string>>(new Map());
  useEffect(() => {
    let ended = false;
    void fetchMachines(store.client).then(
      ({ runners }) => {
        if (!ended) setNames(new Map(runners.map((one) => [one.id, one.hostName])));
      },
      () => undefined, // the ids are enough
    );
    return () => {
      ended = true;
    };
  }, [store]);
  return names;
}

interface BarsProps {
  timeline: ReturnType<typeof timelineOf>;
  span: Span;
  names: ReadonlyMap<string, string>;
  height: number;
  onSpan: (span: Span) => void;
}

function Bars({ timeline, span, names, height, onSpan }: BarsProps) {
  const { go } = useApp();
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [hit, setHit] = useState<{ bar: Bar; x: number; y: number } | null>(null);
  const [drag, setDrag] = useState<{ from: number; to: number } | null>(null);
  const frame = useMemo(
    () => timelineFrame(timeline, span, width, height),
    [timeline, span, width, height],
  );
  const picture = useRef<(() => Picture) | null>(null);
  picture.current = () => {
    const offset = -new Date(span.from).getTimezoneOffset();
    return timelinePicture(frame, names, coloursOf(box.current!), offset);
  };

  useLayoutEffect(() => {
    const element = box.current!;
    setWidth(element.clientWidth);
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    const withdraw = offerPicture(element, () => picture.current!());
    return () => {
      observer.disconnect();
      withdraw();
    };
  }, []);
  useLayoutEffect(() => {
    if (!width) return;
    const ratio = devicePixelRatio || 1;
    const target = canvas.current!;
    target.width = Math.round(width * ratio);
    target.height = Math.round(frame.height * ratio);
    const context = target.getContext("2d")!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawPicture(context, picture.current!(), getComputedStyle(box.current!).fontFamily);
  }, [frame, names, width]);

  const at = (event: PointerEvent) => {
    const rect = box.current!.getBoundingClientRect();
    return { x: event.clientX - rect.left, y: event.clientY - rect.top };
  };
  const select = (from: number, to: number) => {
    const times = [timeAt(frame, from), timeAt(frame, to)].sort((a, b) => a - b);
    if (times[1]! - times[0]! >= 1) onSpan({ from: times[0]!, to: times[1]! });
  };
  return (
    <div
      class="timeline"
      ref={box}
      style={{ height: `${frame.height}px` }}
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        const { x } = at(event);
        setDrag({ from: x, to: x });
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        const { x, y } = at(event);
        if (drag) setDrag({ ...drag, to: x });
        const bar = drag ? null : barAt(frame, x, y);
        setHit(bar ? { bar, x, y } : null);
      }}
      onPointerUp={(event) => {
        if (event.button !== 0) return;
        const { x, y } = at(event);
        if (drag && Math.abs(drag.from - x) >= DRAG_PX) select(drag.from, x);
        else {
          const bar = barAt(frame, x, y);
          if (bar) go({ trial: bar.trial.id });
        }
        setDrag(null);
      }}
      onPointerCancel={() => setDrag(null)}
      onPointerLeave={() => setHit(null)}
    >
      <canvas
        ref={canvas}
        role="img"
        aria-label={`Timeline of trials. ${timelineText(timeline)}`}
        class={hit ? "pickable" : ""}
      />
      {drag && Math.abs(drag.from - drag.to) >= DRAG_PX ? (
        <div
          class="timeline-drag"
          style={{
            left: `${Math.min(drag.from, drag.to)}px`,
            width: `${Math.abs(drag.from - drag.to)}px`,
          }}
        />
      ) : null}
      {hit ? (
        <Tip x={hit.x} y={hit.y + 14} width={width}>
          <TrialTip trial={hit.bar.trial}>
            {nameOf(hit.bar.trial.record.runnerId ?? "", names)}, {formatTime(hit.bar.from)},{" "}
            <b>{formatDuration((hit.bar.to - hit.bar.from) / 1000)}</b>
          </TrialTip>
        </Tip>
      ) : null}
    </div>
  );
}

function coloursOf(element: Element): TimelineColours {
  // Thousands of bars have few colours, and reading one from the style sheet is slow.
  const known = new Map<string, string>();
  const read = (name: string) => {
    const colour = known.get(name) ?? colourOf(element, name);
    known.set(name, colour);
    return colour;
  };
  return {
    ink: read("--ink"),
    muted: read("--muted"),
    grid: read("--grid"),
    state: (state) => read(`--s-${state.toLowerCase()}`),
  };
}
