// Conversion between the page's URL and its location.

/** Selected view, open trial, and what is selected in the view. */
export interface PageLocation {
  view: View;
  /** Id of the trial whose details are open; empty: none. */
  trial: string;
  /** Values of the view's fields that differ from the defaults, by field. */
  values: Values;
}

export type View = "oview" | "detail" | "charts" | "architectures" | "machines" | "experiment";

/** Names of fields in the query of the address. */
export type Field =
  | "q" // search
  | "state" // selected states
  | "sort" // column; with - descending
  | "select" // ids of the selected trials
  | "compare" // 1: the comparison of the selected trials is open
  | "chart" // tab of the charts
  | "metric"
  | "x" // column of an axis
  | "y"
  | "surface" // 1: the surface of the result below a scatter chart
  | "axes" // of the parallel coordinates
  | "params" // parameters of the slices
  | "span" // range of time of the timeline
  | "best" // 0: without the best so far
  | "log" // 1: logarithmic scale
  | "step" // filter of intermediate results: number, smallest and largest value
  | "low"
  | "high"
  | "cols" // columns of the table, in their order
  | "pin" // number of columns that stay while the table is scrolled
  | "by" // what experiments are compared over
  | "platform"
  | "age"
  | "graph" // path to the open graph of a network
  | "model" // id of the trial whose choices the network shows
  | "tab"; // tab of the details of a trial

export type Values = Partial<Record<Field, string>>;

const FIELDS: Record<View, readonly Field[]> = {
  oview: [],
  detail: ["q", "state", "sort", "select", "compare", "cols", "pin"],
  charts: [
    "chart",
    "metric",
    "x",
    "y",
    "surface",
    "axes",
    "params",
    "span",
    "best",
    "log",
    "step",
    "low",
    "high",
  ],
  architectures: ["graph", "model"],
  machines: ["q", "sort"],
  experiment: ["q", "state", "sort", "platform", "age", "select", "compare", "metric", "by"],
};

function fieldsOf({ view, trial }: { view: View; trial: string }): readonly Field[] {
  return trial ? [...FIELDS[view], "tab"] : FIELDS[view];
}

/** Change of a location. */
export interface Move {
  view?: View;
  trial?: string;
  /** Values to change. */
  values?: Values;
}

/** Return the location after a change; another view begins without values. */
export function moved(from: PageLocation, to: Move): PageLocation {
  const view = to.view ?? from.view;
  const kept = view === from.view ? from.values : {};
  return { view, trial: to.trial ?? from.trial, values: { ...kept, ...to.values } };
}

/** Return the location of a URL; the base listener has only machines and experiments. */
export function locationOf(
  address: { pathname: string; search: string },
  bound: boolean,
): PageLocation {
  const last = address.pathname.split("/").pop() ?? "";
  const view: View = bound
    ? Object.hasOwn(FIELDS, last)
      ? (last as View)
      : "oview"
    : last === "machines"
      ? "machines"
      : "experiment";
  const query = new URLSearchParams(address.search);
  const trial = query.get("trial") ?? "";
  const values: Values = {};
  for (const field of fieldsOf({ view, trial })) {
    const value = query.get(field);
    if (value !== null) values[field] = value;
  }
  return { view, trial, values };
}

/** Return the query string of a location; `id` names the experiment on the base listener. */
export function search(place: PageLocation, id: string): string {
  const query = new URLSearchParams();
  if (id) query.set("id", id);
  if (place.trial) query.set("trial", place.trial);
  for (const field of fieldsOf(place)) {
    const value = place.values[field];
    if (value !== undefined) query.set(field, value);
  }
  const text = query.toString();
  return text ? `?${text}` : "";
}

/** Order of a table. */
export interface Sort {
  key: string;
  descending: boolean;
}

/** Return the text of an order in the address: `-result` is descending. */
export function sortText({ key, descending }: Sort): string {
  return descending ? `-${key}` : key;
}

/** Return the order of a text in the address. */
export function sortOf(text: string): Sort {
  return { key: text.replace(/^-/, ""), descending: text.startsWith("-") };
}

/** Return the parts of a list in the address. */
export function listOf(text: string): string[] {
  return text.split(",").filter(Boolean);
}
