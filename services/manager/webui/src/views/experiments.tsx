// View of all experiments of the installation.

import { useEffect, useMemo, useReducer, useState } from "preact/hooks";

import { errorMessage } from "../api/client";
import type { Metadata } from "../api/records";
import { count, formatValue, formatTime } from "../format";
import { Icon } from "../components/icon";
import { Progress } from "../components/progress";
import { StatePill } from "../components/state_pill";
import { toggled } from "../state/choices";
import { TIME_PX } from "../state/columns";
import { useApp } from "../state/context";
import { shownState } from "../state/outcome";
import { type Sort, listOf, sortOf, sortText } from "../state/page_location";
import { usePlaceValue } from "../state/place_value";
import { remarksText } from "../state/remarks";
import { LIVE, TRIAL_STATES, countLive } from "../state/trial";
import { type TableColumn, VirtualTable } from "../table/virtual_table";
import { CompareExperiments, MAX_COMPARED } from "./compare_experiments";
import { ExperimentActions } from "./experiment_actions";

const RETRY_MS = 5_000;
const AGES: [string, number][] = [
  ["any time", Infinity],
  ["the last day", 1],
  ["the last week", 7],
  ["the last month", 30],
];
const NONE_YET = (
  <>
    There are no experiments yet. <code>nnictl create --config FILE</code> starts one.
  </>
);
const DAY_MS = 86_400_000;

