// Curves of the CPU, memory and GPU use of a trial, followed while it runs.

import { useEffect, useMemo, useState } from "preact/hooks";

import { ApiError, errorMessage, isAbort } from "../api/client";
import { Plot, type PlotSeries } from "../charts/plot";
import { SavedChart } from "../components/chart_files";
import { formatValue } from "../format";
import { rangeOf } from "../state/log_window";
import {
  type ResourceSample,
  type TimeUnit,
  byteUnitOf,
  bytesText,
  gpuValues,
  gpusOf,
  samplesOf,
  unitOf,
} from "../state/resource_use";
import type { Store } from "../state/store";
import { Throttle } from "../state/throttle";
import { LIVE, type Trial, loggedAttempt } from "../state/trial";

/** Delay before another look for the first sample; it doubles. */
const FIRST_LOOK_MS = 1_000;
const LAST_LOOK_MS = 60_000;
const DRAW_MS = 250;
/** Characters that are read and kept: many times what an agent writes; a trial may write more. */
const LIMIT = 1024 * 1024;
const NOT_FOUND = 404;
const NO_SUCH_RANGE = 416;
const HEIGHT = 200;
const COLOURS = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6"];

/** Charts of the use of a trial: cores, memory, and its GPUs where it has any. */
export function ResourceUse({ store, trial }: { store: Store; trial: Trial }) {
  const { samples, problem, loading } = useSamples(store, trial);
  const unit = useMemo(
    () => unitOf((samples.at(-1)?.time ?? 0) - (samples[0]?.time ?? 0)),
    [samples],
  );
  const gpus = useMemo(() => gpusOf(samples), [samples]);
  const memory = useMemo(() => samples.map((one) => one.memory), [samples]);
  if (problem)
    return (
      <p class="hint" role="alert">
        {problem}
      </p>
    );
  if (loading) return <p class="empty">Loading…</p>;
  if (!samples.length)
    return (
      <p class="empty">
        No samples{LIVE.has(trial.state) ? " yet" : ""}. The agent takes the first one when a trial
        is one second old.
      </p>
    );
  const last = samples.at(-1)!;
  return (
    <>
      <p class="muted">
        {last.processes === 1 ? "One process" : `${last.processes} processes`} in the last sample.
        Memory is resident memory; of several processes, shared memory is counted once where the
        system tells.
      </p>
      <Curves
        trial={trial}
        title="CPU"
        samples={samples}
        unit={unit}
        yTitle="busy cores"
        names={["cores"]}
        values={[samples.map((one) => one.cores)]}
        text={formatValue}
      />
      <Curves
        trial={trial}
        title="Memory"
        samples={samples}
        unit={unit}
        yTitle="memory"
        names={["memory"]}
        values={[memory]}
        text={bytesText}
        bytes
      />
      {gpus.length ? (
        <>
          <Curves
            trial={trial}
            title="GPU utilization"
            samples={samples}
            unit={unit}
            yTitle="share of time"
            names={gpus.map((index) => `GPU ${index}`)}
            values={gpus.map((index) => gpuValues(samples, index, (use) => use.utilization))}
            text={formatValue}
          />
          <Curves
            trial={trial}
            title="GPU memory"
            samples={samples}
            unit={unit}
            yTitle="memory of all processes on the GPU"
            names={gpus.map((index) => `GPU ${index}`)}
            values={gpus.map((index) => gpuValues(samples, index, (use) => use.memory))}
            text={bytesText}
            bytes
          />
        </>
      ) : null}
    </>
  );
}

interface CurvesProps {
  trial: Trial;
  title: string;
  samples: ResourceSample[];
  unit: TimeUnit;
  yTitle: string;
  names: string[];
  values: (number | null)[][];
  text: (value: number) => string;
  /** True: the values are bytes, drawn in the unit of the largest one. */
  bytes?: boolean;
}

