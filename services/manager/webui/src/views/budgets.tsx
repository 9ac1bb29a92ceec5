// Budgets of an experiment: usage, and a form to change them.

import { useState } from "preact/hooks";

import { errorMessage } from "../api/client";
import type { AgentLimits } from "../api/records";
import { durationSeconds, durationText, formatDuration } from "../format";
import { Icon } from "../components/icon";
import { useApp, useClock } from "../state/context";
import type { Store } from "../state/store";
import { countEnded } from "../state/trial";
import { LIMIT_FIELDS, limitChange, limitTexts } from "../state/agent_limits";
import { TimeUsed, TrialsByState } from "./progress_bars";

interface Field {
  name: string;
  label: string;
  type: string;
  hint: string;
  /** Return the value of a text, or a message about an invalid text. */
  read: (text: string) => { value: number | string } | { problem: string };
}

const whole = (text: string): ReturnType<Field["read"]> =>
  /^\d+$/.test(text) && Number(text) >= 1
    ? { value: Number(text) }
    : { problem: "must be an integer >= 1" };

const FIELDS: Field[] = [
  {
    name: "maxTrialNumber",
    label: "Trial number",
    type: "MAX_TRIAL_NUM",
    hint: "maximum number of trials",
    read: whole,
  },
  {
    name: "maxExperimentDuration",
    label: "Duration",
    type: "MAX_EXEC_DURATION",
    hint: "such as 90s, 30m, 2h or 1d",
    read: (text) =>
      durationSeconds(text)
        ? { value: text }
        : { problem: "must be a duration such as 90s, 30m, 2h or 1d" },
  },
  {
    name: "trialConcurrency",
    label: "Concurrency",
    type: "TRIAL_CONCURRENCY",
    hint: "maximum number of parallel trials",
    read: whole,
  },
];

export function Budgets({ store }: { store: Store }) {
  const [open, setOpen] = useState(false);
  useClock(!open);
  const params = store.profile!.params;
  const limit = durationSeconds(params["maxExperimentDuration"]);
  const most = params["maxTrialNumber"];
  const used = store.executionSeconds();
  const done = countEnded(store.counts);
  return (
    <div class="budgets">
      <div class="budget-grid">
        <section aria-label="Trials">
          <h2>Trials done</h2>
          <p class="budget-value">
            {done.toLocaleString("en")}{" "}
            <span class="muted">
              {most ? `of ${Number(most).toLocaleString("en")}` : "no limit"}
            </span>
          </p>
          <TrialsByState store={store} />
        </section>
        <section aria-label="Time">
          <h2>Time</h2>
          <p class="budget-value">
            {formatDuration(Math.floor(used))}{" "}
            <span class="muted">{limit ? `of ${formatDuration(limit)}` : "no limit"}</span>
          </p>
          {limit ? <TimeUsed used={used} limit={limit} /> : null}
        </section>
        <section class="budget-side" aria-label="Concurrency">
          <div>
            <h2>Concurrency</h2>
            <p
              class="budget-value"
              title="Maximum number of parallel trials; fewer run if resources are short"
            >
              {String(params["trialConcurrency"])} <span class="muted">at a time</span>
            </p>
          </div>
          <button
            type="button"
            class="plain"
            disabled={!store.editable}
            title={store.readOnlyReason}
            onClick={() => setOpen(!open)}
            aria-expanded={open}
          >
            <Icon name="edit" /> Change
          </button>
        </section>
      </div>
      {open ? <Form store={store} onDone={() => setOpen(false)} /> : null}
    </div>
  );
}

function Form({ store, onDone }: { store: Store; onDone: () => void }) {
  const { notify } = useApp();
  const now = (name: string) => {
    const value = store.profile!.params[name];
    const seconds = name === "maxExperimentDuration" ? durationSeconds(value) : null;
    return seconds ? durationText(seconds) : String(value ?? "");
  };
  const limits = store.profile!.agentLimits;
  const [texts, setTexts] = useState<Record<string, string>>(() => ({
    ...Object.fromEntries(FIELDS.map(({ name }) => [name, now(name)])),
    ...(limits && limitTexts(limits)),
  }));
  const [problems, setProblems] = useState<Record<string, string>>({});
  const [busy, setBusy] = useState(false);

  const save = async (event: Event) => {
    event.preventDefault();
    const found: Record<string, string> = {};
    setBusy(true);
    for (const { name, type, read } of FIELDS) {
      const text = (texts[name] ?? "").trim();
      if (text === now(name)) continue;
      const given = read(text);
      try {
        if ("problem" in given) found[name] = given.problem;
        else await store.update(type, { [name]: given.value });
      } catch (error) {
        found[name] = errorMessage(error);
      }
    }
    if (limits) Object.assign(found, await saveLimits(store, limits, texts));
    setBusy(false);
    setProblems(found);
    if (Object.keys(found).length === 0) {
      notify("Budgets updated.", "done");
      onDone();
    }
  };
  const field = ({ name, label, hint }: { name: string; label: string; hint: string }) => (
    <label key={name} class="field">
      <span>{label}</span>
      <input
        name={name}
        value={texts[name]}
        autocomplete="off"
        aria-invalid={name in problems}
        aria-describedby={`hint-${name}`}
        onInput={(event) => setTexts({ ...texts, [name]: event.currentTarget.value })}
      />
      <small id={`hint-${name}`} class={name in problems ? "wrong" : "muted"}>
        {problems[name] ?? hint}
      </small>
    </label>
  );
  return (
    <form class="form-row" onSubmit={(event) => void save(event)}>
      {FIELDS.map(field)}
      {limits ? LIMIT_FIELDS.map(field) : null}
      <div class="row">
        <button class="primary" disabled={busy}>
          Save
        </button>
        <button type="button" class="plain" onClick={onDone}>
          Cancel
        </button>
      </div>
    </form>
  );
}

/** Save changed limits of agents in one request; return a message by field that is refused. */
async function saveLimits(
  store: Store,
  limits: AgentLimits,
  texts: Record<string, string>,
): Promise<Record<string, string>> {
  const { params, problems } = limitChange(limits, texts);
  if (Object.keys(problems).length || !Object.keys(params).length) return problems;
  try {
    await store.update("AGENT_LIMITS", params);
    return {};
  } catch (error) {
    const message = errorMessage(error);
    const refused = LIMIT_FIELDS.find(({ name }) => message.includes(name));
    return { [refused?.name ?? "maxAgents"]: message };
  }
}
