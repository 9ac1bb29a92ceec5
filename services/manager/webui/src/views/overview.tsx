// Overview of an experiment: state, budgets, best trials, results, search space, configuration.

import { useMemo, useState } from "preact/hooks";

import type { JsonObject } from "../api/records";
import { count, pythonLiteral, formatValue, formatDuration, formatTime } from "../format";
import { SavedChart } from "../components/chart_files";
import { CopyButton } from "../components/copy_button";
import { deferred } from "../components/deferred";
import { DirectionSelect } from "../components/direction_select";
import { Icon } from "../components/icon";
import { NoResult } from "../components/no_result";
import { Parameters } from "../components/parameters";
import { RemarksEditor } from "../components/remarks_editor";
import { StatePill } from "../components/state_pill";
import { TrialLink } from "../components/trial_link";
import { sampleOf } from "../state/parameters";
import { useApp, useClock, useStore } from "../state/context";
import { jobOf } from "../state/compression";
import { usePreference } from "../state/preferences";
import { dimensionsOf } from "../state/space";
import type { Store } from "../state/store";
import { useGoals } from "../state/goals";
import {
  type Goals,
  type Mode,
  bestTrial,
  brokenLimits,
  isFeasible,
  modeOf,
  ranked,
} from "../state/objectives";
import { metricText, shownState } from "../state/outcome";
import { type Trial, countEnded, countLive, lastFailure } from "../state/trial";
import { Budgets } from "./budgets";
import { CompressionSteps } from "./compression";
import { ExperimentActions } from "./experiment_actions";
import { SpaceEditor } from "./space_editor";

const CHART_PX = 300;
const ResultChart = deferred(
  () => import("../charts/result_chart").then((it) => it.ResultChart),
  CHART_PX,
);
const ObjectiveCards = deferred(() => import("./objectives").then((it) => it.ObjectiveCards));
const RUNNING_STATES = new Set(["RUNNING", "NO_MORE_TRIAL", "TUNER_NO_MORE_TRIAL"]);

export function Overview() {
  const store = useStore();
  const [goals, choose] = useGoals(store);
  if (!store.profile || !store.status) return null; // the page shows the reason
  const job = jobOf(store.profile.params);
  if (job) return <JobOverview store={store} job={job} />;
  const several = goals.objectives.length > 1;
  return (
    <div class="grid">
      <Problems store={store} />
      <Failures store={store} />
      <section class={several ? "card w12" : "card w8"} aria-labelledby="about">
        <About store={store} />
      </section>
      {several ? (
        <ObjectiveCards store={store} goals={goals} />
      ) : (
        <SingleObjective store={store} goals={goals} choose={choose} />
      )}
      <section class="card w6" aria-labelledby="space">
        <Space store={store} />
      </section>
      <section class="card w6" aria-labelledby="config">
        <Config store={store} />
      </section>
    </div>
  );
}

/** Best result, results and top trials by the only objective. */
function SingleObjective({
  store,
  goals,
  choose,
}: {
  store: Store;
  goals: Goals;
  choose: (metric: string, mode: Mode | "") => void;
}) {
  const { metric } = goals.objectives[0]!;
  return (
    <>
      <section class="card w4" aria-labelledby="best">
        <Best store={store} goals={goals} />
      </section>
      <section class="card w8" aria-labelledby="results">
        <h2 id="results">Results</h2>
        <SavedChart name="results" title="Results">
          <ResultChart store={store} metric={metric} goals={goals} height={CHART_PX} table />
        </SavedChart>
      </section>
      <section class="card w4" aria-labelledby="top">
        <Top store={store} goals={goals} metric={metric} choose={choose} />
      </section>
    </>
  );
}

function JobOverview({ store, job }: { store: Store; job: JsonObject }) {
  return (
    <div class="grid">
      <Problems store={store} />
      <Failures store={store} />
      <section class="card w12" aria-labelledby="about">
        <About store={store} />
      </section>
      <CompressionSteps store={store} job={job} />
      <section class="card w12" aria-labelledby="config">
        <Config store={store} />
      </section>
    </div>
  );
}

/** Return the last line of a traceback, which names the error. */
function lastLine(text: string): string {
  return text.trim().split("\n").at(-1)!;
}

function Problems({ store }: { store: Store }) {
  const errors = store.status!.errors;
  if (!errors.length) return null;
  const { status } = store.status!;
  return (
    <section class="card w12 failure" role="alert" aria-label="Errors">
      <h2>
        <Icon name="cross" />{" "}
        {status === "ERROR"
          ? "The experiment ended with an error"
          : "An error occurred; the experiment continues"}
      </h2>
      {errors.map((text, i) => {
        const lines = text.trim().split("\n");
        const last = lastLine(text);
        return lines.length === 1 ? (
          <p key={i}>{last}</p>
        ) : (
          <details key={i} open={errors.length === 1}>
            <summary>{last}</summary>
            <pre class="code" tabIndex={0} aria-label="Traceback">
              {text}
            </pre>
          </details>
        );
      })}
      <p class="muted">The logs of manager and dispatcher (menu “More”) have the details.</p>
    </section>
  );
}

