// Conversion between the page's URL and its location.

import type { PageLocation } from "./context";

const VIEWS = new Set(["oview", "detail", "charts", "architectures", "experiment"]);

/** Return the location of a URL; the base listener has only the list of experiments. */
export function locationOf(
  address: { pathname: string; search: string },
  bound: boolean,
): PageLocation {
  const last = address.pathname.split("/").pop() ?? "";
  const view = bound ? (VIEWS.has(last) ? last : "oview") : "experiment";
  return {
    view: view as PageLocation["view"],
    trial: new URLSearchParams(address.search).get("trial") ?? "",
  };
}

/** Return the query string of a location; `id` names the experiment on the base listener. */
export function search(place: PageLocation, id: string): string {
  const query = new URLSearchParams();
  if (id) query.set("id", id);
  if (place.trial) query.set("trial", place.trial);
  const text = query.toString();
  return text ? `?${text}` : "";
}
