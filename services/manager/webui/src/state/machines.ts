// Machines: agents that run trials, and the pools that they belong to.

import type { Client } from "../api/client";
import type { PoolState, Runner } from "../api/records";
import { formatState } from "../format";

export interface Machines {
  runners: Runner[];
  pools: PoolState[];
}

/** Request all agents and pools. */
export async function fetchMachines(client: Client): Promise<Machines> {
  const [runners, pools] = await Promise.all([
    client.installation<Runner[]>("runners"),
    client.installation<PoolState[]>("pools"),
  ]);
  return { runners, pools };
}

/** States of agents that run trials now. */
const WORKING = new Set(["CONNECTED", "RUNNING"]);

/** Return the icon of an agent's state, which tells it apart without its colour. */
export function iconOf(state: string): "check" | "dots" | "question" | "pause" {
  if (WORKING.has(state)) return "check";
  if (state === "SILENT") return "question";
  return state === "DRAINING" ? "pause" : "dots";
}

/** Return the agents that contain all words of a search. */
export function matching(runners: Runner[], text: string): Runner[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return runners.filter((one) => {
    const all = [
      one.id,
      one.pool,
      one.platform,
      one.hostName,
      one.state,
      one.reason,
      ...one.trials.flatMap(({ experimentId, trialId }) => [experimentId, trialId]),
    ]
      .join(" ")
      .toLowerCase();
    return words.every((word) => all.includes(word));
  });
}

/** Value of an agent to sort by a column; null sorts last. */
export const RUNNER_VALUES: Record<string, (one: Runner) => string | number | null> = {
  id: (one) => one.id,
  machine: (one) => one.hostName || null,
  pool: (one) => one.pool,
  platform: (one) => one.platform || null,
  state: (one) => one.state,
  slots: (one) => one.slots || null,
  gpus: (one) => one.gpuCount,
  trials: (one) => one.trialCount,
  seen: (one) => one.lastSeen,
  version: (one) => one.version || null,
};

/** Return the agents in the order of a column. */
export function ordered(runners: Runner[], key: string, descending: boolean): Runner[] {
  const value = RUNNER_VALUES[key] ?? RUNNER_VALUES["id"]!;
  const sign = descending ? -1 : 1;
  return [...runners].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    return x < y ? -sign : x > y ? sign : 0;
  });
}

/** Return the numbers of a pool's agents by state in words: `2 running, 1 pending`. */
export function agentsText(pool: PoolState): string {
  const parts = Object.entries(pool.agentCounts).map(
    ([state, count]) => `${count} ${formatState(state)}`,
  );
  return parts.join(", ") || "no agents";
}

/** Return how long ago an agent was heard from, in words. */
export function agoText(lastSeen: number | null, now: number): string {
  if (lastSeen === null) return "never";
  const seconds = Math.max(0, Math.round((now - lastSeen) / 1000));
  if (seconds < 10) return "just now";
  if (seconds < 120) return `${seconds} s ago`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min ago`;
  return `${Math.round(seconds / 3600)} h ago`;
}
