// View of the charts of an experiment, in tabs.

import { useRef } from "preact/hooks";

import { DurationChart } from "../charts/duration_chart";
import { FrontChart } from "../charts/front_chart";
import { ImportanceChart } from "../charts/importance_chart";
import { IntermediateChart } from "../charts/intermediate_chart";
import { ParallelChart } from "../charts/parallel_chart";
import { ResultChart } from "../charts/result_chart";
import { ScatterChart } from "../charts/scatter_chart";
import { SliceChart } from "../charts/slice_chart";
import { TimelineChart } from "../charts/timeline_chart";
import { ChartFiles } from "../components/chart_files";
import { DirectionSelect } from "../components/direction_select";
import { Tabs } from "../components/tabs";
import { useStore } from "../state/context";
import { useGoals } from "../state/goals";
import { usePlaceValue } from "../state/place_value";
import { useChartHeight } from "../state/chart_height";

const TABS = [
  ["results", "Results"],
  ["parameters", "Hyper-parameters"],
  ["slices", "Slices"],
  ["scatter", "Scatter"],
  ["curves", "Intermediate results"],
  ["durations", "Durations"],
  ["timeline", "Timeline"],
  ["importance", "Importance"],
  ["front", "Metrics"],
] as const;
type Tab = (typeof TABS)[number][0];
/** Tabs whose chart shows a metric that is selected above it. */
const OF_METRIC: ReadonlySet<Tab> = new Set([
  "results",
  "parameters",
  "slices",
  "scatter",
  "importance",
]);

export function Charts() {
  const store = useStore();
  const id = store.profile?.id ?? "";
  const [wanted, setTab] = usePlaceValue("chart", `chart:${id}`, "results", true);
  const [goals, choose] = useGoals(store);
  const first = goals.objectives[0]!.metric;
  const [metric, setMetric] = usePlaceValue("metric", `metric:${id}`, first);
  const [bestText, setBest] = usePlaceValue("best", "chart:so-far", "1");
  const [logText, setLogY] = usePlaceValue("log", "chart:scale", "");
  const [best, logY] = [bestText !== "0", logText === "1"];
  const box = useRef<HTMLElement>(null);
  const height = useChartHeight(box);
  if (!store.profile) return null; // the page shows the reason
  const key = store.metricKeys.has(metric) ? metric : first;
  // Only results with several numbers have a scatter chart.
  const tabs = TABS.filter(([name]) => name !== "front" || store.metricKeys.size > 1);
  const tab: Tab = tabs.find(([name]) => name === wanted)?.[0] ?? "results";
  const takesMetric = OF_METRIC.has(tab);
  return (
    <section class="card" aria-label="Charts" ref={box}>
      <Tabs label="Charts" tabs={tabs} current={tab} onChange={setTab}>
        {takesMetric ? (
          <div class="tools">
            {store.metricKeys.size > 1 ? (
              <label>
                Metric{" "}
                <select value={key} onChange={(event) => setMetric(event.currentTarget.value)}>
                  {[...store.metricKeys].map((one) => (
                    <option key={one}>{one}</option>
                  ))}
                </select>
              </label>
            ) : null}
            {tab === "importance" ? null : (
              <DirectionSelect goals={goals} metric={key} choose={choose} />
            )}
            {tab === "results" ? (
              <>
                <label class="check">
                  <input
                    type="checkbox"
                    checked={best}
                    onChange={() => setBest(best ? "0" : "1")}
                  />{" "}
                  Best so far
                </label>
                <label class="check">
                  <input type="checkbox" checked={logY} onChange={() => setLogY(logY ? "" : "1")} />{" "}
                  Logarithmic
                </label>
                <span class="muted">
                  drag to zoom, double-click to see all, click a point to open its trial
                </span>
              </>
            ) : null}
          </div>
        ) : null}
        {tab === "results" ? (
          <ResultChart
            store={store}
            metric={key}
            goals={goals}
            height={height}
            logY={logY}
            best={best}
            table
          />
        ) : null}
        {tab === "parameters" ? (
          <ParallelChart store={store} metric={key} goals={goals} height={height} />
        ) : null}
        {tab === "slices" ? <SliceChart store={store} metric={key} goals={goals} /> : null}
        {tab === "scatter" ? (
          <ScatterChart store={store} metric={key} goals={goals} height={height} />
        ) : null}
        {tab === "curves" ? (
          <IntermediateChart store={store} goals={goals} choose={choose} height={height} />
        ) : null}
        {tab === "durations" ? <DurationChart store={store} height={height} /> : null}
        {tab === "timeline" ? <TimelineChart store={store} height={height} /> : null}
        {tab === "front" ? <FrontChart store={store} goals={goals} height={height} /> : null}
        {tab === "importance" ? <ImportanceChart store={store} metric={key} /> : null}
        <ChartFiles box={box} name={`${tab}-${id}`} title={`${titleOf(tab)} of ${id}`} />
      </Tabs>
    </section>
  );
}

function titleOf(tab: Tab): string {
  return TABS.find(([name]) => name === tab)![1];
}
