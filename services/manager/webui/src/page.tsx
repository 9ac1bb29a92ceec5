// The page: header, selected view, and the details of a trial above it.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import type { Version } from "./api/records";
import { ConnectionBanner } from "./components/connection_banner";
import { deferred } from "./components/deferred";
import { Icon } from "./components/icon";
import { StatePill } from "./components/state_pill";
import { isArchitectureSpace } from "./state/architectures";
import { type App, PageContext, type PageLocation, useApp, useStore } from "./state/context";
import { fetchWhenIdle } from "./state/deferred_code";
import { shownState } from "./state/outcome";
import { locationOf, moved, search } from "./state/page_location";
import { usePreference } from "./state/preferences";
import { Store } from "./state/store";
import { versionWarnings } from "./state/versions";
import { MoreMenu } from "./views/more_menu";

/** Version of NNI that the page was built for; set by the build. */
declare const PAGE_VERSION: string;
const VIEWS = [
  ["oview", "Overview"],
  ["detail", "Trials"],
  ["charts", "Charts"],
  ["architectures", "Architectures"],
  ["machines", "Machines"],
  ["experiment", "All experiments"],
] as const;
/** Views that need no experiment. */
const OF_INSTALLATION: ReadonlySet<string> = new Set(["machines", "experiment"]);
/** Views that take the whole width of the window. */
const WIDE: ReadonlySet<string> = new Set(["detail", "charts", ...OF_INSTALLATION]);

// Each view is fetched while the experiment is, so that the first paint waits for no other one.
const VIEW_PARTS = {
  oview: deferred(() => import("./views/overview").then((it) => it.Overview)),
  detail: deferred(() => import("./views/trials").then((it) => it.Trials)),
  charts: deferred(() => import("./views/charts").then((it) => it.Charts)),
  architectures: deferred(() => import("./views/architectures").then((it) => it.Architectures)),
  machines: deferred(() => import("./views/machines").then((it) => it.Machines)),
  experiment: deferred(() => import("./views/experiments").then((it) => it.Experiments)),
};
const TrialDetails = deferred(() => import("./views/trial_details").then((it) => it.TrialDetails));

/** Fetch the code of the view that the address names; a failure waits for its use. */
export function fetchView(): void {
  void VIEW_PARTS[locationOf(location, true).view].code.fetch().catch(() => undefined);
}

export function Page({ first }: { first: Version }) {
  const [version, setVersion] = useState(first);
  const id = new URLSearchParams(location.search).get("id") ?? "";
  const bound = Boolean(id || version.experimentId);
  const store = useMemo(() => new Store(id), [id]);
  const [place, setPlace] = useState<PageLocation>(() => locationOf(location, bound));
  const latest = useRef(place);
  useEffect(() => fetchOthers(store), [store]);
  const [note, setNote] = useState<{ text: string; kind: "error" | "done" } | null>(null);
  const [theme, setTheme] = useTheme();

  useEffect(() => {
    const back = () => {
      latest.current = locationOf(location, bound);
      setPlace(latest.current);
    };
    addEventListener("popstate", back);
    return () => removeEventListener("popstate", back);
  }, [bound]);
  // Before the first paint: its requests are what the view waits for.
  useLayoutEffect(() => {
    if (bound) void store.open();
  }, [store, bound]);
  useEffect(() => {
    if (note?.kind !== "done") return undefined;
    const timer = setTimeout(() => setNote(null), 4000);
    return () => clearTimeout(timer);
  }, [note]);

  useEffect(() => {
    // After a lost connection the manager may have another version.
    let lost = false;
    return store.subscribe(() => {
      if (store.connection === "live" && lost)
        void store.client.installation<Version>("version").then(setVersion, () => undefined);
      lost = store.connection === "lost" || (lost && store.connection !== "live");
    });
  }, [store]);

  const app = useMemo((): App => {
    const address = (next: PageLocation) => next.view + search(next, id);
    return {
      store,
      place,
      theme,
      href: (to) => address(moved(place, to)),
      go: (to, how = "push") => {
        // Several changes may come before the next rendering, each based on the one before.
        const next = moved(latest.current, to);
        if (address(next) === address(latest.current)) return;
        latest.current = next;
        if (how === "push") history.pushState(null, "", address(next));
        else history.replaceState(null, "", address(next));
        setPlace(next);
      },
      notify: (text, kind = "error") => setNote({ text, kind }),
    };
  }, [store, place, theme, id]);

  return (
    <PageContext.Provider value={app}>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="bar">
        <span class="brand">
          <Logo />
          NNI
        </span>
        <Navigation bound={bound} />
        <span class="grow" />
        {bound ? <ExperimentBadge /> : null}
        {bound ? <ConnectionButton /> : null}
        {bound ? <MoreMenu version={version.version} /> : null}
        <button
          type="button"
          class="quiet"
          aria-label={theme === "dark" ? "Switch to light" : "Switch to dark"}
          title={theme === "dark" ? "Switch to light" : "Switch to dark"}
          onClick={() => setTheme(theme === "dark" ? "light" : "dark")}
        >
          <Icon name={theme === "dark" ? "sun" : "moon"} />
        </button>
      </header>
      {note ? (
        <div class={`notice ${note.kind}`} role={note.kind === "error" ? "alert" : "status"}>
          <span>{note.text}</span>
          <button type="button" class="quiet" aria-label="Dismiss" onClick={() => setNote(null)}>
            <Icon name="close" />
          </button>
        </div>
      ) : null}
      <VersionWarnings version={version} />
      {bound ? <ConnectionBanner own={version.experimentId} /> : null}
      <main class={WIDE.has(place.view) ? "content wide" : "content"} id="main" tabIndex={-1}>
        <View place={place} own={version.experimentId} />
      </main>
      {bound && place.trial ? <TrialDetails key={place.trial} id={place.trial} /> : null}
    </PageContext.Provider>
  );
}

