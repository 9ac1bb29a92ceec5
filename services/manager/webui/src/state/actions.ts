// Actions on an experiment: which are possible in its state, and what each one does.

import type { Json } from "../api/records";

export type ActionName = "stop" | "resume" | "again" | "delete";

export interface Action {
  name: ActionName;
  label: string;
  /** What happens, as a sentence for the confirmation. */
  effect: string;
  /** Why it is not possible now; empty if it is. */
  reason: string;
  /** Whether it ends or deletes something. */
  danger: boolean;
}

/** Return all actions for an experiment whose status is `status`. */
export function actionsOf(status: string, live: number, ownAddress: boolean): Action[] {
  const stopped = status === "STOPPED";
  const closing = status === "STOPPING";
  const first = "The experiment is not stopped: stop it first.";
  const cancelled =
    live > 0 ? ` ${live} live ${live === 1 ? "trial is" : "trials are"} cancelled.` : "";
  const closes = ownAddress ? " This address is closed, and the page shows what it had last." : "";
  return [
    {
      name: "stop",
      label: status === "VIEWED" ? "Close" : "Stop",
      effect: `${status === "VIEWED" ? "Ends reading." : `No new trials start.${cancelled}`} All data are kept.${closes}`,
      reason: stopped
        ? "The experiment is stopped."
        : closing
          ? "The experiment is being stopped."
          : "",
      danger: true,
    },
    {
      name: "resume",
      label: "Resume",
      effect: "The search continues with the trials and budgets that it has.",
      reason: stopped ? "" : first,
      danger: false,
    },
    {
      name: "again",
      label: "Run again",
      effect:
        "A new experiment starts with this configuration, code folder and environment, and without trials.",
      reason: "",
      danger: false,
    },
    {
      name: "delete",
      label: "Delete",
      effect: "Log, trials, outputs and folder of the experiment are deleted for ever.",
      reason: stopped ? "" : first,
      danger: true,
    },
  ];
}

/** Return the search space of a text, or the problem with its place. */
export function readSpace(text: string): { value: Json } | { problem: string } {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch (error) {
    return {
      problem: `The search space must be JSON: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? { value }
    : { problem: "The search space must be a JSON object: one entry per parameter." };
}
