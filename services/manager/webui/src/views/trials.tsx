// View of all trials of an experiment: search, sort, select, compare.

import { useMemo, useState } from "preact/hooks";

import { errorMessage } from "../api/client";
import type { TensorBoard } from "../api/records";
import { count } from "../format";
import { Icon } from "../components/icon";
import { ChoiceMenu } from "../components/choice_menu";
import { deferred } from "../components/deferred";
import { saveFile } from "../components/save_file";
import { StatePill } from "../components/state_pill";
import { TrialLink } from "../components/trial_link";
import { type Column, defaultColumns } from "../state/columns";
import { trialsCsv } from "../state/csv";
import { isArchitectureSpace } from "../state/architectures";
import { useApp, useClock, useStore } from "../state/context";
import { keysOf, keysText, placedAt } from "../state/choices";
import { listOf } from "../state/page_location";
import { usePlaceValue } from "../state/place_value";
import { MAX_SELECTED, type Selected, selectedOf, toggledAll } from "../state/selection";
import { useTrialRows } from "../state/trial_rows";
import type { Store } from "../state/store";
import { LIVE, TRIAL_STATES, type Trial } from "../state/trial";
import { type TableColumn, VirtualTable } from "../table/virtual_table";
import { FilterBuilder } from "./filter_builder";
import { boardAddress } from "./tensorboards";

const Compare = deferred(() => import("./compare").then((it) => it.Compare));
const CustomTrial = deferred(() => import("./custom_trial").then((it) => it.CustomTrial));

/** Numbers of columns that can stay in view. */
const PINS = ["0", "1", "2", "3", "4"];

