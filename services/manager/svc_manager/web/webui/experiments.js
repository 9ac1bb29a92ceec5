// The list of all experiments of this installation.

import { h, pill, show, showTime } from "./dom.js";

/** Fill `main` once; it is a list to go on from, reload it to see changes. */
export async function experimentsView(main, own) {
  const all = await (await fetch("api/v1/nni/experiments-info")).json();
  const text = h("input", { type: "search", placeholder: "Id, name or state", "aria-label": "Search experiments" });
  const body = h("tbody");
  const draw = () => {
    const wanted = text.value.trim().toLowerCase();
    const rows = all.filter((one) => `${one.id} ${one.name} ${one.status}`.toLowerCase().includes(wanted));
    body.replaceChildren(...rows.map((one) => row(one, own)));
  };
  text.addEventListener("input", draw);
  const names = ["Id", "Name", "Status", "Trials", "Best", "Port", "Platform", "Started", "Ended"];
  main.replaceChildren(h("section", { class: "card" },
    h("div", { class: "tools" }, text, h("span", { class: "muted" }, `${all.length} experiments`)),
    h("div", { class: "scroll" }, h("table", {},
      h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name)))), body))));
  draw();
}

function row(one, own) {
  const count = Object.values(one.trialCounts).reduce((sum, number) => sum + number, 0);
  return h("tr", {},
    h("td", {}, h("a", { href: one.id === own ? "oview" : `oview?id=${one.id}` }, one.id)),
    h("td", {}, one.name || "–"), h("td", {}, pill(one.status)), h("td", {}, String(count)),
    h("td", {}, show(one.bestValue)), h("td", {}, one.port ? String(one.port) : "–"), h("td", {}, one.platform),
    h("td", {}, showTime(one.startTime)), h("td", {}, typeof one.endTime === "number" ? showTime(one.endTime) : "–"));
}
