// Lines of the parallel coordinates: which trials, in which order, with which rank.

import { type Goals, modeOf } from "../state/objectives";
import { outcomeOf, pointKind, ranksOf } from "../state/outcome";
import type { Trial } from "../state/trial";

export interface ParallelLines {
  /** Those without a rank first, then the worst, so that the best are drawn on top. */
  trials: Trial[];
  /** Ranks from 0 (worst) to 1 (best) by trial id, of feasible trials with a number. */
  ranks: Map<string, number>;
  /** Ids of the trials that show their best intermediate result. */
  dashed: Set<string>;
}

/** Return the lines of ended trials; `top` is the percentage of ranked ones, 100 shows all. */
export function linesOf(
  trials: Iterable<Trial>,
  goals: Goals,
  metric: string,
  top: number,
): ParallelLines {
  const mode = modeOf(goals, metric);
  const rows = [...trials]
    .map((trial) => ({ trial, kind: pointKind(trial, goals, metric) }))
    .filter((row) => row.kind !== null);
  const numbers = rows.map(({ trial, kind }) =>
    kind === "infeasible" ? null : (outcomeOf(trial, metric, mode)?.value ?? null),
  );
  const found = ranksOf(numbers, mode).map((rank, i) => ({ ...rows[i]!, rank }));
  const known = found
    .filter((row) => row.rank !== null)
    .sort((a, b) => b.rank! - a.rank! || a.trial.number - b.trial.number);
  const kept = known.slice(0, Math.max(1, Math.ceil((known.length * top) / 100))).reverse();
  const unknown = top < 100 ? [] : found.filter((row) => row.rank === null);
  const intermediate = kept.filter((row) => row.kind === "intermediate");
  return {
    trials: [...unknown, ...kept].map((row) => row.trial),
    ranks: new Map(kept.map((row) => [row.trial.id, row.rank!])),
    dashed: new Set(intermediate.map((row) => row.trial.id)),
  };
}
