// What the page knows about one experiment: fetched once, then kept up to date by its events.

import { Client, isAbort, words } from "../api/client";
import type { Json, Profile, Status, Trial as TrialRecord } from "../api/records";
import { dimensionsOf } from "./space";
import { type Trial, trialOf } from "./trial";

/** Changes are gathered so long before they are fetched and drawn, in ms. */
const SETTLE_MS = 250;
/** Most trials that one request names. */
const MOST_IDS = 200;
const PAGE = 1_000;
const AGAIN_MS = 2_000;
const TOP = 20;
/** States in which the experiment's clock runs. */
const COUNTING = new Set(["RUNNING", "NO_MORE_TRIAL", "TUNER_NO_MORE_TRIAL"]);
const EVENTS = [
  "trial_scheduled",
  "trial_started",
  "metric_reported",
  "trial_stop_requested",
  "trial_lost",
  "trial_ended",
  "trial_unknown",
  "trial_waits",
  "algorithm_started",
  "algorithm_failed",
  "algorithm_diverged",
  "budget_changed",
  "search_space_changed",
  "data_imported",
  "custom_trial_added",
  "experiment_state_changed",
  "experiment_ended",
  "listener_opened",
  "listener_closed",
  "parameters_generated",
];

/** How current the page is. */
export type Connection = "connecting" | "live" | "lost" | "paused";

/** An intermediate result as it arrives. */
export interface Report {
  trialId: string;
  sequence: number;
  data: Json;
}

export class Store {
  readonly client: Client;
  profile: Profile | null = null;
  status: Status | null = null;
  counts: Record<string, number> = {};
  canChange = false;
  connection: Connection = "connecting";
  /** What went wrong at last, in words; empty if nothing. */
  problem = "";
  readonly trials = new Map<string, Trial>();
  /** Names of parameters and of metrics, in the order in which they were seen. */
  readonly parameterNames = new Set<string>();
  readonly metricKeys = new Set<string>(["default"]);
  /** Whether all trials that existed when the page was opened are here. */
  complete = false;
  /** Whether the best trials are here. */
  judged = false;
  /** Whether the newest trials are here; before that only some of the best ones are. */
  listed = false;
  /** Grows with each change; what is derived is computed again when it has grown. */
  version = 0;

  private asked = 0;
  private readonly changed = new Set<string>();
  private timer: ReturnType<typeof setTimeout> | null = null;
  private source: EventSource | null = null;
  private readonly listeners = new Set<() => void>();
  private readonly reporters = new Set<(report: Report) => void>();

  constructor(id: string) {
    this.client = new Client(id);
  }

  /** Follow what happens from now on and fetch everything; `problem` says what went wrong. */
  async open(): Promise<void> {
    const following = this.follow();
    await this.load(following);
  }

  /** Fetch everything, the list of trials only once `following` has begun. */
  private async load(following: Promise<void>): Promise<void> {
    try {
      await this.loadAll(following);
    } catch (error) {
      this.fail(error);
    }
  }

  private async loadAll(following: Promise<void>): Promise<void> {
    const session = this.client.installation<{ canChange: boolean }>("session");
    // The best ones come first: the overview is whole long before all trials are here.
    const best = this.refresh().then(() => this.loadBest());
    this.canChange = (await session).canChange;
    await best;
    this.tell();
    await following; // before the list is fetched, so that nothing happens unseen in between
    this.settle();
    await this.loadTrials();
  }

  /** Call `listener` after each change; returns what ends that. */
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Call `take` with each intermediate result as it arrives; returns what ends that. */
  onReport(take: (report: Report) => void): () => void {
    this.reporters.add(take);
    return () => this.reporters.delete(take);
  }

  /** Return the names of the parameters that trials have, in the order of the search space. */
  parameters(): string[] {
    const space = dimensionsOf(this.profile?.params["searchSpace"]).map((one) => one.name);
    const known = space.filter((name) => this.parameterNames.has(name));
    return [...new Set([...known, ...this.parameterNames])];
  }

  /** Whether the experiment may be changed from here. */
  get editable(): boolean {
    return this.canChange && this.status?.status !== "VIEWED";
  }

  /** Why it may not be changed, in words; empty if it may. */
  get readOnlyReason(): string {
    if (this.status?.status === "VIEWED") return "The experiment is open for reading only.";
    return this.canChange
      ? ""
      : "Open the address that `nnictl webui url` prints to change things.";
  }

  /** Return the time used so far, in seconds; it runs on between two answers. */
  executionSeconds(now = Date.now()): number {
    const runs = COUNTING.has(this.status?.status ?? "");
    return (this.profile?.execDuration ?? 0) + (runs ? Math.max(0, now - this.asked) / 1000 : 0);
  }