function Curves({ trial, title, samples, unit, yTitle, names, values, text, bytes }: CurvesProps) {
  const known = values.flat().filter((value): value is number => value !== null);
  const scale = bytes ? byteUnitOf(known) : { name: "", length: 1 };
  const x = samples.map(({ time }) => (time - samples[0]!.time) / unit.length);
  const series = values.map((one, i): PlotSeries => ({
    name: names[i]!,
    colour: COLOURS[i % COLOURS.length]!,
    kind: "line",
    y: one.map((value) => (value === null ? null : value / scale.length)),
    size: samples.length > 60 ? 3 : 6,
  }));
  const largest = known.reduce((most, value) => Math.max(most, value), 0);
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      <SavedChart name={`${title}-${trial.id}`} title={`${title} of trial ${trial.number}`}>
        <Plot
          label={`${title} of the trial`}
          summary={`${samples.length} samples; the largest value is ${text(largest)}.`}
          x={x}
          series={series}
          height={HEIGHT}
          xTitle={`${unit.name} since the first sample`}
          yTitle={scale.name ? `${yTitle}, ${scale.name}` : yTitle}
          fromZero
          fractions
          tip={(i, at) => (
            <>
              {names.length > 1 ? `${names[i]}: ` : null}
              <b>{values[i]![at] === null ? "unknown" : text(values[i]![at]!)}</b> after{" "}
              {formatValue(Number(x[at]!.toPrecision(4)))} {unit.name}
            </>
          )}
        />
      </SavedChart>
    </section>
  );
}

/** Return the samples of a trial, updated while it runs. */
function useSamples(
  store: Store,
  trial: Trial,
): { samples: ResourceSample[]; problem: string; loading: boolean } {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  const [loading, setLoading] = useState(true);
  const live = LIVE.has(trial.state);
  const attempt = loggedAttempt(trial.record);
  useEffect(() => {
    const stop = new AbortController();
    const path = `trial-file/${trial.id}/.resources`;
    let known = "";
    const drawing = new Throttle(() => setText(known), DRAW_MS);
    const load = async () => {
      let found = await lastSamples(store, path, stop.signal);
      for (
        let wait = FIRST_LOOK_MS;
        live && found === null;
        wait = Math.min(2 * wait, LAST_LOOK_MS)
      ) {
        setLoading(false);
        await delay(wait, stop.signal); // the trial is younger than its first sample
        found = await lastSamples(store, path, stop.signal);
      }
      known = found?.text ?? "";
      setText(known);
      setLoading(false);
      setProblem("");
      if (!live) return;
      const decoder = new TextDecoder();
      const rest = `${path}?follow=true&offset=${found?.end ?? 0}`;
      await store.client.stream(rest, stop.signal, (bytes) => {
        known = (known + decoder.decode(bytes, { stream: true })).slice(-LIMIT);
        drawing.request();
      });
    };
    load().catch((error: unknown) => {
      if (isAbort(error)) return;
      setLoading(false);
      setProblem(errorMessage(error));
    });
    return () => {
      stop.abort();
      drawing.cancel();
    };
  }, [store, trial.id, attempt, live]);
  const samples = useMemo(() => samplesOf(text), [text]);
  return { samples, problem, loading };
}

/** Return the last samples that are there now, and the offset behind them; null: there are none. */
async function lastSamples(
  store: Store,
  path: string,
  signal: AbortSignal,
): Promise<{ text: string; end: number } | null> {
  try {
    const { bytes, header } = await store.client.part(path, `bytes=-${LIMIT}`, signal);
    const start = rangeOf(header)?.start ?? 0;
    return { text: new TextDecoder().decode(bytes), end: start + bytes.length };
  } catch (error) {
    if (error instanceof ApiError && [NOT_FOUND, NO_SUCH_RANGE].includes(error.status)) return null;
    throw error;
  }
}

/** Wait for some milliseconds; reject as an aborted request does. */
function delay(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("aborted", "AbortError"));
    });
  });
}
