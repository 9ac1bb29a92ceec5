// Dialog that compares experiments: best result so far of each in one chart, and a table.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { Client, type Page, errorMessage } from "../api/client";
import type { Profile, Trial as TrialRecord } from "../api/records";
import {
  type BestCurve,
  type ExperimentRun,
  type Progress,
  aligned,
  bestCurve,
  runName,
  sharedMetrics,
} from "../charts/experiment_curves";
import { Plot, type PlotSeries } from "../charts/plot";
import { durationUnit } from "../charts/scales";
import { LINE_COLOURS } from "../charts/series";
import { ChartFiles } from "../components/chart_files";
import { Dialog } from "../components/dialog";
import { StatePill } from "../components/state_pill";
import { count, formatDuration, formatValue } from "../format";
import { usePlaceValue } from "../state/place_value";
import { trialOf } from "../state/trial";

/** Maximum number of experiments in one chart: one per colour. */
export const MAX_COMPARED = LINE_COLOURS.length;
const PAGE = 1_000;

export function CompareExperiments({ ids, onClose }: { ids: string[]; onClose: () => void }) {
  const { runs, problems, loading } = useRuns(ids);
  const [wanted, setMetric] = usePlaceValue("metric", "", "");
  const [pace, setPace] = usePlaceValue("by", "compare:by", "trials");
  const by: Progress = pace === "time" ? "time" : "trials";
  const metrics = useMemo(() => sharedMetrics(runs), [runs]);
  const metric = metrics.includes(wanted) ? wanted : (metrics[0] ?? "default");
  const curves = useMemo(() => runs.map((run) => bestCurve(run, metric, by)), [runs, metric, by]);
  return (
    <Dialog
      title={`Compare ${count(ids.length, "experiment")}`}
      kind="modal"
      wide
      onClose={onClose}
    >
      <div class="tools">
        {metrics.length > 1 ? (
          <label>
            Metric{" "}
            <select value={metric} onChange={(event) => setMetric(event.currentTarget.value)}>
              {metrics.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
        ) : null}
        <label>
          Over{" "}
          <select value={by} onChange={(event) => setPace(event.currentTarget.value)}>
            <option value="trials">trials</option>
            <option value="time">time since the start</option>
          </select>
        </label>
      </div>
      {problems.map((text) => (
        <p key={text} class="hint" role="alert">
          {text}
        </p>
      ))}
      {loading ? (
        <p class="muted" role="status">
          Loading trials…
        </p>
      ) : null}
      <BestChart curves={curves} metric={metric} by={by} />
      {curves.length ? <BestTable curves={curves} by={by} /> : null}
    </Dialog>
  );
}

interface Runs {
  runs: ExperimentRun[];
  /** Messages about experiments that cannot be read. */
  problems: string[];
  loading: boolean;
}

/** Return experiments with their trials, in the order of `ids`. */
function useRuns(ids: string[]): Runs {
  const [found, setFound] = useState<Runs>({ runs: [], problems: [], loading: true });
  const key = ids.join(",");
  useEffect(() => {
    const stop = new AbortController();
    setFound({ runs: [], problems: [], loading: true });
    void Promise.allSettled(ids.map((id) => fetchRun(id, stop.signal))).then((all) => {
      if (stop.signal.aborted) return;
      setFound({
        runs: all.flatMap((one) => (one.status === "fulfilled" ? [one.value] : [])),
        problems: all.flatMap((one, i) =>
          one.status === "rejected" ? [`${ids[i]}: ${errorMessage(one.reason)}`] : [],
        ),
        loading: false,
      });
    });
    return () => stop.abort();
  }, [key]);
  return found;
}

async function fetchRun(id: string, signal: AbortSignal): Promise<ExperimentRun> {
  const client = new Client(id);
  const profile = await client.get<Profile>("experiment", signal);
  const trials = [];
  let path: string | null = `trial-jobs?limit=${PAGE}&order=sequence&with_result=true`;
  while (path) {
    const page: Page<TrialRecord> = await client.page<TrialRecord>(path, signal);
    trials.push(...page.items.map((record) => trialOf(record)));
    path = page.next;
  }
  return { profile, trials };
}

function BestChart({ curves, metric, by }: { curves: BestCurve[]; metric: string; by: Progress }) {
  const box = useRef<HTMLElement>(null);
  const { x, series, unit } = useMemo(() => {
    const all = aligned(curves);
    const unit = durationUnit(all.x.at(-1) ?? 0);
    const series = curves.map((curve, i): PlotSeries => ({
      name: curve.profile.id,
      kind: "step",
      colour: LINE_COLOURS[i % LINE_COLOURS.length]!,
      width: 2,
      y: all.y[i]!,
      size: 5,
    }));
    return { x: by === "time" ? all.x.map((one) => one / unit.size) : all.x, series, unit };
  }, [curves, by]);
  if (x.length === 0) return <p class="empty">No experiment has a feasible result of {metric}.</p>;
  const modes = new Set(curves.map((curve) => curve.mode).filter(Boolean));
  const title = metric === "default" ? "best result" : `best ${metric}`;
  const summary = curves
    .map((curve) => `${runName(curve.profile)}: ${formatValue(curve.best)}`)
    .join("; ");
  return (
    <figure class="chart" ref={box}>
      <Plot
        label="Best result so far of each experiment"
        summary={`${summary}.`}
        x={x}
        series={series}
        height={300}
        xTitle={by === "time" ? `${unit.name} since the start` : "trials"}
        yTitle={title}
        fractions={by === "time"}
        tip={(s, index) => (
          <>
            <strong>{runName(curves[s]!.profile)}</strong>{" "}
            <span class="muted">{curves[s]!.profile.id}</span>
            <div>
              {title} <b>{formatValue(series[s]!.y[index])}</b>
            </div>
          </>
        )}
      />
      <figcaption class="legend">
        {curves.map((curve, i) => (
          <span key={curve.profile.id}>
            <i
              class="dash"
              style={{ background: `var(${LINE_COLOURS[i % LINE_COLOURS.length]})` }}
            />{" "}
            {runName(curve.profile)} ({curve.profile.id})
          </span>
        ))}
        {modes.size > 1 ? (
          <span role="status">Some experiments minimize {metric}, others maximize it.</span>
        ) : null}
      </figcaption>
      <ChartFiles box={box} name="experiments" title={`${title} of experiments`} />
    </figure>
  );
}

function BestTable({ curves, by }: { curves: BestCurve[]; by: Progress }) {
  return (
    <div class="scroll" role="region" aria-label="Best results" tabIndex={0}>
      <table class="compare">
        <thead>
          <tr>
            <th scope="col">Experiment</th>
            <th scope="col">State</th>
            <th scope="col">Algorithm</th>
            <th scope="col" class="number">
              Results
            </th>
            <th scope="col" class="number">
              Best
            </th>
            <th scope="col">Best is</th>
            <th scope="col">Trial</th>
            <th scope="col" class="number">
              {by === "time" ? "After" : "After trials"}
            </th>
          </tr>
        </thead>
        <tbody>
          {curves.map(({ profile, mode, results, best, bestTrial, bestAt }) => (
            <tr key={profile.id}>
              <th scope="row">
                <a href={`oview?id=${encodeURIComponent(profile.id)}`}>{runName(profile)}</a>
              </th>
              <td>
                <StatePill state={profile.status} />
              </td>
              <td>{profile.algorithm || "–"}</td>
              <td class="number">{results.toLocaleString("en")}</td>
              <td class="number">{formatValue(best)}</td>
              <td>{mode === null ? "–" : mode === "minimize" ? "smallest" : "largest"}</td>
              <td class="mono">{bestTrial?.id ?? "–"}</td>
              <td class="number">
                {bestAt === null ? "–" : by === "time" ? formatDuration(bestAt) : bestAt}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
