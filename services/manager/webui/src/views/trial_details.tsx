// Drawer with the details of a trial: result, parameters, explanation, intermediate results, use
// of resources, logs.

import { useEffect, useMemo, useState } from "preact/hooks";

import { isAbort, errorMessage } from "../api/client";
import type { Explanation, Json, Metric } from "../api/records";
import { Plot, type PlotSeries } from "../charts/plot";
import { pythonLiteral, formatValue, formatDuration, formatTime } from "../format";
import { SavedChart } from "../components/chart_files";
import { CopyButton } from "../components/copy_button";
import { Dialog } from "../components/dialog";
import { Icon } from "../components/icon";
import { LogView } from "../components/log_view";
import { Parameters } from "../components/parameters";
import { RemarksEditor } from "../components/remarks_editor";
import { StatePill } from "../components/state_pill";
import { Tabs } from "../components/tabs";
import { sampleOf } from "../state/parameters";
import { useApp, useClock, useStore } from "../state/context";
import { fetchMachines } from "../state/machines";
import { usePreference } from "../state/preferences";
import { useGoals } from "../state/goals";
import { brokenLimits, modeOf } from "../state/objectives";
import { bestIntermediate, resultText } from "../state/outcome";
import { usePlaceValue } from "../state/place_value";
import { useTrialRows } from "../state/trial_rows";
import { isObject } from "../state/space";
import type { Store } from "../state/store";
import { Throttle } from "../state/throttle";
import {
  LIVE,
  type Trial,
  causeOf,
  durationOf,
  loggedAttempt,
  neighbour,
  numbersOf,
} from "../state/trial";
import { CustomTrial } from "./custom_trial";
import { ResourceUse } from "./resource_use";

const TABS = [
  ["summary", "Summary"],
  ["intermediates", "Intermediate results"],
  ["use", "CPU and memory"],
  ["log", "Logs"],
  ["record", "Record"],
] as const;
type Tab = (typeof TABS)[number][0];
const LOGS = [
  ["trial.log", "Trial log"],
  ["stdout", "stdout"],
  ["stderr", "stderr"],
] as const;

export function TrialDetails({ id }: { id: string }) {
  const store = useStore();
  const { go, notify, place } = useApp();
  const [wanted, setTab] = usePlaceValue("tab", "", "summary");
  const tab: Tab = TABS.find(([name]) => name === wanted)?.[0] ?? "summary";
  const { rows } = useTrialRows(0);
  const [copying, setCopying] = useState(false);
  const trial = store.trials.get(id);
  const close = () => go({ trial: "" });
  if (!trial) {
    return (
      <Dialog title={`Trial ${id}`} onClose={close}>
        <p class="empty" role="status">
          {store.complete ? "This experiment has no such trial." : "Loading…"}
        </p>
      </Dialog>
    );
  }
  const kill = async () => {
    if (!confirm(`Kill trial ${trial.number} (${trial.id})? Its progress is lost.`)) return;
    await store.kill(trial.id).catch((error: unknown) => notify(errorMessage(error)));
  };
  const step = (by: number) => {
    const next = neighbour(place.view === "detail" ? rows : byNumber(store), trial, by);
    if (next) go({ trial: next.id }, "replace");
  };
  return (
    <Dialog
      title={
        <>
          Trial {trial.number} <span class="muted mono">{trial.id}</span>
        </>
      }
      onClose={close}
      actions={
        <>
          <button type="button" class="quiet" aria-label="Previous trial" onClick={() => step(-1)}>
            <Icon name="left" />
          </button>
          <button type="button" class="quiet" aria-label="Next trial" onClick={() => step(1)}>
            <Icon name="right" />
          </button>
        </>
      }
    >
      <div class="tools">
        <StatePill state={trial.state} />
        <span class="grow" />
        <CopyButton label="Copy id" text={trial.id} />
        <CopyButton
          label="Copy as Python"
          text={() => pythonLiteral(sampleOf(trial.parameters) ?? trial.parameters)}
        />
        {sampleOf(trial.parameters) ? null : (
          <button
            type="button"
            class="plain"
            disabled={!store.editable}
            title={store.readOnlyReason}
            onClick={() => setCopying(true)}
          >
            <Icon name="edit" /> Edit and run again
          </button>
        )}
        {LIVE.has(trial.state) ? (
          <button
            type="button"
            class="plain danger"
            disabled={!store.editable}
            title={store.readOnlyReason}
            onClick={() => void kill()}
          >
            <Icon name="cross" /> Kill
          </button>
        ) : null}
      </div>
      <RemarksEditor
        key={trial.id}
        remarks={trial.record.remarks}
        owner={`trial ${trial.number}`}
        editable={store.editable}
        reason={store.readOnlyReason}
        save={(change) => store.changeRemarks(trial.id, change)}
      />
      <Tabs label="Details of the trial" tabs={TABS} current={tab} onChange={setTab}>
        {tab === "summary" ? <Summary store={store} trial={trial} /> : null}
        {tab === "intermediates" ? <IntermediateResults store={store} trial={trial} /> : null}
        {tab === "use" ? <ResourceUse store={store} trial={trial} /> : null}
        {tab === "log" ? <Logs trial={trial} /> : null}
        {tab === "record" ? <Record trial={trial} /> : null}
      </Tabs>
      {copying ? (
        <CustomTrial store={store} from={trial} onClose={() => setCopying(false)} />
      ) : null}
    </Dialog>
  );
}

