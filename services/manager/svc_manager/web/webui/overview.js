// The overview of one experiment.

import { bestSoFar } from "./chart.js";
import { flat, h, metricNumber, pill, show, showDuration, showTime } from "./dom.js";

const ORDER = ["SUCCEEDED", "EARLY_STOPPED", "FAILED", "USER_CANCELED", "SYS_CANCELED", "RUNNING", "UNKNOWN", "WAITING"];
const LIVE = new Set(["RUNNING", "WAITING", "UNKNOWN"]);
const COUNTING = new Set(["RUNNING", "NO_MORE_TRIAL", "TUNER_NO_MORE_TRIAL"]);
const UNIT_S = { s: 1, m: 60, h: 3600, d: 86400 };

/** Fill `main` once and return the function that redraws what changes, not what is typed. */
export function overviewView(main, store, { notice }) {
  const budgets = editor(store, notice);
  const cards = [
    ["w4", summary], ["w4", progress, budgets], ["w4", best], ["w8", chart], ["w4", top],
  ].map(([width, content, ...fixed]) => {
    const body = h("div");
    return { body, content, section: h("section", { class: `card ${width}` }, body, ...fixed) };
  });
  main.replaceChildren(h("div", { class: "grid" }, cards.map(({ section }) => section)));
  const draw = () => {
    if (!store.profile) return;
    const rows = ranked(store);
    budgets.hidden = !store.canChange || store.status.status === "VIEWED";
    for (const { body, content } of cards) body.replaceChildren(...content(store, rows).flat().filter(Boolean));
  };
  setInterval(() => { if (COUNTING.has(store.status?.status)) draw(); }, 1000); // the clock
  return draw;
}

/** Return the number each trial with a result is judged by, best first. */
export function ranked(store) {
  const sign = store.profile.optimizeMode === "minimize" ? 1 : -1;
  return [...store.trials.values()]
    .map((trial) => ({ trial, value: metricNumber(trial.finalMetricData?.[0]?.data) }))
    .filter((row) => row.value !== null)
    .sort((a, b) => sign * (a.value - b.value));
}

/** Return the link that opens one trial. */
export function trialLink(store, trial) {
  const query = new URLSearchParams(location.search);
  query.set("trial", trial.trialJobId);
  return h("a", { href: `detail?${query}` }, trial.trialJobId);
}