/** View of all experiments. `own` is the listener's experiment; empty on the base listener. */
export function Experiments({ own }: { own: string }) {
  const { all, problem, canChange, reload } = useExperiments();
  const [markedText, setMarked] = usePlaceValue("select", "", "");
  const [comparing, setComparing] = usePlaceValue("compare", "", "", true);
  const marked = useMemo(() => listOf(markedText), [markedText]);
  const mark = (id: string) => setMarked(toggled(marked, id).join(","));
  const [acting, setActing] = useState<Metadata | null>(null);
  const [search, setSearch] = usePlaceValue("q", "experiments:search", "");
  const [stateText, setStateText] = usePlaceValue("state", "experiments:only", "");
  const [platform, setPlatform] = usePlaceValue("platform", "experiments:platform", "");
  const [ageText, setAge] = usePlaceValue("age", "experiments:since", "0");
  const [order, setOrder] = usePlaceValue("sort", "experiments:order", "-started");
  const states = useMemo(() => listOf(stateText), [stateText]);
  const setStates = (next: string[]) => setStateText(next.join(","));
  const age = Number(ageText) in AGES ? Number(ageText) : 0;
  const sort = useMemo(() => sortOf(order), [order]);
  const setSort = (next: Sort) => setOrder(sortText(next));
  const known = [...new Set((all ?? []).map((one) => one.status))].sort();
  const platforms = [...new Set((all ?? []).map((one) => one.platform))].sort();
  const rows = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    const since = Date.now() - AGES[age]![1] * DAY_MS;
    const matching = (all ?? []).filter(
      (one) =>
        `${one.id} ${one.name} ${one.tag.join(" ")} ${remarksText(one.remarks)}`
          .toLowerCase()
          .includes(wanted) &&
        (states.length === 0 || states.includes(one.status)) &&
        (!platform || one.platform === platform) &&
        (one.startTime ?? Date.now()) >= since,
    );
    const value = VALUES[sort.key] ?? VALUES["started"]!;
    const sign = sort.descending ? -1 : 1;
    return matching.sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === null || y === null) return Number(x === null) - Number(y === null);
      return x < y ? -sign : x > y ? sign : 0;
    });
  }, [all, search, states, platform, age, sort]);
  const columns = useMemo(() => {
    // Columns with one value only are hidden.
    const hidden = new Set<string>();
    if (platforms.length < 2) hidden.add("platform");
    if (!all?.some((one) => tagsOf(one).length)) hidden.add("tag");
    if (!canChange) hidden.add("actions");
    const box = boxColumn(marked, mark);
    return [box, ...columnsFor(own, setActing).filter(({ key }) => !hidden.has(key))];
  }, [all, own, canChange, marked]);
  if (problem && !all)
    return (
      <p class="hint" role="alert">
        {problem}
      </p>
    );
  const toggle = (state: string) =>
    setStates(states.includes(state) ? states.filter((one) => one !== state) : [...states, state]);
  return (
    <section class="card fill" aria-label="All experiments">
      <div class="tools">
        <input
          type="search"
          class="grow"
          placeholder="Search: id, name, tag, note, or starred"
          aria-label="Search experiments"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        {platforms.length > 1 ? (
          <label>
            Platform{" "}
            <select value={platform} onChange={(event) => setPlatform(event.currentTarget.value)}>
              <option value="">all</option>
              {platforms.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
        ) : null}
        <label>
          Started{" "}
          <select value={age} onChange={(event) => setAge(event.currentTarget.value)}>
            {AGES.map(([name], i) => (
              <option key={name} value={i}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </div>
      <fieldset class="chips">
        <legend class="visually-hidden">Only experiments in these states</legend>
        {known.map((state) => (
          <label key={state} class={states.includes(state) ? "chip on" : "chip"}>
            <input
              type="checkbox"
              class="visually-hidden"
              checked={states.includes(state)}
              onChange={() => toggle(state)}
            />
            <StatePill state={state} /> {all!.filter((one) => one.status === state).length}
          </label>
        ))}
      </fieldset>
      <VirtualTable
        label="Experiments"
        name="experiments"
        columns={columns}
        rows={rows}
        sort={sort}
        onSort={(key) =>
          setSort({
            key,
            descending: sort.key === key ? !sort.descending : key !== "name" && key !== "id",
          })
        }
        onOpen={(one) => location.assign(addressOf(one, own))}
        isMarked={(one) => one.id === own}
        empty={all === null ? "Loading…" : all.length ? "No experiment matches." : NONE_YET}
      />
      {acting ? (
        <ExperimentActions
          id={acting.id}
          name={acting.name}
          status={all?.find(({ id }) => id === acting.id)?.status ?? acting.status}
          live={countLive(acting.trialCounts)}
          ownAddress={acting.id === own}
          onChanged={reload}
          onClose={() => setActing(null)}
        />
      ) : null}
      {comparing && marked.length >= 2 ? (
        <CompareExperiments ids={marked.slice(0, MAX_COMPARED)} onClose={() => setComparing("")} />
      ) : null}
      <div class="table-foot">
        <span class="muted" role="status">
          {all
            ? `${rows.length < all.length ? `${rows.length} of ` : ""}${count(all.length, "experiment")}`
            : ""}
          {problem ? ` · ${problem}` : ""}
        </span>
        {marked.length ? (
          <div class="selection" role="region" aria-label="Selected experiments">
            <b>{count(marked.length, "experiment")} selected</b>
            <button
              type="button"
              class="plain"
              disabled={marked.length < 2}
              title={marked.length < 2 ? "Select two experiments or more" : undefined}
              onClick={() => setComparing("1")}
            >
              Compare
            </button>
            <button type="button" class="quiet" onClick={() => setMarked("")}>
              <Icon name="close" /> Clear
            </button>
          </div>
        ) : null}
      </div>
    </section>
  );
}

interface Listed {
  all: Metadata[] | null;
  problem: string;
  canChange: boolean;
  /** Request the list again at once. */
  reload: () => void;
}

function useExperiments(): Listed {
  const { store } = useApp();
  const [canChange, setCanChange] = useState(false);
  const [loads, reload] = useReducer((count: number) => count + 1, 0);
  const [all, setAll] = useState<Metadata[] | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let ended = false;
    let timer: ReturnType<typeof setTimeout>;
    const load = async () => {
      try {
        const found = await store.client.installation<Metadata[]>("experiments-info");
        if (!ended) setAll(found);
        setProblem("");
      } catch (error) {
        setProblem(errorMessage(error));
      }
      if (!ended) timer = setTimeout(() => void load(), RETRY_MS);
    };
    void load();
    return () => {
      ended = true;
      clearTimeout(timer);
    };
  }, [store, loads]);
  useEffect(() => {
    void store.client.installation<{ canChange: boolean }>("session").then(
      (session) => setCanChange(session.canChange),
      () => undefined,
    );
  }, [store]);
  return { all, problem, canChange, reload: () => reload(null) };
}

function addressOf(one: Metadata, own: string): string {
  return one.id === own ? "oview" : `oview?id=${encodeURIComponent(one.id)}`;
}

/** Return the tags of the configuration and those of users. */
const tagsOf = (one: Metadata) => [...one.tag, ...one.remarks.tags];

const created = (one: Metadata) =>
  Object.values(one.trialCounts).reduce((sum, number) => sum + number, 0);

const VALUES: Record<string, (one: Metadata) => string | number | null> = {
  id: (one) => one.id,
  name: (one) => one.name || null,
  state: (one) => one.status,
  trials: created,
  best: (one) => (typeof one.bestValue === "number" ? one.bestValue : null),
  port: (one) => one.port,
  platform: (one) => one.platform,
  started: (one) => one.startTime,
  ended: (one) => (typeof one.endTime === "number" ? one.endTime : null),
  tag: (one) => tagsOf(one).join(" ") || null,
};

/** Return the column of boxes; beyond the most that one chart shows no further one is selected. */
function boxColumn(marked: readonly string[], mark: (id: string) => void): TableColumn<Metadata> {
  return {
    key: "",
    title: "",
    width: 44,
    sortable: false,
    cell: (one) => (
      <input
        type="checkbox"
        aria-label={`Select experiment ${one.id}`}
        checked={marked.includes(one.id)}
        disabled={!marked.includes(one.id) && marked.length >= MAX_COMPARED}
        onChange={() => mark(one.id)}
      />
    ),
  };
}

function columnsFor(own: string, act: (one: Metadata) => void): TableColumn<Metadata>[] {
  return [
    {
      key: "id",
      title: "Id",
      width: 96,
      cell: (one) => (
        <a class="mono" href={addressOf(one, own)}>
          {one.id}
        </a>
      ),
    },
    {
      key: "name",
      title: "Name",
      width: 190,
      cell: (one) => (
        <span title={one.remarks.note}>
          {one.remarks.starred ? <span aria-label="starred">★ </span> : null}
          {one.name || "–"}
        </span>
      ),
    },
    {
      key: "state",
      title: "State",
      width: 140,
      cell: (one) => <StatePill {...shownState(one.status, one.trialCounts)} />,
    },
    {
      key: "trials",
      title: "Trials",
      width: 140,
      cell: (one) => <TrialCounts counts={one.trialCounts} />,
    },
    {
      key: "best",
      title: "Best",
      width: 96,
      number: true,
      cell: (one) => formatValue(one.bestValue),
    },
    { key: "platform", title: "Platform", width: 84, cell: (one) => one.platform },
    {
      key: "port",
      title: "Port",
      width: 70,
      number: true,
      cell: (one) => (one.port && one.webuiUrl[0] ? <a href={one.webuiUrl[0]}>{one.port}</a> : "–"),
    },
    { key: "started", title: "Started", width: TIME_PX, cell: (one) => formatTime(one.startTime) },
    {
      key: "ended",
      title: "Ended",
      width: TIME_PX,
      cell: (one) => (typeof one.endTime === "number" ? formatTime(one.endTime) : "–"),
    },
    { key: "tag", title: "Tags", width: 110, cell: (one) => tagsOf(one).join(", ") || "–" },
    {
      key: "actions",
      title: "Actions",
      width: 70,
      sortable: false,
      cell: (one) => (
        <button
          type="button"
          class="quiet"
          aria-label={`Actions on experiment ${one.id}`}
          title="Actions"
          onClick={(event) => {
            event.stopPropagation();
            act(one);
          }}
        >
          <Icon name="dots" />
        </button>
      ),
    },
  ];
}

function TrialCounts({ counts }: { counts: Record<string, number> }) {
  const all = Object.values(counts).reduce((sum, number) => sum + number, 0);
  const parts = TRIAL_STATES.filter((state) => counts[state])
    .sort((a, b) => Number(LIVE.has(a)) - Number(LIVE.has(b)))
    .map((state) => ({ state, part: (counts[state] ?? 0) / Math.max(1, all) }));
  return (
    <span class="counts">
      <span>{all.toLocaleString("en")}</span>
      <Progress
        label="Trials by state"
        text={parts.map(({ state }) => `${counts[state]} ${state}`).join(", ")}
        parts={parts}
      />
    </span>
  );
}