function byNumber(store: Store): Trial[] {
  return [...store.trials.values()].sort((a, b) => a.number - b.number);
}

function Summary({ store, trial }: { store: Store; trial: Trial }) {
  const now = useClock(LIVE.has(trial.state));
  const { record } = trial;
  const seconds = durationOf(trial, now);
  const cause = causeOf(record);
  const [goals] = useGoals(store);
  const { metric } = goals.objectives[0]!;
  const best = bestIntermediate(trial, metric, modeOf(goals, metric));
  const broken = trial.result === undefined ? [] : brokenLimits(trial, goals);
  const others = Object.entries(isObject(trial.result) ? trial.result : {}).filter(
    ([key]) => key !== "default",
  );
  return (
    <div class="two">
      <div>
        <h3>Result</h3>
        <p class="big">{resultText(trial)}</p>
        {best === null || trial.result !== undefined ? null : (
          <p class="muted">
            Best intermediate result: <b>{formatValue(best)}</b>
          </p>
        )}
        {broken.length ? (
          <p class="hint">
            Beyond{" "}
            {broken
              .map(({ metric: one, max }) => `the limit ${formatValue(max)} of ${one}`)
              .join(", ")}
            .
          </p>
        ) : null}
        {others.length ? <Parameters flat={Object.fromEntries(others)} /> : null}
        <h3>Parameters</h3>
        <Parameters flat={trial.flat} />
      </div>
      <div>
        <ExplanationSection store={store} trial={trial} />
        <h3>Execution</h3>
        <dl class="facts">
          <div>
            <dt>Duration</dt>
            <dd>{seconds === null ? "not started" : formatDuration(seconds)}</dd>
          </div>
          <div>
            <dt>Created</dt>
            <dd>{formatTime(record.createdTime)}</dd>
          </div>
          <div>
            <dt>Started</dt>
            <dd>{formatTime(record.startTime)}</dd>
          </div>
          <div>
            <dt>Ended</dt>
            <dd>{formatTime(record.endTime)}</dd>
          </div>
          <div>
            <dt>Source</dt>
            <dd>{trial.source === "customized" ? "user" : "algorithm"}</dd>
          </div>
          {cause ? (
            <div>
              <dt>Cause</dt>
              <dd>
                {cause}
                {record.endCause === "EXIT_CODE" && record.exitCode !== undefined
                  ? ` (${record.exitCode})`
                  : ""}
              </dd>
            </div>
          ) : null}
          {record.attempt > 1 ? (
            <div>
              <dt>Attempt</dt>
              <dd>{record.attempt}</dd>
            </div>
          ) : null}
          {record.runnerId ? (
            <div>
              <dt>Agent</dt>
              <dd class="mono">
                <Agent store={store} id={record.runnerId} />
              </dd>
            </div>
          ) : null}
          {record.gpuIndices?.length ? (
            <div>
              <dt>GPUs</dt>
              <dd>{record.gpuIndices.join(", ")}</dd>
            </div>
          ) : null}
          <div>
            <dt>Folder</dt>
            <dd class="path">{record.logPath}</dd>
          </div>
        </dl>
      </div>
    </div>
  );
}

