// View of the charts of an experiment, in tabs.

import { useRef } from "preact/hooks";

import { chartImage } from "../charts/chart_image";
import { DurationChart } from "../charts/duration_chart";
import { FrontChart } from "../charts/front_chart";
import { ImportanceChart } from "../charts/importance_chart";
import { IntermediateChart } from "../charts/intermediate_chart";
import { ParallelChart } from "../charts/parallel_chart";
import { ResultChart } from "../charts/result_chart";
import { DirectionSelect } from "../components/direction_select";
import { Icon } from "../components/icon";
import { saveFile } from "../components/save_file";
import { Tabs } from "../components/tabs";
import { useStore } from "../state/context";
import { useGoals } from "../state/goals";
import { usePlaceValue } from "../state/place_value";
import { usePreference } from "../state/preferences";

const TABS = [
  ["results", "Results"],
  ["parameters", "Hyper-parameters"],
  ["curves", "Intermediate results"],
  ["durations", "Durations"],
  ["importance", "Importance"],
  ["front", "Metrics"],
] as const;
type Tab = (typeof TABS)[number][0];
const HEIGHT = 440;

export function Charts() {
  const store = useStore();
  const id = store.profile?.id ?? "";
  const [wanted, setTab] = usePlaceValue("chart", `chart:${id}`, "results", true);
  const [goals, choose] = useGoals(store);
  const first = goals.objectives[0]!.metric;
  const [metric, setMetric] = usePlaceValue("metric", `metric:${id}`, first);
  const [best, setBest] = usePreference("chart:best", true);
  const [logY, setLogY] = usePreference("chart:log", false);
  const box = useRef<HTMLElement>(null);
  if (!store.profile) return null; // the page shows the reason
  const key = store.metricKeys.has(metric) ? metric : first;
  // Only results with several numbers have a scatter chart.
  const tabs = TABS.filter(([name]) => name !== "front" || store.metricKeys.size > 1);
  const tab: Tab = tabs.find(([name]) => name === wanted)?.[0] ?? "results";
  const takesMetric = tab === "results" || tab === "parameters" || tab === "importance";
  const saveImage = async () => {
    const image = box.current && (await chartImage(box.current, ".axis-name"));
    if (image) saveFile(image, `${tab}-${id}.png`);
  };
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
                  <input type="checkbox" checked={best} onChange={() => setBest(!best)} /> Best so
                  far
                </label>
                <label class="check">
                  <input type="checkbox" checked={logY} onChange={() => setLogY(!logY)} />{" "}
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
            height={HEIGHT}
            logY={logY}
            best={best}
            table
          />
        ) : null}
        {tab === "parameters" ? (
          <ParallelChart store={store} metric={key} goals={goals} height={HEIGHT} />
        ) : null}
        {tab === "curves" ? (
          <IntermediateChart store={store} goals={goals} choose={choose} height={HEIGHT} />
        ) : null}
        {tab === "durations" ? <DurationChart store={store} height={HEIGHT} /> : null}
        {tab === "front" ? <FrontChart store={store} goals={goals} height={HEIGHT} /> : null}
        {tab === "importance" ? <ImportanceChart store={store} metric={key} /> : null}
        {tab === "importance" ? null : (
          <button type="button" class="quiet" onClick={() => void saveImage()}>
            <Icon name="download" /> PNG
          </button>
        )}
      </Tabs>
    </section>
  );
}
