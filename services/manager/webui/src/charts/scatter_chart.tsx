// Scatter chart of any two columns of the trials; colours show the rank of the result.

import { useMemo } from "preact/hooks";

import { count } from "../format";
import { LoadingPart } from "../components/loading_part";
import { type Column, allColumns } from "../state/columns";
import { useApp } from "../state/context";
import { type Goals, modeOf } from "../state/objectives";
import { usePlaceValue } from "../state/place_value";
import { type Dimension, dimensionsOf } from "../state/space";
import { useStaged } from "../state/staged";
import type { Store } from "../state/store";
import type { Trial } from "../state/trial";
import { numericParameters } from "../state/trial_rows";
import { ColourScale } from "./colour_scale";
import { type Axis, axisBy, rankColour } from "./parallel_axes";
import { Plot } from "./plot";
import type { ColouredCells } from "./plot_picture";
import { PointLegend } from "./point_legend";
import { type Dot, dotSeries, dotsOf, kindsOf, shadesByRank } from "./scatter";
import { surfaceOf } from "./surface";
import { TrialTip } from "./trial_tip";

/** Columns with neither numbers nor few names: ids, times and texts. */
const NOT_DRAWN: ReadonlySet<string> = new Set([
  "id",
  "created",
  "started",
  "ended",
  "latest",
  "message",
  "note",
  "tags",
  "gpus",
  "star",
]);
const TICKS = { x: 10, y: 8 };
const NONE: Dot[] = [];

interface Props {
  store: Store;
  metric: string;
  goals: Goals;
  height: number;
}

export function ScatterChart({ store, metric, goals, height }: Props) {
  const { go, theme } = useApp();
  const id = store.profile?.id ?? "";
  const columns = useMemo(
    () =>
      allColumns(store.parameters(), store.metricKeys, goals, numericParameters(store)).filter(
        (one) => !NOT_DRAWN.has(one.key) && (one.key !== "result" || one.number),
      ),
    [store.parameterNames.size, store.metricKeys.size, goals],
  );
  const usual = columns.find((one) => one.key.startsWith("p:"))?.key ?? "number";
  const [xKey, setX] = usePlaceValue("x", `scatter-x:${id}`, usual);
  const first = columns.some((one) => one.key === "result") ? "result" : `m:${metric}`;
  const [yKey, setY] = usePlaceValue("y", `scatter-y:${id}`, first);
  const [surfaceText, setSurface] = usePlaceValue("surface", "scatter:surface", "");
  const xColumn = columns.find((one) => one.key === xKey) ?? columns[0]!;
  const yColumn = columns.find((one) => one.key === yKey) ?? columns[0]!;
  const found = useMemo(
    () => drawnOf(store, goals, metric, xColumn, yColumn),
    [store.version, goals, metric, xColumn, yColumn],
  );
  // The plot follows a frame later: both in one would take too long.
  const [drawn] = useStaged(found, 1);
  const { dots, omitted, x, y } = drawn ?? { ...found, dots: NONE };
  const series = useMemo(() => dotSeries(dots, theme), [dots, theme]);
  const places = useMemo(() => dots.map((dot) => dot.x), [dots]);
  const surface = useMemo(
    () => (surfaceText === "1" ? cellsOf(dots, theme) : null),
    [dots, theme, surfaceText],
  );
  const select = (label: string, column: Column, change: (key: string) => void) => (
    <label>
      {label}{" "}
      <select value={column.key} onChange={(event) => change(event.currentTarget.value)}>
        {columns.map((one) => (
          <option key={one.key} value={one.key}>
            {one.title}
          </option>
        ))}
      </select>
    </label>
  );
  const summary =
    `${count(found.dots.length, "trial")}.` +
    (omitted ? ` ${count(omitted, "trial")} without ${x.title} or ${y.title} not shown.` : "");
  return (
    <figure class="chart">
      <div class="tools">
        {select("X axis", xColumn, setX)}
        {select("Y axis", yColumn, setY)}
        <label class="check">
          <input
            type="checkbox"
            checked={surfaceText === "1"}
            onChange={() => setSurface(surfaceText === "1" ? "" : "1")}
          />{" "}
          Surface
        </label>
        <span class="muted" role="status">
          {summary}
        </span>
      </div>
      <LoadingPart store={store} />
      {!drawn ? (
        <div style={{ height: `${height}px` }} />
      ) : dots.length === 0 ? (
        <p class="empty">No ended trial has a value in both columns.</p>
      ) : (
        <Plot
          label={`${y.title} over ${x.title}`}
          summary={summary}
          x={places}
          series={series}
          height={height}
          xTitle={titleOf(x)}
          yTitle={titleOf(y)}
          positions={{
            x: (from, to) => x.ticksIn(from, to, TICKS.x),
            y: (from, to) => y.ticksIn(from, to, TICKS.y),
          }}
          {...(surface ? { surface } : {})}
          tip={(_series, index) => {
            const { trial } = dots[index]!;
            const now = Date.now();
            return (
              <TrialTip trial={trial}>
                {x.title} <b>{xColumn.text(trial, now)}</b>, {y.title}{" "}
                <b>{yColumn.text(trial, now)}</b>
              </TrialTip>
            );
          }}
          onPick={(_series, index) => go({ trial: dots[index]!.trial.id })}
        />
      )}
      <figcaption class="legend">
        <ColourScale mode={modeOf(goals, metric)} />
        {surface ? <span>surface: rank of the result, estimated from near trials</span> : null}
        <PointLegend kinds={dots.map((dot) => dot.kind).filter((kind) => kind !== "result")} />
      </figcaption>
    </figure>
  );
}