/** Agent of a trial with the name of its machine, as a link to the machines. */
function Agent({ store, id }: { store: Store; id: string }) {
  const { href, go } = useApp();
  const [machine, setMachine] = useState("");
  useEffect(() => {
    let ended = false;
    void fetchMachines(store.client).then(
      ({ runners }) => {
        if (!ended) setMachine(runners.find((one) => one.id === id)?.hostName ?? "");
      },
      () => undefined, // the id is enough
    );
    return () => {
      ended = true;
    };
  }, [store, id]);
  const to = { view: "machines" as const, trial: "", values: { q: id } };
  return (
    <a
      href={href(to)}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        go(to);
      }}
    >
      {id}
      {machine && machine !== id ? ` on ${machine}` : ""}
    </a>
  );
}

/** Explanation why a trial waits, was stopped or failed, with remedies. */
function ExplanationSection({ store, trial }: { store: Store; trial: Trial }) {
  const [explanation, setExplanation] = useState<Explanation | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    if (trial.state === "SUCCEEDED") setExplanation(null);
    else
      store.client
        .get<Explanation>(`trials/${trial.id}/why`, stop.signal)
        .then(setExplanation, () => setExplanation(null));
    return () => stop.abort();
  }, [trial.id, trial.state, trial.record.message, store]);
  if (!explanation) {
    return trial.record.message ? (
      <>
        <h3>Message</h3>
        <pre class="code" tabIndex={0} aria-label="Message">
          {trial.record.message}
        </pre>
      </>
    ) : null;
  }
  return (
    <section class="explanation" aria-label="Explanation">
      <h3>Explanation</h3>
      <p>{explanation.summary}</p>
      {explanation.reasons.length ? (
        <ul>
          {explanation.reasons.map((one, i) => (
            <li key={i}>
              {one.text}
              {one.remedy ? <span class="remedy">{one.remedy}</span> : null}
            </li>
          ))}
        </ul>
      ) : null}
      {explanation.lostAttempts.length ? (
        <details>
          <summary>Lost attempts ({explanation.lostAttempts.length})</summary>
          <ul>
            {explanation.lostAttempts.map((one) => (
              <li key={one.attempt}>
                attempt {one.attempt} on {one.runnerId || "no agent"}: {one.reason}
              </li>
            ))}
          </ul>
        </details>
      ) : null}
      {explanation.stderrTail ? (
        <>
          <h4>End of stderr</h4>
          <pre class="code" tabIndex={0} aria-label="End of stderr">
            {explanation.stderrTail}
          </pre>
        </>
      ) : null}
    </section>
  );
}

