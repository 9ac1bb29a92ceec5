// View of machines: agents with platform, state and trials, and why a pool does not grow.

import { useEffect, useMemo, useState } from "preact/hooks";

import { errorMessage } from "../api/client";
import type { PoolState, Runner } from "../api/records";
import { Icon } from "../components/icon";
import { count, formatState, formatTime } from "../format";
import { useApp, useClock } from "../state/context";
import {
  type Machines as Listed,
  agentsText,
  agoText,
  fetchMachines,
  iconOf,
  matching,
  ordered,
} from "../state/machines";
import { sortOf, sortText } from "../state/page_location";
import { usePlaceValue } from "../state/place_value";
import { type TableColumn, VirtualTable } from "../table/virtual_table";

const RETRY_MS = 3_000;
/** Maximum number of trials to name in a row. */
const MAX_TRIALS = 4;

export function Machines() {
  const { listed, problem } = useMachines();
  const [search, setSearch] = usePlaceValue("q", "machines:search", "");
  const [order, setOrder] = usePlaceValue("sort", "machines:order", "id");
  const now = useClock(true);
  const sort = useMemo(() => sortOf(order), [order]);
  const rows = useMemo(
    () => ordered(matching(listed?.runners ?? [], search), sort.key, sort.descending),
    [listed, search, sort],
  );
  const all = listed?.runners.length ?? 0;
  return (
    <section class="card fill" aria-label="Machines">
      {listed?.pools.length ? <Pools pools={listed.pools} /> : null}
      <div class="tools">
        <input
          type="search"
          class="grow"
          placeholder="Search: agent, machine, pool, platform, state or trial"
          aria-label="Search machines"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
      </div>
      <VirtualTable
        label="Agents"
        name="agents"
        columns={columnsAt(now)}
        rows={rows}
        sort={sort}
        onSort={(key) =>
          setOrder(sortText({ key, descending: sort.key === key ? !sort.descending : false }))
        }
        onOpen={(one) => setSearch(one.id)}
        empty={
          listed === null
            ? problem || "Loading…"
            : all
              ? "No agent matches."
              : "There are no agents. An experiment starts those that it needs."
        }
      />
      <p class="table-foot muted" role="status">
        {listed ? `${rows.length < all ? `${rows.length} of ` : ""}${count(all, "agent")}` : ""}
        {problem && listed ? ` · ${problem}` : ""}
      </p>
    </section>
  );
}

/** Pools with their agents by state; those that do not grow say why. */
function Pools({ pools }: { pools: PoolState[] }) {
  return (
    <div class="scroll pools" role="region" aria-label="Pools" tabIndex={0}>
      <table>
        <caption class="visually-hidden">Pools</caption>
        <thead>
          <tr>
            <th scope="col">Pool</th>
            <th scope="col">Platform</th>
            <th scope="col">Agents</th>
            <th scope="col">Why it does not grow</th>
          </tr>
        </thead>
        <tbody>
          {pools.map((pool) => (
            <tr key={pool.name}>
              <th scope="row" class="mono">
                {pool.name}
              </th>
              <td>{pool.platforms.join(", ") || "–"}</td>
              <td>{agentsText(pool)}</td>
              <td>
                {pool.reason || "–"}
                {pool.remedy ? <span class="remedy">{pool.remedy}</span> : null}
                {pool.nextLaunch ? (
                  <span class="muted"> Next try: {formatTime(pool.nextLaunch)}.</span>
                ) : null}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function useMachines(): { listed: Listed | null; problem: string } {
  const { store } = useApp();
  const [listed, setListed] = useState<Listed | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let ended = false;
    let timer: ReturnType<typeof setTimeout>;
    const load = async () => {
      try {
        const found = await fetchMachines(store.client);
        if (!ended) setListed(found);
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
  }, [store]);
  return { listed, problem };
}

function columnsAt(now: number): TableColumn<Runner>[] {
  return [
    { key: "id", title: "Agent", width: 150, cell: (one) => <span class="mono">{one.id}</span> },
    { key: "machine", title: "Machine", width: 130, cell: (one) => one.hostName || "–" },
    { key: "state", title: "State", width: 120, cell: (one) => <State runner={one} /> },
    { key: "pool", title: "Pool", width: 110, cell: (one) => one.pool || "–" },
    { key: "platform", title: "Platform", width: 100, cell: (one) => one.platform || "–" },
    { key: "slots", title: "Slots", width: 70, number: true, cell: (one) => one.slots || "–" },
    { key: "gpus", title: "GPUs", width: 70, number: true, cell: (one) => one.gpuCount },
    { key: "trials", title: "Trials", width: 200, cell: (one) => <HeldTrials runner={one} /> },
    { key: "seen", title: "Last seen", width: 100, cell: (one) => agoText(one.lastSeen, now) },
    { key: "version", title: "Version", width: 110, cell: (one) => one.version || "–" },
    { key: "reason", title: "Reason", width: 220, sortable: false, cell: reasonOf },
  ];
}

const reasonOf = (one: Runner) => <span title={one.reason}>{one.reason || "–"}</span>;

function State({ runner }: { runner: Runner }) {
  return (
    <span class="row" data-agent-state={runner.state}>
      <Icon name={iconOf(runner.state)} /> {formatState(runner.state)}
    </span>
  );
}

/** The first trials of an agent as links, and how many more it has. */
function HeldTrials({ runner }: { runner: Runner }) {
  const shown = runner.trials.slice(0, MAX_TRIALS);
  const more = runner.trialCount - shown.length;
  if (!runner.trialCount) return <>–</>;
  return (
    <>
      {shown.map(({ experimentId, trialId }) => (
        <a
          key={`${experimentId}/${trialId}`}
          class="mono held"
          href={`detail?id=${encodeURIComponent(experimentId)}&trial=${encodeURIComponent(trialId)}`}
          aria-label={`Trial ${trialId} of experiment ${experimentId}`}
        >
          {trialId}
        </a>
      ))}
      {more > 0 ? `+ ${more}` : ""}
    </>
  );
}