const titleOf = (axis: Axis) => (axis.kind === "log" ? `${axis.title} (logarithmic)` : axis.title);

/** Opacity of the surface, below the points. */
const OPACITY = 0.4;

/** Return the colours of the surface of the results; null with too few. */
function cellsOf(dots: readonly Dot[], theme: "light" | "dark"): ColouredCells | null {
  const samples = [...dots]
    .sort((a, b) => a.trial.number - b.trial.number)
    .flatMap(({ x, y, shade }) => (y === null || shade === null ? [] : [{ x, y, rank: shade }]));
  const surface = surfaceOf(samples);
  if (!surface) return null;
  const colours = surface.cells.map((rank) =>
    rank === null ? null : rankColour(rank, theme, OPACITY),
  );
  return { size: surface.size, colours };
}

/** Return axes and dots; a trial without a value of one of the columns is left out. */
function drawnOf(store: Store, goals: Goals, metric: string, xColumn: Column, yColumn: Column) {
  const kinds = kindsOf(store.trials.values(), goals, metric);
  const trials = [...store.trials.values()].filter((trial) => kinds.has(trial.id));
  const dimensions = dimensionsOf(store.profile?.params["searchSpace"]);
  const x = columnAxis(xColumn, trials, dimensions);
  const y = columnAxis(yColumn, trials, dimensions);
  const shades = shadesByRank(trials, goals, metric);
  const placed = trials.filter((trial) => y.position(trial) !== null);
  const { dots, omitted } = dotsOf(placed, x, y, kinds, shades);
  return { dots, omitted: omitted + trials.length - placed.length, x, y };
}

function columnAxis(column: Column, trials: Trial[], dimensions: readonly Dimension[]): Axis {
  const name = column.key.startsWith("p:") ? column.key.slice(2) : "";
  const now = Date.now();
  return axisBy(
    column.key,
    column.title,
    (trial) => {
      const value = column.value(trial, now);
      // A result such as NaN has no place on an axis of numbers.
      return column.number && !Number.isFinite(value) ? undefined : value;
    },
    trials,
    dimensions.find((one) => name !== "" && one.name === name),
  );
}