function IntermediateResults({ store, trial }: { store: Store; trial: Trial }) {
  const [key, setKey] = useState("default");
  const { reports, problem } = useReports(store, trial);
  const keys = [...new Set(reports.flatMap((data) => Object.keys(numbersOf(data))))];
  const shown = keys.includes(key) ? key : keys[0];
  const y = useMemo(
    () =>
      reports.map((data) => {
        const one = numbersOf(data)[shown ?? ""];
        return Number.isFinite(one ?? NaN) ? one! : null;
      }),
    [reports, shown],
  );
  const x = useMemo(() => y.map((_, i) => i + 1), [y]);
  const series = useMemo(
    (): PlotSeries[] => [
      { name: "intermediate", colour: "--accent", kind: "line", y, size: y.length > 60 ? 3 : 6 },
    ],
    [y],
  );
  if (problem)
    return (
      <p class="hint" role="alert">
        {problem}
      </p>
    );
  if (!shown)
    return <p class="empty">No intermediate results{LIVE.has(trial.state) ? " yet" : ""}.</p>;
  return (
    <>
      {keys.length > 1 ? (
        <div class="tools">
          <label>
            Key{" "}
            <select value={shown} onChange={(event) => setKey(event.currentTarget.value)}>
              {keys.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
        </div>
      ) : null}
      <SavedChart
        name={`intermediate-${trial.id}`}
        title={`Intermediate results of trial ${trial.number}`}
      >
        <Plot
          label="Intermediate results of the trial"
          summary={`${reports.length} intermediate results; the last is ${formatValue(y.at(-1))}.`}
          x={x}
          series={series}
          height={280}
          xTitle="number of the intermediate result"
          yTitle={shown}
          tip={(_series, i) => (
            <>
              #{i + 1}: <b>{formatValue(y[i])}</b>
            </>
          )}
        />
      </SavedChart>
      <details>
        <summary>As a table</summary>
        <table>
          <thead>
            <tr>
              <th scope="col" class="number">
                #
              </th>
              <th scope="col">Report</th>
            </tr>
          </thead>
          <tbody>
            {reports.slice(-500).map((data, i) => (
              <tr key={i}>
                <td class="number">{Math.max(0, reports.length - 500) + i + 1}</td>
                <td class="mono">{formatValue(data)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </>
  );
}

/** Return the intermediate results of a trial, updated as the trial reports. */
function useReports(store: Store, trial: Trial): { reports: Json[]; problem: string } {
  const [reports, setReports] = useState<Json[]>([]);
  const [problem, setProblem] = useState("");
  const { attempt } = trial.record;
  useEffect(() => {
    const stop = new AbortController();
    let all: Json[] = [];
    const drawing = new Throttle(() => setReports([...all]), 250);
    const end = store.onReport(({ trialId, sequence, data }) => {
      if (trialId !== trial.id) return;
      all[sequence] = data;
      drawing.request();
    });
    store.client
      .get<Metric[]>(`metric-data/${trial.id}?type=PERIODICAL`, stop.signal)
      .then((found) => {
        // Reports that came meanwhile may not be among those found.
        all = Object.assign(
          [...all],
          found.map((one) => one.data),
        );
        setReports([...all]);
        setProblem("");
      })
      .catch((error: unknown) => {
        if (!isAbort(error)) setProblem(errorMessage(error));
      });
    return () => {
      stop.abort();
      drawing.cancel();
      end();
    };
  }, [store, trial.id, attempt, store.loads]);
  return { reports, problem };
}

function Logs({ trial }: { trial: Trial }) {
  const [name, setName] = usePreference<(typeof LOGS)[number][0]>("log", "trial.log");
  return (
    <Tabs label="Log" tabs={LOGS} current={name} onChange={setName}>
      <LogView
        key={loggedAttempt(trial.record)}
        path={`trial-file/${trial.id}/${name}`}
        follow={LIVE.has(trial.state)}
      />
    </Tabs>
  );
}

function Record({ trial }: { trial: Trial }) {
  const text = JSON.stringify(
    { ...trial.record, hyperParameters: undefined, parameters: trial.parameters },
    null,
    2,
  );
  return (
    <>
      <div class="tools">
        <CopyButton label="Copy" text={text} />
      </div>
      <pre class="code" tabIndex={0} aria-label="Record">
        {text}
      </pre>
    </>
  );
}
