// Slices: the result over each parameter, one small chart per parameter.

import { useMemo } from "preact/hooks";

import { count } from "../format";
import { ChoiceMenu } from "../components/choice_menu";
import { LoadingPart } from "../components/loading_part";
import { NoResult } from "../components/no_result";
import { keysOf, keysText } from "../state/choices";
import { useApp } from "../state/context";
import type { Goals } from "../state/objectives";
import { usePlaceValue } from "../state/place_value";
import type { PointKind } from "../state/outcome";
import { type Dimension, dimensionsOf } from "../state/space";
import { useStaged } from "../state/staged";
import type { Store } from "../state/store";
import type { Trial } from "../state/trial";
import { type Axis, axisOf } from "./parallel_axes";
import { Plot } from "./plot";
import { PointLegend } from "./point_legend";
import { dotSeries, dotsOf, kindsOf, shadesByNumber } from "./scatter";
import { TrialTip } from "./trial_tip";

/** Maximum number of slices by default. */
const MAX_SLICES = 9;
const HEIGHT = 240;
/** Ticks of the axes of a small chart. */
const TICKS = { x: 4, y: 5 };

export function SliceChart({
  store,
  metric,
  goals,
}: {
  store: Store;
  metric: string;
  goals: Goals;
}) {
  const id = store.profile?.id ?? "";
  const [text, setText] = usePlaceValue("params", `slices:${id}`, "");
  const known = store.parameters();
  const chosen = (keysOf(text) ?? known.slice(0, MAX_SLICES)).filter((one) => known.includes(one));
  const dimensions = useMemo(
    () => new Map(dimensionsOf(store.profile?.params["searchSpace"]).map((one) => [one.name, one])),
    [store.profile?.revision],
  );
  const shown = useMemo((): Shown => {
    const kinds = kindsOf(store.trials.values(), goals, metric);
    const trials = [...store.trials.values()].filter((trial) => kinds.has(trial.id));
    const y = axisOf(`m:${metric}`, trials, undefined, goals);
    return { trials, kinds, shades: shadesByNumber(trials), y };
  }, [store.version, metric, goals]);
  const { trials, kinds } = shown;
  const parts = useStaged(shown, chosen.length);
  if (trials.length === 0) return <NoResult store={store} />;
  return (
    <figure class="chart">
      <div class="tools">
        <ChoiceMenu
          label="Parameters"
          icon="columns"
          all={known.map((key) => ({ key, title: key }))}
          chosen={chosen}
          onChange={(keys) => setText(keys ? keysText(keys) : "")}
          ordered
        />
        <span class="muted" role="status">
          {count(chosen.length, "parameter")}
          {chosen.length < known.length ? ` of ${known.length}` : ""},{" "}
          {count(trials.length, "trial")}
        </span>
      </div>
      <LoadingPart store={store} />
      <div class="slices">
        {chosen.map((name, i) => (
          <Slice
            key={name}
            name={name}
            dimension={dimensions.get(name)}
            goals={goals}
            shown={parts[i]}
          />
        ))}
      </div>
      <figcaption class="legend">
        <span>
          first <i class="scale" /> latest result
        </span>
        <PointLegend kinds={[...kinds.values()].filter((kind) => kind !== "result")} />
      </figcaption>
    </figure>
  );
}

/** What all slices show. */
interface Shown {
  trials: Trial[];
  kinds: Map<string, PointKind>;
  shades: Map<string, number>;
  y: Axis;
}

interface SliceProps {
  /** Of the parameter. */
  name: string;
  dimension: Dimension | undefined;
  goals: Goals;
  /** Undefined before its turn to be drawn. */
  shown: Shown | undefined;
}

function Slice({ shown, ...slice }: SliceProps) {
  if (shown) return <DrawnSlice {...slice} shown={shown} />;
  return <section aria-label={`Slice of ${slice.name}`} style={{ height: `${HEIGHT}px` }} />;
}

function DrawnSlice({ name, dimension, goals, shown }: SliceProps & { shown: Shown }) {
  const { go, theme } = useApp();
  const { trials, kinds, shades, y } = shown;
  const x = useMemo(
    () => axisOf(`p:${name}`, trials, dimension, goals),
    [name, trials, dimension, goals],
  );
  const { dots, omitted } = useMemo(() => dotsOf(trials, x, y, kinds, shades), [shown, x]);
  const series = useMemo(() => dotSeries(dots, theme), [dots, theme]);
  const places = useMemo(() => dots.map((dot) => dot.x), [dots]);
  return (
    <section aria-label={`Slice of ${x.title}`}>
      <Plot
        label={`${y.title} over ${x.title}`}
        summary={describe(dots.length, omitted, x)}
        x={places}
        series={series}
        height={HEIGHT}
        xTitle={x.kind === "log" ? `${x.title} (logarithmic)` : x.title}
        yTitle={y.title}
        positions={{
          x: (from, to) => x.ticksIn(from, to, TICKS.x),
          y: (from, to) => y.ticksIn(from, to, TICKS.y),
        }}
        tip={(_series, index) => <TrialTip trial={dots[index]!.trial} />}
        onPick={(_series, index) => go({ trial: dots[index]!.trial.id })}
      />
      {omitted ? <p class="muted small">{count(omitted, "trial")} without this parameter</p> : null}
    </section>
  );
}

function describe(number: number, omitted: number, x: Axis): string {
  const without = omitted ? ` ${count(omitted, "trial")} without ${x.title} not shown.` : "";
  return `${count(number, "trial")}.${without}`;
}