/** Fetch the code of all parts once the trials are loaded: the manager may end before the page. */
function fetchOthers(store: Store): () => void {
  const end = store.subscribe(() => {
    if (!store.complete) return;
    end();
    void fetchWhenIdle([...Object.values(VIEW_PARTS), TrialDetails].map((part) => part.code));
  });
  return end;
}

/** Links to the views that the experiment has. */
function Navigation({ bound }: { bound: boolean }) {
  const store = useStore();
  const { place, href, go } = useApp();
  const isSearch = isArchitectureSpace(store.profile?.params["searchSpace"]);
  const views = VIEWS.filter(
    ([name]) => OF_INSTALLATION.has(name) || (bound && (isSearch || name !== "architectures")),
  );
  return (
    <nav aria-label="Pages">
      {views.map(([name, title]) => (
        <a
          key={name}
          href={href({ view: name, trial: "" })}
          aria-current={place.view === name ? "page" : undefined}
          onClick={(event) => {
            if (event.metaKey || event.ctrlKey || event.shiftKey) return;
            event.preventDefault();
            go({ view: name, trial: "" });
            scrollTo(0, 0);
          }}
        >
          {title}
        </a>
      ))}
    </nav>
  );
}

/** Warnings about incompatible versions; none in debug mode. */
function VersionWarnings({ version }: { version: Version }) {
  const store = useStore();
  const texts = store.profile?.params["debug"] ? [] : versionWarnings(PAGE_VERSION, version);
  const [hidden, setHidden] = useState("");
  const all = texts.join(" ");
  if (!all || hidden === all) return null;
  return (
    <div class="notice warning" role="status">
      <span>{all}</span>
      <button type="button" class="quiet" aria-label="Dismiss" onClick={() => setHidden(all)}>
        <Icon name="close" />
      </button>
    </div>
  );
}

/** The selected view, or the reason why it cannot be shown. */
function View({ place, own }: { place: PageLocation; own: string }) {
  const store = useStore();
  if (place.view === "experiment") {
    return (
      <>
        <h1 class="visually-hidden">All experiments</h1>
        <VIEW_PARTS.experiment own={own} />
      </>
    );
  }
  if (place.view === "machines") {
    return (
      <>
        <h1 class="visually-hidden">Machines</h1>
        <VIEW_PARTS.machines />
      </>
    );
  }
  if (!store.profile) {
    return store.problem ? (
      <div class="empty" role="alert">
        <h1>This experiment cannot be shown</h1>
        <p>{store.problem}</p>
        <p>
          <a href="experiment">All experiments</a>
        </p>
      </div>
    ) : (
      <p class="empty" role="status">
        Loading the experiment…
      </p>
    );
  }
  const Content = VIEW_PARTS[place.view];
  if (place.view === "oview") return <Content />;
  return (
    <>
      <h1 class="visually-hidden">{VIEWS.find(([name]) => name === place.view)![1]}</h1>
      <Content />
    </>
  );
}

/** Name and state of the experiment, and whether it is read only. */
function ExperimentBadge() {
  const store = useStore();
  const { notify } = useApp();
  const name = store.profile
    ? String(store.profile.params["experimentName"] ?? store.profile.id)
    : "";
  useEffect(() => {
    if (name) document.title = `${name} – NNI`;
  }, [name]);
  if (!store.profile || !store.status) return null;
  return (
    <span class="experiment-badge">
      <span class="experiment-name" title={store.profile.id}>
        {name}
      </span>
      <StatePill {...shownState(store.status.status, store.counts)} />
      {store.newestLoaded && !store.canChange ? (
        <button
          type="button"
          class="live"
          title={store.readOnlyReason}
          aria-label={`Read only. ${store.readOnlyReason}`}
          onClick={() => notify(store.readOnlyReason, "done")}
        >
          read only
        </button>
      ) : null}
    </span>
  );
}

const CONNECTIONS = {
  connecting: "connecting",
  live: "live",
  lost: "connection lost",
  paused: "paused",
};

/** Button with the state of the live updates; a click pauses and resumes them. */
function ConnectionButton() {
  const store = useStore();
  const paused = store.connection === "paused";
  const title = paused ? "Resume live updates" : "Pause live updates";
  return (
    <button
      type="button"
      class="live"
      data-connection={store.connection}
      title={title}
      aria-label={`${CONNECTIONS[store.connection]}. ${title}`}
      onClick={() => store.pause(!paused)}
    >
      <Icon name={paused ? "play" : "pause"} size={12} />
      <span role="status">{CONNECTIONS[store.connection]}</span>
    </button>
  );
}

function Logo() {
  return (
    <svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true">
      <rect width="24" height="24" rx="6" class="mark-back" />
      <path d="M5 17l4.500-5 3 2.500L19 6" class="mark-line" />
      <circle cx="19" cy="6" r="2" class="mark-dot" />
    </svg>
  );
}

type Theme = "light" | "dark";

/** Return the theme, by default the system's, and a function that changes it. */
function useTheme(): [Theme, (theme: Theme) => void] {
  const [chosen, setChosen] = usePreference<Theme | "">("theme", "");
  const system = useMemo(() => matchMedia("(prefers-color-scheme: dark)"), []);
  const [dark, setDark] = useState(system.matches);
  useEffect(() => {
    const changed = () => setDark(system.matches);
    system.addEventListener("change", changed);
    return () => system.removeEventListener("change", changed);
  }, [system]);
  const theme = chosen || (dark ? "dark" : "light");
  document.documentElement.dataset["theme"] = theme;
  return [theme, setChosen];
}