export function Trials() {
  const store = useStore();
  const { go, place } = useApp();
  const id = store.profile?.id ?? "";
  const [columnText, setColumnText] = usePlaceValue("cols", `cols:${id}`, "");
  const [pin, setPin] = usePlaceValue("pin", "trials:pin", "1");
  const chosen = useMemo(() => keysOf(columnText), [columnText]);
  const setChosen = (keys: string[] | null) => setColumnText(keys ? keysText(keys) : "");
  const [markedText, setMarked] = usePlaceValue("select", "", "");
  const [comparing, setComparing] = usePlaceValue("compare", "", "", true);
  const [making, setMaking] = useState(false);
  const running = (store.counts["RUNNING"] ?? 0) > 0;
  const now = useClock(running && (chosen ?? ["duration"]).includes("duration"));
  const { columns, filter, rows, search, setSearch, states, setStates, sort, setSort } =
    useTrialRows(now);
  const marked = useMemo((): ReadonlySet<string> => new Set(listOf(markedText)), [markedText]);
  const shown = useMemo(() => {
    if (chosen) return chosen.flatMap((key) => columns.find((one) => one.key === key) ?? []);
    const keys = defaultColumns(columns, store.trials.values());
    return columns.filter((one) => keys.includes(one.key));
  }, [columns, chosen, store.version]);
  const selected = [...marked]
    .map((one) => store.trials.get(one))
    .filter((one): one is Trial => one !== undefined);

  const mark = (trial: Trial) => {
    const next = new Set(marked);
    if (!next.delete(trial.id)) next.add(trial.id);
    setMarked([...next].join(","));
  };
  const onSort = (key: string) =>
    setSort({
      key,
      descending: sort.key === key ? !sort.descending : !["id", "state"].includes(key),
    });
  return (
    <section class="card fill" aria-label="Trials">
      <div class="tools">
        <input
          type="search"
          class="grow"
          aria-label="Search trials"
          aria-describedby="search-problems"
          spellcheck={false}
          placeholder="Search: id, number, state, value, or lr:0.001..0.1  result>0.9"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        <FilterBuilder
          store={store}
          columns={columns}
          onAdd={(part) => setSearch(`${search} ${part}`.trim())}
        />
        <ChoiceMenu
          label="Columns"
          icon="columns"
          align="right"
          all={columns}
          chosen={shown.map((one) => one.key)}
          onChange={setChosen}
          ordered
        >
          <label>
            Keep the first{" "}
            <select value={pin} onChange={(event) => setPin(event.currentTarget.value)}>
              {PINS.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>{" "}
            in view
          </label>
        </ChoiceMenu>
        {isArchitectureSpace(store.profile?.params["searchSpace"]) ? null : (
          <button
            type="button"
            class="plain"
            disabled={!store.editable}
            title={store.readOnlyReason}
            onClick={() => setMaking(true)}
          >
            <Icon name="play" /> New trial
          </button>
        )}
      </div>
      <StateChips store={store} chosen={states} onChange={setStates} />
      <p
        class={filter.problems.length ? "hint" : "visually-hidden"}
        id="search-problems"
        role="status"
      >
        {filter.problems.join(" ")}
      </p>
      <VirtualTable
        label="Trials"
        name={`trials:${id}`}
        pin={1 + (Number(pin) || 0)}
        onOrder={(key, target) => {
          const keys = shown.map((one) => one.key);
          setChosen(placedAt(keys, keys.indexOf(key), keys.indexOf(target)));
        }}
        rows={rows}
        sort={sort}
        onSort={onSort}
        columns={tableColumns(shown, now, marked, mark, {
          state: selectedOf(rows, marked),
          count: Math.min(rows.length, MAX_SELECTED),
          toggle: () => setMarked(toggledAll(rows, marked).join(",")),
        })}
        onOpen={(trial) => go({ trial: trial.id })}
        isMarked={(trial) => marked.has(trial.id) || trial.id === place.trial}
        empty={
          store.newestLoaded && store.trials.size
            ? "No trial matches."
            : store.complete
              ? "There are no trials yet."
              : "Loading trials…"
        }
      />
      <div class="table-foot">
        <span class="muted" role="status">
          {rows.length < store.trials.size && store.newestLoaded
            ? `${rows.length.toLocaleString("en")} of `
            : ""}
          {count(store.trials.size, "trial")}
          {store.complete
            ? ""
            : store.total
              ? ` of ${store.total.toLocaleString("en")}, loading…`
              : ", loading…"}
        </span>
        <button
          type="button"
          class="quiet"
          disabled={!rows.length}
          title="Save the rows and columns that are shown"
          onClick={() =>
            saveFile(
              new Blob([trialsCsv(shown, rows, Date.now())], { type: "text/csv" }),
              `trials-${id}.csv`,
            )
          }
        >
          <Icon name="download" /> CSV
        </button>
        <Selection
          store={store}
          selected={selected}
          onCompare={() => setComparing("1")}
          onClear={() => setMarked("")}
        />
      </div>
      {comparing && selected.length >= 2 ? (
        <Compare store={store} trials={selected} onClose={() => setComparing("")} />
      ) : null}
      {making ? (
        <CustomTrial store={store} from={rows[0] ?? null} onClose={() => setMaking(false)} />
      ) : null}
    </section>
  );
}

function tableColumns(
  shown: Column[],
  now: number,
  marked: ReadonlySet<string>,
  mark: (trial: Trial) => void,
  all: { state: Selected; count: number; toggle: () => void },
): TableColumn<Trial>[] {
  const box: TableColumn<Trial> = {
    key: "",
    title: "",
    width: 44,
    sortable: false,
    head: (
      <input
        type="checkbox"
        aria-label={`Select all ${all.count} matching trials`}
        title={all.count === MAX_SELECTED ? `Selects the first ${MAX_SELECTED}` : "Select all"}
        checked={all.state === "all"}
        indeterminate={all.state === "some"}
        disabled={all.count === 0}
        onChange={all.toggle}
      />
    ),
    cell: (trial) => (
      <input
        type="checkbox"
        aria-label={`Select trial ${trial.number}`}
        checked={marked.has(trial.id)}
        onChange={() => mark(trial)}
      />
    ),
  };
  const cells = shown.map((column): TableColumn<Trial> => ({
    key: column.key,
    title: column.title,
    width: column.width,
    ...(column.number ? { number: true } : {}),
    cell: (trial) => cellOf(column, trial, now),
  }));
  return [box, ...cells];
}

function cellOf(column: Column, trial: Trial, now: number) {
  if (column.key === "id") return <TrialLink trial={trial} />;
  if (column.key === "state") return <StatePill state={trial.state} />;
  const text = column.text(trial, now);
  return text;
}

function StateChips({
  store,
  chosen,
  onChange,
}: {
  store: Store;
  chosen: string[];
  onChange: (states: string[]) => void;
}) {
  const known = TRIAL_STATES.filter((state) => store.counts[state] || chosen.includes(state));
  return (
    <fieldset class="chips">
      <legend class="visually-hidden">Only trials in these states</legend>
      {known.map((state) => (
        <label key={state} class={chosen.includes(state) ? "chip on" : "chip"}>
          <input
            type="checkbox"
            class="visually-hidden"
            checked={chosen.includes(state)}
            onChange={() =>
              onChange(
                chosen.includes(state) ? chosen.filter((one) => one !== state) : [...chosen, state],
              )
            }
          />
          <StatePill state={state} /> {(store.counts[state] ?? 0).toLocaleString("en")}
        </label>
      ))}
    </fieldset>
  );
}

function Selection({
  store,
  selected,
  onCompare,
  onClear,
}: {
  store: Store;
  selected: Trial[];
  onCompare: () => void;
  onClear: () => void;
}) {
  const { notify } = useApp();
  if (selected.length === 0) return null;
  const live = selected.filter((trial) => LIVE.has(trial.state));
  const kill = async () => {
    if (!confirm(`Kill ${count(live.length, "trial")}? Their progress is lost.`)) return;
    for (const trial of live)
      await store.kill(trial.id).catch((error: unknown) => notify(errorMessage(error)));
  };
  const tensorboard = async () => {
    try {
      const task = await store.client.send<TensorBoard>("POST", "tensorboard", {
        trials: selected.map((one) => one.id),
      });
      window.open(boardAddress(task), "_blank", "noopener");
    } catch (error) {
      notify(errorMessage(error));
    }
  };
  return (
    <div class="selection" role="region" aria-label="Selected trials">
      <b>{count(selected.length, "trial")} selected</b>
      <button
        type="button"
        class="plain"
        disabled={selected.length < 2}
        title={selected.length < 2 ? "Select two trials or more" : undefined}
        onClick={onCompare}
      >
        Compare
      </button>
      <button
        type="button"
        class="plain"
        disabled={!store.editable}
        title={store.readOnlyReason}
        onClick={() => void tensorboard()}
      >
        TensorBoard
      </button>
      {live.length ? (
        <button
          type="button"
          class="plain danger"
          disabled={!store.editable}
          title={store.readOnlyReason}
          onClick={() => void kill()}
        >
          Kill {live.length}
        </button>
      ) : null}
      <button type="button" class="quiet" onClick={onClear}>
        <Icon name="close" /> Clear
      </button>
    </div>
  );
}
