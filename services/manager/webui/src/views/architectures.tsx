// View of a neural architecture search: its space as a tree with the frequency of each candidate,
// its network as a graph, the best architectures side by side, and the Pareto front of two metrics.

import { useMemo, useState } from "preact/hooks";

import { ArchitectureFront } from "../charts/architecture_front";
import { SavedChart } from "../components/chart_files";
import { NoResult } from "../components/no_result";
import { TrialLink } from "../components/trial_link";
import { count, formatValue } from "../format";
import {
  type Candidate,
  type Choice,
  choicesOf,
  chosenText,
  type Tally,
  tallyOf,
  usesChoice,
} from "../state/architectures";
import { useStore } from "../state/context";
import { usePreference } from "../state/preferences";
import type { Store } from "../state/store";
import { type Goals, modeOf, ranked } from "../state/objectives";
import { useGoals } from "../state/goals";
import { modelGraphOf } from "../state/model_graph";
import { LIVE, type Trial } from "../state/trial";
import { Network } from "./network";

/** Number of choices that are shown before a click: a cell space may have hundreds. */
const FEW_CHOICES = 40;
/** Number of candidates of one choice that are shown; the rest is summed up. */
const MOST_CANDIDATES = 12;
const TOP = [5, 10, 20, 50];
/** Number of architectures side by side. */
const BESIDE = 4;

export function Architectures() {
  const store = useStore();
  const [goals] = useGoals(store);
  const choices = useMemo(
    () => choicesOf(store.profile?.params["searchSpace"]),
    [store.profile?.revision],
  );
  const model = useMemo(
    () => modelGraphOf(store.profile?.params["modelGraph"]),
    [store.profile?.revision],
  );
  if (!store.profile) return null; // the page shows the reason
  const minimize = modeOf(goals, goals.objectives[0]!.metric) === "minimize";
  return (
    <div class="grid">
      <section class="card w12" aria-labelledby="choices">
        <Choices store={store} choices={choices} goals={goals} />
      </section>
      {model ? (
        <section class="card w12" aria-labelledby="network">
          <Network store={store} model={model} choices={choices} goals={goals} />
        </section>
      ) : null}
      <section class="card w12" aria-labelledby="best-architectures">
        <Best store={store} choices={choices} goals={goals} />
      </section>
      {store.metricKeys.size > 1 ? (
        <section class="card w12" aria-labelledby="front">
          <h2 id="front">Trade-off between two metrics</h2>
          <SavedChart name="architectures" title="Architectures">
            <ArchitectureFront store={store} minimize={minimize} height={360} />
          </SavedChart>
        </section>
      ) : null}
    </div>
  );
}