/** Alert when all ended trials have failed, even if the experiment is done. */
function Failures({ store }: { store: Store }) {
  const last = useMemo(() => lastFailure(store.trials.values()), [store.version]);
  const failed = store.counts["FAILED"] ?? 0;
  if (!last || failed < countEnded(store.counts)) return null;
  return (
    <section class="card w12 failure" role="alert" aria-label="Failures">
      <h2>
        <Icon name="cross" />{" "}
        {failed === 1
          ? "The only trial so far has failed"
          : `All ${failed} trials so far have failed`}
      </h2>
      <p>
        Last failure: <TrialLink trial={last} />
        {last.record.message ? `: ${lastLine(last.record.message)}` : ""}. Its details have the
        explanation and the end of stderr.
      </p>
    </section>
  );
}

function About({ store }: { store: Store }) {
  const { go } = useApp();
  const [acting, setActing] = useState(false);
  const { profile, status } = store;
  const params = profile!.params;
  const services = [params["trainingService"]]
    .flat()
    .map((one) => (one as JsonObject | undefined)?.["platform"])
    .join(", ");
  return (
    <>
      <div class="title-row">
        <h1 id="about">{String(params["experimentName"] ?? "Experiment")}</h1>
        <StatePill {...shownState(status!.status, store.counts)} />
        <span class="grow" />
        <button
          type="button"
          class="plain"
          disabled={!store.canChange}
          title={store.canChange ? "" : store.readOnlyReason}
          onClick={() => setActing(true)}
        >
          Actions…
        </button>
      </div>
      {acting ? (
        <ExperimentActions
          id={profile!.id}
          name={String(params["experimentName"] ?? "")}
          status={status!.status}
          live={countLive(store.counts)}
          ownAddress={store.bound}
          onChanged={(action) => {
            if (action === "delete") go({ view: "experiment", trial: "" });
          }}
          onClose={() => setActing(false)}
        />
      ) : null}
      <RemarksEditor
        remarks={profile!.remarks}
        owner="the experiment"
        editable={store.editable}
        reason={store.readOnlyReason}
        save={(change) => store.changeRemarks("", change)}
      />
      <Pace store={store} />
      <Budgets store={store} />
      <dl class="facts columns">
        <div>
          <dt>Id</dt>
          <dd>
            {profile!.id} <CopyButton small label="Copy the experiment's id" text={profile!.id} />
          </dd>
        </div>
        <div>
          <dt>Algorithm</dt>
          <dd>{profile!.algorithm || "–"}</dd>
        </div>
        <div>
          <dt>Platform</dt>
          <dd>{services || "–"}</dd>
        </div>
        <div>
          <dt>Started</dt>
          <dd>{formatTime(profile!.startTime)}</dd>
        </div>
        {profile!.endTime ? (
          <div>
            <dt>Ended</dt>
            <dd>{formatTime(profile!.endTime)}</dd>
          </div>
        ) : null}
        <div>
          <dt>Folder</dt>
          <dd class="path">{profile!.logDir}</dd>
        </div>
      </dl>
      {profile!.repeatable ? null : (
        <p class="hint">Not repeatable: a replay of the log gave different parameters.</p>
      )}
    </>
  );
}

/** Current activity, trials per minute and remaining time. */
function Pace({ store }: { store: Store }) {
  const status = store.status!;
  const runs = RUNNING_STATES.has(status.status);
  useClock(runs);
  const done = countEnded(store.counts);
  const most = Number(store.profile!.params["maxTrialNumber"] ?? 0);
  const used = store.executionSeconds();
  const running = store.counts["RUNNING"] ?? 0;
  const sentences: string[] = [];
  if (status.waitingFor) sentences.push(`Waiting: ${status.waitingFor}`);
  else if (runs) sentences.push(`${count(running, "trial")} running`);
  if (done > 0 && used > 0)
    sentences.push(`${formatValue(Number(((done / used) * 60).toPrecision(2)))} trials a minute`);
  if (runs && most > done && done > 2)
    sentences.push(`about ${formatDuration(((most - done) * used) / done)} left`);
  if (status.status === "VIEWED") sentences.push("Open for reading only: nothing can be changed.");
  return (
    <p class="lead" role="status">
      {sentences.join(" · ") || "\u00a0"}
    </p>
  );
}

