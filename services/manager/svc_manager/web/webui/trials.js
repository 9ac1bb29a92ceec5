// The table of trials: filter, sort, pages, and one opened row with its details.

import { course } from "./chart.js";
import { flat, h, metricNumber, pill, show, showDuration } from "./dom.js";

const ROWS = 50;
const LIVE = new Set(["RUNNING", "WAITING", "UNKNOWN"]);
const COLUMNS = [
  ["No.", (trial) => trial.sequenceId],
  ["Id", (trial) => trial.trialJobId],
  ["Status", (trial) => trial.status],
  ["Duration", (trial) => duration(trial)],
  ["Result", (trial) => metricNumber(trial.finalMetricData?.[0]?.data)],
  ["Intermediate", (trial) => trial.intermediateCount],
  ["Parameters", (trial) => JSON.stringify(trial.parameters)],
];

/** Fill `main` and return the function that redraws the table. */
export function trialsView(main, store, { notice }) {
  const view = {
    sort: 0, down: true, page: 0, text: "", state: "", metrics: [],
    opened: new URLSearchParams(location.search).get("trial"),
  };
  const search = h("input", { type: "search", placeholder: "Id, number or parameter", "aria-label": "Search trials" });
  const states = h("select", { "aria-label": "State" },
    ["", "RUNNING", "WAITING", "SUCCEEDED", "FAILED", "EARLY_STOPPED", "USER_CANCELED", "SYS_CANCELED", "UNKNOWN"]
      .map((state) => h("option", { value: state }, state || "All states")));
  const table = h("div", { class: "scroll" });
  const pages = h("div", { class: "tools" });
  const draw = () => {
    const focused = main.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    table.replaceChildren(build(store, view, actions));
    pages.replaceChildren(...pager(store, view, draw));
    if (focused) main.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  };
  const actions = {
    draw,
    open: async (id) => {
      view.opened = view.opened === id ? null : id;
      view.metrics = [];
      draw();
      await loadMetrics(store, view);
      draw();
    },
    kill: async (id) => {
      if (!confirm(`Kill trial ${id}?`)) return;
      try { await store.send("DELETE", `trial-jobs/${id}`); notice(""); } catch (error) { notice(error.message); }
    },
  };
  search.addEventListener("input", () => { view.text = search.value.trim().toLowerCase(); view.page = 0; draw(); });
  states.addEventListener("change", () => { view.state = states.value; view.page = 0; draw(); });
  main.replaceChildren(h("section", { class: "card" }, h("div", { class: "tools" }, search, states), table, pages));
  if (view.opened) loadMetrics(store, view).then(draw);
  let known = -1;
  return () => {
    const count = store.trials.get(view.opened)?.intermediateCount;
    if (view.opened && count !== known) { known = count; loadMetrics(store, view).then(draw); }
    draw();
  };
}

async function loadMetrics(store, view) {
  const id = view.opened;
  if (!id) return;
  try {
    const metrics = await store.get(`metric-data/${id}?type=PERIODICAL`);
    if (view.opened === id) view.metrics = metrics;
  } catch { // an unknown trial: the table shows that it is not there
    view.metrics = [];
  }
}

function duration(trial) {
  return trial.startTime ? ((trial.endTime || Date.now()) - trial.startTime) / 1000 : null;
}

function chosen(store, view) {
  const value = COLUMNS[view.sort][1];
  const rows = [...store.trials.values()].filter((trial) => (!view.state || trial.status === view.state)
    && (!view.text || `${trial.sequenceId} ${trial.trialJobId} ${JSON.stringify(trial.parameters)}`.toLowerCase().includes(view.text)));
  return rows.map((trial) => [value(trial), trial]).sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null); // without a value: always last
    const order = typeof a === "number" ? a - b : String(a).localeCompare(String(b));
    return view.down ? -order : order;
  }).map(([, trial]) => trial);
}

function build(store, view, actions) {
  const rows = chosen(store, view);
  const opened = view.opened && store.trials.get(view.opened);
  const shown = rows.slice(view.page * ROWS, (view.page + 1) * ROWS);
  if (opened && !shown.includes(opened)) shown.unshift(opened);
  return h("table", {},
    h("thead", {}, h("tr", {}, COLUMNS.map(([name], i) => h("th", {
      scope: "col", "aria-sort": i === view.sort ? (view.down ? "descending" : "ascending") : null,
    }, h("button", { type: "button", "data-key": `column ${name}`, click: () => { view.down = view.sort === i ? !view.down : true; view.sort = i; actions.draw(); } },
      name + (i === view.sort ? (view.down ? " ↓" : " ↑") : "")))))),
    h("tbody", {}, shown.flatMap((trial) => [row(trial, view, actions), trial === opened ? detail(store, trial, view, actions) : null])));
}

function row(trial, view, actions) {
  const seconds = duration(trial);
  return h("tr", {},
    h("td", {}, String(trial.sequenceId)),
    h("td", {}, h("button", { type: "button", class: "quiet", "data-key": trial.trialJobId, "aria-expanded": String(view.opened === trial.trialJobId), click: () => actions.open(trial.trialJobId) }, trial.trialJobId)),
    h("td", {}, pill(trial.status)),
    h("td", {}, seconds === null ? "–" : showDuration(seconds)),
    h("td", {}, show(trial.finalMetricData?.[0]?.data)),
    h("td", {}, String(trial.intermediateCount)),
    h("td", {}, h("div", { class: "params" }, flat(trial.parameters).map(([name, value]) => `${name}=${show(value)}`).join("  "))));
}

function detail(store, trial, view, actions) {
  const file = (name) => h("a", { href: `${store.base}trial-file/${trial.trialJobId}/${name}` }, name);
  return h("tr", { class: "detail" }, h("td", { colspan: COLUMNS.length }, h("div", { class: "columns" },
    h("div", {},
      trial.message ? h("pre", { class: "error" }, trial.message) : null,
      h("p", {}, file("trial.log"), " · ", file("stdout"), " · ", file("stderr"), " · ",
        h("button", { type: "button", class: "quiet", click: () => navigator.clipboard.writeText(JSON.stringify(trial.parameters)) }, "Copy parameters"),
        LIVE.has(trial.status) ? h("button", {
          type: "button", class: "danger", disabled: !store.canChange,
          title: store.canChange ? null : "Open the address that nnictl printed to change things", click: () => actions.kill(trial.trialJobId),
        }, "Kill") : null),
      h("pre", {}, JSON.stringify(trial.parameters, null, 2)),
      trial.provenance ? h("pre", { class: "muted" }, JSON.stringify(trial.provenance, null, 1)) : null),
    h("div", {}, course(view.metrics.map((metric) => metricNumber(metric.data) ?? NaN))))));
}

function pager(store, view, draw) {
  const count = chosen(store, view).length;
  const last = Math.max(0, Math.ceil(count / ROWS) - 1);
  view.page = Math.min(view.page, last);
  const step = (by) => () => { view.page += by; draw(); };
  return [
    h("button", { type: "button", "data-key": "back", disabled: view.page === 0, click: step(-1) }, "‹ Back"),
    h("span", { class: "muted" }, `${count} trials, page ${view.page + 1} of ${last + 1}`),
    h("button", { type: "button", "data-key": "next", disabled: view.page === last, click: step(1) }, "Next ›"),
  ];
}
