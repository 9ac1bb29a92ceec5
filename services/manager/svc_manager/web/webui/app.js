// Starts the page: which experiment, which view, and redrawing when something changed.

import { h } from "./dom.js";
import { Store } from "./store.js";
import { experimentsView } from "./experiments.js";
import { overviewView } from "./overview.js";
import { trialsView } from "./trials.js";

const VIEWS = { oview: ["Overview", overviewView], detail: ["Trials", trialsView], experiment: ["Experiments", experimentsView] };
const query = new URLSearchParams(location.search);
const main = document.getElementById("main");

function notice(text) {
  const box = document.getElementById("notice");
  box.hidden = !text;
  box.textContent = text || "";
}

function wireTheme() {
  const apply = (theme) => { if (theme) document.documentElement.dataset.theme = theme; };
  apply(localStorage.getItem("nni-theme"));
  document.getElementById("theme").addEventListener("click", () => {
    const dark = document.documentElement.dataset.theme
      ? document.documentElement.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    apply(dark ? "light" : "dark");
    localStorage.setItem("nni-theme", dark ? "light" : "dark");
  });
}

function tabs(current, id, bound) {
  const search = id ? `?id=${encodeURIComponent(id)}` : "";
  const shown = bound ? Object.entries(VIEWS) : [["experiment", VIEWS.experiment]];
  document.getElementById("tabs").replaceChildren(...shown.map(([name, [title]]) =>
    h("a", { href: name + search, "aria-current": name === current ? "page" : null }, title)));
}

async function start() {
  wireTheme();
  const about = await (await fetch("api/v1/nni/version")).json();
  document.getElementById("version").textContent = about.version;
  const id = query.get("id") || "";
  const bound = Boolean(id || about.experimentId);
  const last = location.pathname.split("/").pop();
  const name = bound ? (last in VIEWS ? last : "oview") : "experiment";
  tabs(name, id, bound);
  if (name === "experiment") {
    document.title = "Experiments – NNI";
    await VIEWS.experiment[1](main, about.experimentId);
    return;
  }
  const store = new Store(id);
  const draw = VIEWS[name][1](main, store, { notice });
  store.addEventListener("change", () => {
    const live = document.getElementById("live");
    live.classList.toggle("on", store.live);
    live.textContent = store.live ? "live" : "not connected";
    if (store.profile) {
      document.title = `${store.profile.params.experimentName || store.profile.id} – NNI`;
      draw();
    }
  });
  await store.open();
}

start().catch((error) => notice(`The manager does not answer as expected: ${error.message}`));
