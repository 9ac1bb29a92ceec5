// Hook for the rows of the table of trials: columns, search, states and order.

import { useMemo } from "preact/hooks";

import { type Column, allColumns, sorted } from "./columns";
import { useStore } from "./context";
import { type Filter, parseFilter } from "./filter";
import { useGoals } from "./goals";
import { listOf, sortOf, sortText, type Sort } from "./page_location";
import { usePlaceValue } from "./place_value";
import { dimensionsOf, isNumeric } from "./space";
import type { Store } from "./store";
import type { Trial } from "./trial";

export interface TrialRows {
  columns: Column[];
  filter: Filter;
  /** Matching trials in the order of the table; none before the newest are loaded. */
  rows: Trial[];
  search: string;
  setSearch: (search: string) => void;
  states: string[];
  setStates: (states: string[]) => void;
  sort: Sort;
  setSort: (sort: Sort) => void;
}

/** Return the names of the parameters whose values are numbers. */
export function numericParameters(store: Store): Set<string> {
  const dimensions = dimensionsOf(store.profile?.params["searchSpace"]);
  return new Set(dimensions.filter(isNumeric).map((one) => one.name));
}

/** Return the rows of the table of trials; `now` ends the durations of running ones. */
export function useTrialRows(now: number): TrialRows {
  const store = useStore();
  const id = store.profile?.id ?? "";
  const [goals] = useGoals(store);
  const [search, setSearch] = usePlaceValue("q", `search:${id}`, "");
  const [stateText, setStateText] = usePlaceValue("state", `only:${id}`, "");
  const [order, setOrder] = usePlaceValue("sort", `order:${id}`, "-number");
  const columns = useMemo(
    () => allColumns(store.parameters(), store.metricKeys, goals, numericParameters(store)),
    [goals, store.parameterNames.size, store.metricKeys.size, store.profile?.revision],
  );
  const filter = useMemo(() => parseFilter(search, columns), [search, columns]);
  // The clock affects only the order by duration; other orders are not recomputed each second.
  const tick = sortOf(order).key === "duration" ? now : 0;
  const rows = useMemo(() => {
    if (!store.newestLoaded) return []; // a partial list would flicker
    const states = listOf(stateText);
    const matching = [...store.trials.values()].filter(
      (trial) => (states.length === 0 || states.includes(trial.state)) && filter.test(trial, now),
    );
    const { key, descending } = sortOf(order);
    const by = columns.find((one) => one.key === key) ?? columns[0]!;
    return sorted(matching, by, descending, now);
  }, [store.version, filter, stateText, order, columns, tick]);
  return {
    columns,
    filter,
    rows,
    search,
    setSearch,
    states: listOf(stateText),
    setStates: (states) => setStateText(states.join(",")),
    sort: sortOf(order),
    setSort: (sort) => setOrder(sortText(sort)),
  };
}