function facts(entries) {
  return h("dl", { class: "facts" }, entries.filter(([, value]) => value).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

function summary(store) {
  const { profile, status } = store;
  const services = [profile.params.trainingService].flat().map((service) => service.platform).join(", ");
  return [
    h("h2", {}, profile.params.experimentName || "Experiment"),
    h("p", {}, pill(status.status)),
    facts([
      ["Id", profile.id], ["Algorithm", profile.algorithm], ["Platform", services],
      ["Started", profile.startTime && showTime(profile.startTime)], ["Ended", profile.endTime && showTime(profile.endTime)],
      ["Folder", profile.logDir],
    ]),
    h("p", { class: "small" }, "Logs: ",
      h("a", { href: `${store.base}logs/nnimanager.log` }, "manager"), " · ",
      h("a", { href: `${store.base}logs/dispatcher.log` }, "dispatcher"), " · ",
      h("a", { href: `${store.base}experiment` }, "configuration")),
    profile.repeatable ? null : h("p", { class: "small muted" }, "Not repeatable: the algorithm answered differently on replay."),
    status.waitingFor ? h("p", { class: "wait" }, status.waitingFor) : null,
    status.errors.map((text) => h("pre", { class: "error" }, text)),
  ];
}

const BUDGETS = [
  ["Trial number", "MAX_TRIAL_NUM", "maxTrialNumber", (text) => Number(text)],
  ["Duration", "MAX_EXEC_DURATION", "maxExperimentDuration", (text) => text],
  ["Concurrency", "TRIAL_CONCURRENCY", "trialConcurrency", (text) => Number(text)],
];

/** Return the form that changes the budgets: one element for good, so that redrawing keeps what is typed. */
function editor(store, notice) {
  const inputs = BUDGETS.map(([label, , field]) => h("input", { name: field, "aria-label": label, size: 8 }));
  const save = async (event) => {
    event.preventDefault();
    try {
      for (const [i, [, type, field, read]] of BUDGETS.entries()) {
        const text = inputs[i].value.trim();
        if (!text || text === String(store.profile.params[field] ?? "")) continue;
        await store.send("PUT", `experiment?update_type=${type}`, { params: { [field]: read(text) } });
      }
      notice("");
      form.open = false;
    } catch (error) { notice(error.message); }
  };
  const form = h("details", { toggle: () => {
    if (form.open) BUDGETS.forEach(([, , field], i) => { inputs[i].value = store.profile.params[field] ?? ""; });
  } }, h("summary", {}, "Change"), h("form", { submit: save, class: "budgets" },
    BUDGETS.map(([label], i) => h("label", {}, label, " ", inputs[i])), h("button", {}, "Save")));
  return form;
}

function progress(store) {
  const { profile, counts } = store;
  const known = Object.entries(counts).filter(([, count]) => count > 0)
    .sort(([a], [b]) => ORDER.indexOf(a) - ORDER.indexOf(b));
  const created = known.reduce((sum, [, count]) => sum + count, 0);
  const done = known.reduce((sum, [state, count]) => sum + (LIVE.has(state) ? 0 : count), 0);
  const most = profile.params.maxTrialNumber;
  const limit = seconds(profile.params.maxExperimentDuration);
  const used = store.executionSeconds();
  return [
    h("h2", {}, "Trials"),
    h("div", { class: "big" }, String(done), h("span", { class: "muted" }, most ? ` / ${most}` : " done")),
    bar(known.map(([state, count]) => [state, count / (most ? Math.max(most, created) : created)]), `${done} of ${most || created} trials are done`),
    h("div", { class: "legend" }, known.map(([state, count]) => h("span", { "data-state": state }, `${state} ${count}`))),
    h("h2", {}, "\u00a0"),
    facts([
      ["Time used", showDuration(Math.round(used)) + (limit ? ` of ${showDuration(limit)}` : "")],
      ["Concurrency", String(profile.params.trialConcurrency)],
    ]),
    limit ? bar([["RUNNING", Math.min(1, used / limit)]], "Time used") : null,
  ];
}

function seconds(text) {
  return text ? parseFloat(text) * UNIT_S[text.slice(-1)] : null;
}

function bar(parts, label) {
  return h("div", { class: "bar", role: "img", "aria-label": label }, parts.map(([state, part]) => {
    const piece = h("span", { "data-state": state });
    piece.style.width = `${part * 100}%`;
    return piece;
  }));
}

function best(store, [first]) {
  const way = store.profile.optimizeMode === "minimize" ? "smallest" : "largest";
  const title = h("h2", {}, `Best result (${way})`);
  if (!first) return [title, h("p", { class: "muted" }, "No trial has a result yet.")];
  return [
    title,
    h("div", { class: "big" }, show(first.value)),
    h("p", {}, "Trial ", trialLink(store, first.trial)),
    facts(flat(first.trial.parameters).map(([name, value]) => [name, show(value)])),
  ];
}

function chart(store, rows) {
  const points = rows.map(({ trial, value }) => ({
    x: trial.sequenceId, y: value, label: `#${trial.sequenceId} ${trial.trialJobId}: ${show(value)}`,
  }));
  return [h("h2", {}, "Results"), bestSoFar(points, store.profile.optimizeMode === "minimize")];
}

function top(store, all) {
  const rows = all.slice(0, 10);
  return [h("h2", {}, "Top trials"), h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, ["No.", "Id", "Result"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, rows.map(({ trial, value }) => h("tr", {},
      h("td", {}, String(trial.sequenceId)), h("td", {}, trialLink(store, trial)), h("td", {}, show(value)))))))];
}
