// Menu "More" and its dialogs: configuration, search space, logs, summary, TensorBoards, about.

import { useState } from "preact/hooks";

import { type Page, errorMessage } from "../api/client";
import type { Json, Metric, Profile, Trial } from "../api/records";
import { CopyButton } from "../components/copy_button";
import { deferred } from "../components/deferred";
import { Dialog } from "../components/dialog";
import { Menu } from "../components/menu";
import { saveFile } from "../components/save_file";
import { Tabs } from "../components/tabs";
import { useApp, useStore } from "../state/context";
import type { Store } from "../state/store";
import { TensorBoards } from "./tensorboards";

const LogView = deferred(() => import("../components/log_view").then((it) => it.LogView));
type Panel = "config" | "space" | "logs" | "tensorboards" | "about";
const LOGS = [
  ["nnimanager.log", "Manager"],
  ["dispatcher.log", "Dispatcher"],
] as const;

export function MoreMenu({ version }: { version: string }) {
  const store = useStore();
  const { notify } = useApp();
  const [panel, setPanel] = useState<Panel | null>(null);
  const close = () => setPanel(null);
  const { modelGraph: _, ...params } = store.profile?.params ?? {}; // a picture shows it
  const item = (name: Panel, text: string, closeMenu: () => void) => (
    <button
      type="button"
      class="menu-item"
      onClick={() => {
        closeMenu();
        setPanel(name);
      }}
    >
      {text}
    </button>
  );
  return (
    <>
      <Menu label="More" align="right">
        {(closeMenu) => (
          <>
            {item("config", "Configuration", closeMenu)}
            {item("space", "Search space", closeMenu)}
            {item("logs", "Logs of manager and dispatcher", closeMenu)}
            <button
              type="button"
              class="menu-item"
              onClick={() => {
                closeMenu();
                void download(store).catch((error: unknown) => notify(errorMessage(error)));
              }}
            >
              Download a summary
            </button>
            {item("tensorboards", "TensorBoards", closeMenu)}
            {item("about", "About", closeMenu)}
          </>
        )}
      </Menu>
      {panel === "config" ? (
        <JsonPanel title="Configuration" data={params} onClose={close} />
      ) : null}
      {panel === "space" ? (
        <JsonPanel title="Search space" data={params["searchSpace"] ?? {}} onClose={close} />
      ) : null}
      {panel === "logs" ? <LogPanel onClose={close} /> : null}
      {panel === "tensorboards" ? <TensorBoards onClose={close} /> : null}
      {panel === "about" ? <About version={version} onClose={close} /> : null}
    </>
  );
}

function JsonPanel({ title, data, onClose }: { title: string; data: Json; onClose: () => void }) {
  const text = JSON.stringify(data, null, 2);
  return (
    <Dialog title={title} onClose={onClose} actions={<CopyButton label="Copy" text={text} />}>
      <pre class="code" tabIndex={0} aria-label={title}>
        {text}
      </pre>
    </Dialog>
  );
}

function LogPanel({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState<(typeof LOGS)[number][0]>("nnimanager.log");
  return (
    <Dialog title="Logs" onClose={onClose}>
      <Tabs label="Log" tabs={LOGS} current={name} onChange={setName}>
        <LogView path={`logs/${name}`} follow />
      </Tabs>
    </Dialog>
  );
}

function About({ version, onClose }: { version: string; onClose: () => void }) {
  return (
    <Dialog title="About" kind="modal" onClose={onClose}>
      <p>NNI {version}</p>
      <p>
        <a href="api/v1/nni/openapi.json">REST API of this address (OpenAPI document)</a>
      </p>
      <p class="muted">
        When you report a problem, attach the summary and the logs (menu “More”) and the output of{" "}
        <code>nnictl doctor</code>.
      </p>
    </Dialog>
  );
}

/** Return the records of all trials, in the order of their numbers. */
async function allTrials(store: Store): Promise<Trial[]> {
  const found: Trial[] = [];
  let path: string | null = "trial-jobs?limit=1000&order=sequence";
  while (path) {
    const page: Page<Trial> = await store.client.page<Trial>(path);
    found.push(...page.items);
    path = page.next;
  }
  return found;
}

/** Save configuration, trials and intermediate results as one JSON file. */
async function download(store: Store): Promise<void> {
  const [profile, metrics, trials] = await Promise.all([
    store.client.get<Profile>("experiment"),
    store.client.get<Metric[]>("metric-data"),
    allTrials(store), // the store may still be loading
  ]);
  const summary = {
    experimentParameters: profile,
    trialMessage: trials.map((trial) => ({ ...trial, intermediate: [] as Json[] })),
  };
  const byId = new Map(summary.trialMessage.map((trial) => [trial.trialJobId, trial.intermediate]));
  for (const one of metrics)
    if (one.type === "PERIODICAL") byId.get(one.trialJobId)?.push(one.data);
  const data = new Blob([JSON.stringify(summary, null, 1)], { type: "application/json" });
  saveFile(data, `experiment-${profile.id}.json`);
}