  /** Stop or go on following; what happened meanwhile is fetched then. */
  pause(paused: boolean): void {
    this.connection = paused ? "paused" : "connecting";
    if (!paused) {
      void this.follow();
      this.settle();
    } else {
      this.source?.close();
    }
    this.tell();
  }

  /** Change a value of the configuration. */
  async update(type: string, field: string, value: Json): Promise<void> {
    this.profile = await this.client.send<Profile>("PUT", `experiment?update_type=${type}`, {
      params: { [field]: value },
    });
    this.tell();
  }

  async kill(id: string): Promise<void> {
    this.put(await this.client.send<TrialRecord>("DELETE", `trial-jobs/${encodeURIComponent(id)}`));
    this.tell();
  }

  private async refresh(): Promise<void> {
    [this.profile, this.status, this.counts] = await Promise.all([
      this.client.get<Profile>("experiment"),
      this.client.get<Status>("check-status"),
      this.client.get<Record<string, number>>("job-statistics"),
    ]);
    this.asked = Date.now();
    this.problem = "";
  }

  private async loadBest(): Promise<void> {
    this.tell();
    const down = this.profile!.optimizeMode === "maximize";
    const path = `trial-jobs?limit=${TOP}&order=metric&with_result=true&descending=${down}`;
    const { items } = await this.client.page<TrialRecord>(path);
    for (const record of items) this.put(record);
    this.judged = true;
  }

  private async loadTrials(): Promise<void> {
    let path: string | null = `trial-jobs?limit=${PAGE}&order=sequence&descending=true`;
    while (path) {
      const page: { items: TrialRecord[]; next: string | null } = await this.client.page(path);
      for (const record of page.items) this.put(record);
      path = page.next;
      this.listed = true;
      this.complete ||= path === null;
      this.tell(); // what is there is shown while the rest is on its way
      await new Promise((go) => setTimeout(go)); // input comes first
    }
  }

  private put(record: TrialRecord): void {
    const trial = trialOf(record);
    this.trials.set(trial.id, trial);
    for (const name in trial.flat) this.parameterNames.add(name);
    for (const key in trial.metrics) this.metricKeys.add(key);
  }

  /** Follow the events from now on; resolves when that has begun, or could not begin at once. */
  private follow(): Promise<void> {
    this.source?.close();
    const source = new EventSource(this.client.url("events?after=latest"));
    this.source = source;
    let opened = this.complete;
    const begun = new Promise<void>((resolve) => {
      source.onopen = () => {
        if (opened) void this.load(Promise.resolve()); // the manager may have been away for long
        opened = true;
        this.connection = "live";
        this.tell();
        resolve();
      };
      source.onerror = () => {
        opened = true; // what happens until it is back must be fetched
        if (this.connection !== "paused") this.connection = "lost";
        // A browser tries again by itself unless it got an answer that was none of ours.
        const givenUp = source.readyState === EventSource.CLOSED && this.profile !== null;
        if (givenUp && this.connection === "lost") setTimeout(() => void this.follow(), AGAIN_MS);
        this.tell();
        resolve();
      };
    });
    const note = (message: MessageEvent<string>) => {
      const event = JSON.parse(message.data) as EventData;
      this.changed.add(event.trialId ?? "");
      if (event.metric?.type === "PERIODICAL") this.report(event);
      this.settle();
    };
    for (const kind of EVENTS) source.addEventListener(kind, note);
    return begun;
  }

  private report({ trialId, metric }: EventData): void {
    const report = {
      trialId: trialId ?? "",
      sequence: metric?.sequence ?? 0,
      data: metric?.value ?? null,
    };
    for (const take of this.reporters) take(report);
  }

  private settle(): void {
    if (this.connection !== "paused")
      this.timer ??= setTimeout(() => void this.fetchChanged(), SETTLE_MS);
  }

  private async fetchChanged(): Promise<void> {
    const ids = [...this.changed].filter(Boolean);
    this.changed.clear();
    try {
      const work = [this.refresh()];
      for (let i = 0; i < ids.length; i += MOST_IDS) {
        const path = `trial-jobs?ids=${ids.slice(i, i + MOST_IDS).join(",")}`;
        work.push(
          this.client
            .get<TrialRecord[]>(path)
            .then((found) => found.forEach((one) => this.put(one))),
        );
      }
      await Promise.all(work);
    } catch (error) {
      // The event stream tells when the manager is back.
      for (const id of ids) this.changed.add(id);
      this.fail(error);
    }
    this.timer = null;
    if (this.changed.size && this.connection === "live") this.settle();
    this.tell();
  }

  private fail(error: unknown): void {
    if (!isAbort(error)) this.problem = words(error);
    this.tell();
  }

  private tell(): void {
    this.version += 1;
    for (const listener of this.listeners) listener();
  }
}

interface EventData {
  trialId?: string;
  metric?: { type?: string; sequence?: number; value?: Json };
}
