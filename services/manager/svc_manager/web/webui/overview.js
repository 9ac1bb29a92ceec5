// The overview of one experiment.

import { bestSoFar } from "./chart.js";
import { flat, h, metricNumber, pill, show, showDuration, showTime } from "./dom.js";

const ORDER = ["SUCCEEDED", "EARLY_STOPPED", "FAILED", "USER_CANCELED", "SYS_CANCELED", "RUNNING", "UNKNOWN", "WAITING"];
const LIVE = new Set(["RUNNING", "WAITING", "UNKNOWN"]);
const UNIT_S = { s: 1, m: 60, h: 3600, d: 86400 };

/** Fill `main` and return the function that redraws it. */
export function overviewView(main, store) {
  return () => main.replaceChildren(h("div", { class: "grid" },
    summary(store), progress(store), best(store), chart(store), top(store)));
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

function card(width, title, ...content) {
  return h("section", { class: `card ${width}` }, h("h2", {}, title), ...content);
}

function facts(entries) {
  return h("dl", { class: "facts" }, entries.filter(([, value]) => value).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

function summary(store) {
  const { profile, status } = store;
  const services = [profile.params.trainingService].flat().map((service) => service.platform).join(", ");
  return card("w4", profile.params.experimentName || "Experiment",
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
    status.errors.map((text) => h("pre", { class: "error" }, text)));
}

function progress(store) {
  const { profile, counts } = store;
  const known = Object.entries(counts).filter(([, count]) => count > 0)
    .sort(([a], [b]) => ORDER.indexOf(a) - ORDER.indexOf(b));
  const created = known.reduce((sum, [, count]) => sum + count, 0);
  const done = known.reduce((sum, [state, count]) => sum + (LIVE.has(state) ? 0 : count), 0);
  const most = profile.params.maxTrialNumber;
  const limit = seconds(profile.params.maxExperimentDuration);
  return card("w4", "Trials",
    h("div", { class: "big" }, String(done), h("span", { class: "muted" }, most ? ` / ${most}` : " done")),
    bar(known.map(([state, count]) => [state, count / (most ? Math.max(most, created) : created)]), `${done} of ${most || created} trials are done`),
    h("div", { class: "legend" }, known.map(([state, count]) => h("span", { "data-state": state }, `${state} ${count}`))),
    h("h2", {}, "\u00a0"),
    facts([
      ["Time used", showDuration(profile.execDuration) + (limit ? ` of ${showDuration(limit)}` : "")],
      ["Concurrency", String(profile.params.trialConcurrency)],
    ]),
    limit ? bar([["RUNNING", Math.min(1, profile.execDuration / limit)]], "Time used") : null);
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

function best(store) {
  const [first] = ranked(store);
  const way = store.profile.optimizeMode === "minimize" ? "smallest" : "largest";
  if (!first) return card("w4", `Best result (${way})`, h("p", { class: "muted" }, "No trial has a result yet."));
  return card("w4", `Best result (${way})`,
    h("div", { class: "big" }, show(first.value)),
    h("p", {}, "Trial ", trialLink(store, first.trial)),
    facts(flat(first.trial.parameters).map(([name, value]) => [name, show(value)])));
}

function chart(store) {
  const points = ranked(store).map(({ trial, value }) => ({
    x: trial.sequenceId, y: value, label: `#${trial.sequenceId} ${trial.trialJobId}: ${show(value)}`,
  }));
  return card("w8", "Results", bestSoFar(points, store.profile.optimizeMode === "minimize"));
}

function top(store) {
  const rows = ranked(store).slice(0, 10);
  return card("w4", "Top trials", h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, ["No.", "Id", "Result"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, rows.map(({ trial, value }) => h("tr", {},
      h("td", {}, String(trial.sequenceId)), h("td", {}, trialLink(store, trial)), h("td", {}, show(value))))))));
}
