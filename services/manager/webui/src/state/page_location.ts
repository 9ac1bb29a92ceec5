// Where a person is, as the address says it.

import type { Place } from "./context";

const VIEWS = new Set(["oview", "detail", "charts", "experiment"]);

/** Return the place of an address; the base address knows only the list of experiments. */
export function placeOf(address: { pathname: string; search: string }, bound: boolean): Place {
  const last = address.pathname.split("/").pop() ?? "";
  const view = bound ? (VIEWS.has(last) ? last : "oview") : "experiment";
  return {
    view: view as Place["view"],
    trial: new URLSearchParams(address.search).get("trial") ?? "",
  };
}

/** Return the query of a place; `id` names the experiment where the address does not. */
export function search(place: Place, id: string): string {
  const query = new URLSearchParams();
  if (id) query.set("id", id);
  if (place.trial) query.set("trial", place.trial);
  const text = query.toString();
  return text ? `?${text}` : "";
}