function Best({ store, goals }: { store: Store; goals: Goals }) {
  const { metric } = goals.objectives[0]!;
  const best = useMemo(
    () => bestTrial(store.trials.values(), goals, metric),
    [store.version, goals],
  );
  const minimize = modeOf(goals, metric) === "minimize";
  return (
    <>
      <h2 id="best">
        <Icon name="best" /> Best result{" "}
        <span class="muted">
          ({minimize ? "smallest" : "largest"}
          {metric === "default" ? "" : ` ${metric}`}
          {goals.limits.length ? " within the limits" : ""})
        </span>
      </h2>
      {best ? (
        <>
          <p class="big">{formatValue(best.metrics[metric])}</p>
          <p class="muted">
            trial <TrialLink trial={best} /> · number {best.number}
          </p>
          <Parameters flat={best.flat} />
          <CopyButton
            label="Copy as Python"
            text={() => pythonLiteral(sampleOf(best.parameters) ?? best.parameters)}
          />
        </>
      ) : (
        <NoResult store={store} />
      )}
    </>
  );
}

function Top({
  store,
  goals,
  metric,
  choose,
}: {
  store: Store;
  goals: Goals;
  metric: string;
  choose: (metric: string, mode: Mode | "") => void;
}) {
  const [many, setMany] = usePreference("top", 10);
  const rows = useMemo(
    () => ranked(store.trials.values(), goals, metric).slice(0, many),
    [store.version, goals, metric, many],
  );
  const { href, go } = useApp();
  return (
    <>
      <h2 id="top">Top trials</h2>
      <div class="tools">
        <DirectionSelect goals={goals} metric={metric} choose={choose} />
        <label>
          Show{" "}
          <select value={many} onChange={(event) => setMany(Number(event.currentTarget.value))}>
            {[5, 10, 20, 50].map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
      </div>
      {rows.length === 0 ? (
        <NoResult store={store} />
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col" class="number">
                No.
              </th>
              <th scope="col">Trial</th>
              <th scope="col" class="number">
                Result
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((trial) => (
              <tr key={trial.id}>
                <td class="number">{trial.number}</td>
                <td>
                  <TrialLink trial={trial} />
                </td>
                <td class="number">
                  {metricText(trial, metric)}
                  {isFeasible(trial, goals) ? null : (
                    <span class="broken" title={limitText(trial, goals)}>
                      {" "}
                      beyond a limit
                    </span>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <p>
        <a
          href={href({ view: "detail", trial: "" })}
          onClick={(event) => {
            event.preventDefault();
            go({ view: "detail", trial: "" });
          }}
        >
          All trials
        </a>
      </p>
    </>
  );
}

/** Return the limits that a result breaks, with its values. */
function limitText(trial: Trial, goals: Goals): string {
  return brokenLimits(trial, goals)
    .map(({ metric, max }) => `${metric} ${metricText(trial, metric)}, limit ${formatValue(max)}`)
    .join("; ");
}

function Space({ store }: { store: Store }) {
  const [editing, setEditing] = useState(false);
  const stopped = /^STOP/.test(store.status!.status);
  const dimensions = useMemo(
    () => dimensionsOf(store.profile!.params["searchSpace"]),
    [store.profile!.revision],
  );
  return (
    <>
      <div class="title-row">
        <h2 id="space">Search space</h2>
        <span class="grow" />
        <button
          type="button"
          class="plain"
          disabled={!store.editable || stopped}
          title={stopped ? "The experiment is stopped: resume it first." : store.readOnlyReason}
          onClick={() => setEditing(true)}
        >
          <Icon name="edit" /> Change
        </button>
      </div>
      {editing ? <SpaceEditor store={store} onClose={() => setEditing(false)} /> : null}
      {dimensions.length === 0 ? (
        <p class="empty">The search space is empty.</p>
      ) : (
        <div class="scroll">
          <table>
            <thead>
              <tr>
                <th scope="col">Parameter</th>
                <th scope="col">Type</th>
                <th scope="col">Values</th>
              </tr>
            </thead>
            <tbody>
              {dimensions.map((one) => (
                <tr key={one.name}>
                  <th scope="row" class="mono" data-depth={one.depth}>
                    {one.name}
                  </th>
                  <td>{one.type}</td>
                  <td class="mono">{one.range}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

/** Fields that other cards show. */
const ELSEWHERE = new Set(["searchSpace", "experimentName", "modelGraph"]);

function Config({ store }: { store: Store }) {
  const entries = Object.entries(store.profile!.params).filter(([key]) => !ELSEWHERE.has(key));
  return (
    <>
      <h2 id="config">Configuration</h2>
      <dl class="facts">
        {entries.map(([key, value]) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd class="mono">
              {typeof value === "object" ? JSON.stringify(value) : formatValue(value)}
            </dd>
          </div>
        ))}
      </dl>
    </>
  );
}
