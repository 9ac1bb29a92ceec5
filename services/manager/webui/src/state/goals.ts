// Hook for the goals of the experiment, with the directions that the user selected.

import { useMemo } from "preact/hooks";

import { type Goals, type Mode, goalsOf } from "./objectives";
import { usePreference } from "./preferences";
import type { Store } from "./store";

/** Return the goals, and a function that selects the direction of a metric. */
export function useGoals(store: Store): [Goals, (metric: string, mode: Mode | "") => void] {
  const key = `ways:${store.profile?.id}`;
  const [chosen, setChosen] = usePreference<Record<string, Mode>>(key, {});
  const goals = useMemo(
    () => goalsOf(store.profile, chosen),
    [store.profile?.revision, store.profile?.optimizeMode, chosen],
  );
  const choose = (metric: string, mode: Mode | "") => {
    const { [metric]: _before, ...others } = chosen;
    setChosen(mode ? { ...others, [metric]: mode } : others);
  };
  return [goals, choose];
}