function Choices({ store, choices, goals }: { store: Store; choices: Choice[]; goals: Goals }) {
  const [most, setMost] = usePreference("architectures:top", 10);
  const [all, setAll] = useState(false);
  const evaluated = useMemo(
    () => [...store.trials.values()].filter(({ state }) => !LIVE.has(state)),
    [store.version],
  );
  const best = useMemo(() => {
    const ranking = ranked(evaluated, goals, goals.objectives[0]!.metric);
    return ranking.slice(0, Math.min(most, Math.ceil(ranking.length / 2)));
  }, [evaluated, most, goals]);
  const shown = all ? choices : choices.slice(0, FEW_CHOICES);
  return (
    <>
      <h2 id="choices">Choices of the model space</h2>
      {choices.length === 0 ? (
        <p class="empty">The space of this search was not recorded.</p>
      ) : (
        <>
          <div class="tools">
            <span class="muted">
              {count(choices.length, "choice")}, {count(evaluated.length, "evaluated model")}
            </span>
            <label>
              Compare with the best{" "}
              <select value={most} onChange={(event) => setMost(Number(event.currentTarget.value))}>
                {TOP.map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
            </label>
          </div>
          <p class="hint">
            A full bar is 100 % of the models in its column. A candidate that suits the task has a
            larger share among the best models, at most half of all, than among all; with few
            models, shares vary by chance. A choice inside a candidate counts where that candidate
            was chosen.
          </p>
          <div class="scroll" role="group" aria-label="Table of the choices" tabIndex={0}>
            <table class="choice-table">
              <thead>
                <tr>
                  <th scope="col">Choice</th>
                  <th scope="col">Kind</th>
                  <th scope="col">Candidate</th>
                  <th scope="col">Among all {evaluated.length}</th>
                  <th scope="col">Among the best {best.length}</th>
                </tr>
              </thead>
              {shown.map((choice) => (
                <ChoiceRows
                  key={choice.label}
                  choice={choice}
                  all={evaluated.filter((trial) => usesChoice(choice, choices, trial))}
                  best={best.filter((trial) => usesChoice(choice, choices, trial))}
                />
              ))}
            </table>
          </div>
          {choices.length > shown.length ? (
            <p>
              <button type="button" class="plain" onClick={() => setAll(true)}>
                Show all {choices.length} choices
              </button>
            </p>
          ) : null}
        </>
      )}
    </>
  );
}

function ChoiceRows({ choice, all, best }: { choice: Choice; all: Trial[]; best: Trial[] }) {
  const tally = tallyOf(choice, all);
  const top = tallyOf(choice, best);
  const shown = mostChosen(choice.candidates, tally);
  const hidden = choice.size - shown.length;
  const rows = Math.max(1, shown.length) + (shown.length && hidden > 0 ? 1 : 0);
  const head = (
    <>
      <th
        scope="rowgroup"
        rowSpan={rows}
        class="mono"
        style={{ paddingLeft: `${10 + 18 * choice.depth}px` }}
      >
        {choice.label}
        {choice.inside ? (
          <small class="muted inside">
            if {choice.inside.label} is {choice.inside.candidate}
          </small>
        ) : null}
      </th>
      <td rowSpan={rows}>
        {choice.kind}
        {choice.kind === "inputs" ? (
          <small class="muted inside">
            {choice.chosen === null ? "any number" : `${choice.chosen} of ${choice.size}`}
          </small>
        ) : null}
      </td>
    </>
  );
  if (!shown.length)
    return (
      <tbody>
        <tr>
          {head}
          <td class="mono">{choice.range}</td>
          <td>{extentText(tally)}</td>
          <td>{extentText(top)}</td>
        </tr>
      </tbody>
    );
  return (
    <tbody>
      {shown.map((at, row) => (
        <tr key={at}>
          {row === 0 ? head : null}
          <td class="mono">{choice.candidates[at]!.text}</td>
          <Share number={tally.counts[at]!} of={all.length} />
          <Share number={top.counts[at]!} of={best.length} best />
        </tr>
      ))}
      {hidden > 0 ? (
        <tr>
          <td colSpan={3} class="muted">
            and {count(hidden, "candidate")} that were chosen less often
          </td>
        </tr>
      ) : null}
    </tbody>
  );
}

/** Return the positions of the candidates to show, in their order. */
function mostChosen(candidates: Candidate[], tally: Tally): number[] {
  const positions = candidates.map((_, at) => at);
  if (positions.length <= MOST_CANDIDATES) return positions;
  return positions
    .sort((a, b) => tally.counts[b]! - tally.counts[a]! || a - b)
    .slice(0, MOST_CANDIDATES)
    .sort((a, b) => a - b);
}

function extentText({ extent }: Tally): string {
  return extent ? `${formatValue(extent[0])} … ${formatValue(extent[1])}` : "–";
}

function Share({ number, of, best = false }: { number: number; of: number; best?: boolean }) {
  const part = of > 0 ? number / of : 0;
  return (
    <td>
      <span class="share">
        <span class="importance-track" aria-hidden="true">
          <span
            class={best ? "importance-bar best" : "importance-bar"}
            style={{ width: `${part * 100}%` }}
          />
        </span>
        <span class="share-text">
          {of > 0 ? `${Math.round(part * 100)} %` : "–"}{" "}
          <span class="muted">
            ({number} of {of})
          </span>
        </span>
      </span>
    </td>
  );
}

function Best({ store, choices, goals }: { store: Store; choices: Choice[]; goals: Goals }) {
  const best = useMemo(
    () => ranked(store.trials.values(), goals, goals.objectives[0]!.metric).slice(0, BESIDE),
    [store.version, goals],
  );
  const metrics = [...new Set(best.flatMap((trial) => Object.keys(trial.metrics)))];
  const row = (name: string, label: string, text: (trial: Trial) => string) => {
    const texts = best.map(text);
    return (
      <tr key={name} class={new Set(texts).size > 1 ? "differs" : undefined}>
        <th scope="row" class="mono">
          {label}
        </th>
        {texts.map((one, at) => (
          <td key={best[at]!.id} class="mono">
            {one}
          </td>
        ))}
      </tr>
    );
  };
  return (
    <>
      <h2 id="best-architectures">Best architectures</h2>
      {best.length === 0 ? (
        <NoResult store={store} />
      ) : (
        <div class="scroll" role="group" aria-label="Table of the best architectures" tabIndex={0}>
          <table class="compare">
            <caption class="muted">
              {modeOf(goals, goals.objectives[0]!.metric) === "minimize" ? "Smallest" : "Largest"}{" "}
              result first. Rows that differ are marked.
            </caption>
            <thead>
              <tr>
                <td />
                {best.map((trial) => (
                  <th key={trial.id} scope="col">
                    #{trial.number} <TrialLink trial={trial} />
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {metrics.map((key) =>
                row(`m:${key}`, key === "default" ? "result" : key, (trial) =>
                  formatValue(trial.metrics[key]),
                ),
              )}
              {choices.map((choice) =>
                row(choice.label, choice.label, (trial) =>
                  usesChoice(choice, choices, trial) ? chosenText(choice, trial) : "–",
                ),
              )}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}
