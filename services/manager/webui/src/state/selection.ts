// Selection of trials in the table, which stands in the address as a list of ids.

import type { Trial } from "./trial";

/** Maximum number of selected trials: the address holds their ids. */
export const MAX_SELECTED = 200;

/** How many of the rows are selected. */
export type Selected = "none" | "some" | "all";

/** Return whether all rows are selected; of many only the first ones can be. */
export function selectedOf(rows: readonly Trial[], marked: ReadonlySet<string>): Selected {
  const first = rows.slice(0, MAX_SELECTED);
  const count = first.filter((trial) => marked.has(trial.id)).length;
  if (first.length > 0 && count === first.length) return "all";
  return marked.size > 0 ? "some" : "none";
}

/** Return the ids after a click on the box of all rows: the first rows, or none if they were. */
export function toggledAll(rows: readonly Trial[], marked: ReadonlySet<string>): string[] {
  if (selectedOf(rows, marked) === "all") return [];
  return rows.slice(0, MAX_SELECTED).map((trial) => trial.id);
}
