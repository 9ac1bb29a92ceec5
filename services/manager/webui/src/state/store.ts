// Store of one experiment: loaded once, then updated by its event stream.

import { Client, type Page, isAbort, errorMessage } from "../api/client";
import type {
  IntermediateRanges,
  Json,
  JsonObject,
  Profile,
  Status,
  Trial as TrialRecord,
} from "../api/records";
import type { Remarks } from "../api/records";
import { type EventData, changedRecord, needsRecord } from "./deltas";
import { Pace } from "./pace";
import { dimensionsOf } from "./space";
import { Throttle } from "./throttle";
import { type Ranges, type Trial, countStates, extendRanges, trialOf } from "./trial";

/** Time over which changes are collected before they are fetched or drawn, in ms. */
const BATCH_MS = 250;
/** Time after which the status is requested at the latest while trials change, in ms. */
const STATUS_MS = 20_000;
/** Maximum number of trials that one request names. */
const MAX_IDS = 200;
/** Trials of the first request: more than a window shows, and there in a fifth of the time. */
const FIRST_PAGE = 200;
/** Trials of each further request. */
const PAGE = 1_000;
/** Records that are parsed without a pause: a few milliseconds. */
const PARSED_AT_ONCE = 250;
/** Ranges that are merged without a pause. */
const RANGES_AT_ONCE = 1_000;
const RETRY_MS = 2_000;
const TOP = 20;
/** States in which the experiment's time counts. */
const RUNNING_STATES = new Set(["RUNNING", "NO_MORE_TRIAL", "TUNER_NO_MORE_TRIAL"]);
const EVENTS = [
  "trial_scheduled",
  "trial_started",
  "metric_reported",
  "trial_stop_requested",
  "trial_lost",
  "trial_requeued",
  "trial_ended",
  "trial_unknown",
  "trial_waits",
  "algorithm_requested",
  "algorithm_started",
  "algorithm_failed",
  "algorithm_diverged",
  "algorithm_waits",
  "budget_changed",
  "search_space_changed",
  "data_imported",
  "custom_trial_added",
  "remarks_changed",
  "experiment_state_changed",
  "experiment_ended",
  "listener_opened",
  "listener_closed",
];
/** Events after which status, budgets and configuration are requested soon. */
const OF_EXPERIMENT: ReadonlySet<string> = new Set(
  EVENTS.filter((kind) => !/^(trial_|metric_)/.test(kind)),
);

/** Let the browser handle input. */
const pause = () => new Promise<void>((resume) => setTimeout(resume));

/** State of the live updates. */
export type Connection = "connecting" | "live" | "lost" | "paused";

/** A newly reported intermediate result. */
export interface Report {
  trialId: string;
  sequence: number;
  data: Json;
}

export class Store {
  readonly client: Client;
  /** Whether the page's address is the experiment's own and closes with it. */
  readonly bound: boolean;
  profile: Profile | null = null;
  status: Status | null = null;
  counts: Record<string, number> = {};
  canChange = false;
  connection: Connection = "connecting";
  /** Message of the last error; empty after a success. */
  problem = "";
  readonly trials = new Map<string, Trial>();
  /** Names of parameters and metrics, in the order of their first appearance. */
  readonly parameterNames = new Set<string>();
  readonly metricKeys = new Set<string>();
  /** Number of trials that existed when the page was opened; 0 before it is known. */
  total = 0;
  /** Whether all of them are loaded. */
  complete = false;
  /** Whether the newest trials are loaded; they follow the best ones. */
  newestLoaded = false;
  /** Number of times that everything was loaded: once, and after each lost connection. */
  loads = 0;
  /** Grows with each change; invalidates derived values. */
  version = 0;

  private refreshedAt = 0;
  /** Whether something changed after the last request of the status was sent. */
  private statusStale = false;
  private readonly ranges = new Map<string, Ranges>();
  private readonly changed = new Set<string>();
  private trialTimer: ReturnType<typeof setTimeout> | null = null;
  private statusTimer: ReturnType<typeof setTimeout> | null = null;
  private lateTimer: ReturnType<typeof setTimeout> | null = null;
  // A busy experiment costs 15 requests for trials and 3 for its status a minute.
  private readonly trialPace = new Pace(8, 4_000);
  private readonly statusPace = new Pace(8, 10_000);
  private readonly drawing = new Throttle(() => this.notify(), BATCH_MS);
  private source: EventSource | null = null;
  private readonly listeners = new Set<() => void>();
  private readonly reportListeners = new Set<(report: Report) => void>();

  /** `id` is empty on the listener of one experiment. */
  constructor(id: string) {
    this.bound = id === "";
    this.client = new Client(id);
  }

  /** Follow new events and load everything; `problem` holds the message of an error. */
  async open(): Promise<void> {
    const following = this.follow();
    await this.load(following);
  }

  /** Load everything; the list of trials once `following` has resolved. */
  private async load(following: Promise<void>): Promise<void> {
    this.loads += 1;
    try {
      await this.loadAll(following);
    } catch (error) {
      this.fail(error);
    }
  }

  private async loadAll(following: Promise<void>): Promise<void> {
    const session = this.client.installation<{ canChange: boolean }>("session");
    // The best trials come first: the overview is complete long before all trials are loaded.
    const best = this.refresh().then(() => this.loadBest());
    this.canChange = (await session).canChange;
    await best;
    this.notify();
    await following; // before the list, so that no event is missed in between
    this.refreshSoon();
    await this.loadTrials();
    await this.loadRanges();
  }

  /** Call `listener` after each change; returns a function that unsubscribes it. */
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Call `listener` with each new intermediate result; returns a function that unsubscribes it. */
  onReport(listener: (report: Report) => void): () => void {
    this.reportListeners.add(listener);
    return () => this.reportListeners.delete(listener);
  }

  /** Return the names of the trials' parameters, in the order of the search space. */
  parameters(): string[] {
    const space = dimensionsOf(this.profile?.params["searchSpace"]).map((one) => one.name);
    const known = space.filter((name) => this.parameterNames.has(name));
    return [...new Set([...known, ...this.parameterNames])];
  }

  /** Whether the user may change the experiment. */
  get editable(): boolean {
    return this.canChange && this.status?.status !== "VIEWED";
  }

  /** Reason why the user may not change the experiment; empty if they may. */
  get readOnlyReason(): string {
    if (this.status?.status === "VIEWED") return "The experiment is open for reading only.";
    return this.canChange
      ? ""
      : "Open the address that `nnictl webui url` prints to change things.";
  }

  /** Return the used time in seconds, extrapolated since the last response. */
  executionSeconds(now = Date.now()): number {
    const runs = RUNNING_STATES.has(this.status?.status ?? "");
    return (
      (this.profile?.execDuration ?? 0) + (runs ? Math.max(0, now - this.refreshedAt) / 1000 : 0)
    );
  }

  /** Pause or resume live updates; resuming fetches the changes in between. */
  pause(paused: boolean): void {
    this.connection = paused ? "paused" : "connecting";
    if (!paused) {
      void this.follow();
      this.refreshSoon();
    } else {
      this.source?.close();
    }
    this.notify();
  }

  /** Change a value of the configuration. */
  async update(type: string, params: JsonObject): Promise<void> {
    this.profile = await this.client.send<Profile>("PUT", `experiment?update_type=${type}`, {
      params,
    });
    this.notify();
  }

  /** Change remarks on a trial; empty id: on the experiment. */
  async changeRemarks(id: string, change: Partial<Remarks>): Promise<void> {
    if (!id) {
      const remarks = await this.client.send<Remarks>("PUT", "experiment/remarks", change);
      if (this.profile) this.profile = { ...this.profile, remarks };
    } else {
      const path = encodeURIComponent(id);
      const remarks = await this.client.send<Remarks>("PUT", `trial-jobs/${path}/remarks`, change);
      const known = this.trials.get(id);
      if (known) this.put({ ...known.record, remarks });
    }
    this.notify();
  }

  async kill(id: string): Promise<void> {
    this.put(await this.client.send<TrialRecord>("DELETE", `trial-jobs/${encodeURIComponent(id)}`));
    this.notify();
  }

  private async refresh(): Promise<void> {
    [this.profile, this.status, this.counts] = await Promise.all([
      this.client.get<Profile>("experiment"),
      this.client.get<Status>("check-status"),
      this.client.get<Record<string, number>>("job-statistics"),
    ]);
    this.refreshedAt = Date.now();
    this.problem = "";
  }

  private async loadBest(): Promise<void> {
    this.notify();
    const down = this.profile!.optimizeMode === "maximize";
    const path = `trial-jobs?limit=${TOP}&order=metric&with_result=true&descending=${down}`;
    const { items } = await this.client.page<TrialRecord>(path);
    for (const record of items) this.put(record);
  }

  private async loadTrials(): Promise<void> {
    let path: string | null = `trial-jobs?limit=${FIRST_PAGE}&order=sequence&descending=true`;
    while (path) {
      const page: Page<TrialRecord> = await this.client.page(path);
      await this.putAll(page.items);
      this.total = page.total;
      path = page.next?.replace(`limit=${FIRST_PAGE}&`, `limit=${PAGE}&`) ?? null;
      const shown = this.newestLoaded;
      this.newestLoaded = true;
      this.complete ||= path === null;
      // Shows the loaded trials while the rest is loading; the more they cost, the less often.
      if (shown && !this.complete) this.drawing.request();
      else this.notify();
      await pause();
    }
    this.drawing.cancel();
  }

  /** Put many records, which are parsed in parts between which the browser handles input. */
  private async putAll(records: TrialRecord[]): Promise<void> {
    const parsed: Trial[] = [];
    for (let i = 0; i < records.length; i += PARSED_AT_ONCE) {
      for (const record of records.slice(i, i + PARSED_AT_ONCE))
        parsed.push(trialOf(record, this.rangesOf(record.trialJobId)));
      await pause();
    }
    for (const trial of parsed) this.putTrial(trial);
  }

  /** Load the ranges of intermediate results; those of live trials may have grown meanwhile. */
  private async loadRanges(): Promise<void> {
    if (![...this.trials.values()].some((trial) => trial.record.intermediateCount > 0)) return;
    const found = await this.client.get<IntermediateRanges[]>("intermediate-ranges");
    for (const [i, { trialJobId, ranges }] of found.entries()) {
      if (i % RANGES_AT_ONCE === 0) await pause();
      const known = this.rangesOf(trialJobId);
      for (const [key, [low, high]] of Object.entries(ranges)) {
        extendRanges(known, { [key]: low });
        extendRanges(known, { [key]: high });
      }
    }
    this.notify();
  }

  /** Return the ranges of a trial, which its `Trial` shares. */
  private rangesOf(id: string): Ranges {
    let found = this.ranges.get(id);
    if (!found) this.ranges.set(id, (found = {}));
    return found;
  }

  private put(record: TrialRecord): void {
    this.putTrial(trialOf(record, this.rangesOf(record.trialJobId)));
  }

  private putTrial(trial: Trial): void {
    this.trials.set(trial.id, trial);
    for (const name in trial.flat) this.parameterNames.add(name);
    for (const key in trial.metrics) this.metricKeys.add(key);
  }

  /** Follow new events; resolves when the stream is open or its first attempt failed. */
  private follow(): Promise<void> {
    this.source?.close();
    const source = new EventSource(this.client.url("events?after=latest"));
    this.source = source;
    let opened = this.complete;
    const begun = new Promise<void>((resolve) => {
      source.onopen = () => {
        if (opened) void this.load(Promise.resolve()); // events may have been missed
        opened = true;
        this.connection = "live";
        this.notify();
        resolve();
      };
      source.onerror = () => {
        opened = true; // reload after the reconnection
        if (this.connection !== "paused") this.connection = "lost";
        // A browser reconnects by itself unless the response was not an event stream.
        const closed = source.readyState === EventSource.CLOSED && this.profile !== null;
        if (closed && this.connection === "lost") setTimeout(() => void this.follow(), RETRY_MS);
        this.notify();
        resolve();
      };
    });
    const onEvent = (message: MessageEvent<string>) => {
      this.apply(message.type, JSON.parse(message.data) as EventData);
    };
    for (const kind of EVENTS) source.addEventListener(kind, onEvent);
    return begun;
  }

  /** Apply an event: change the record of its trial, request what the event does not hold. */
  private apply(kind: string, event: EventData): void {
    const id = event.trialId ?? "";
    if (event.metric?.type === "PERIODICAL") this.report(event);
    if (kind === "trial_lost") this.clearRanges(id);
    const known = this.trials.get(id);
    const record = known && changedRecord(known.record, kind, event);
    if (record) this.put(record);
    if (id && (!known || needsRecord(kind, event))) {
      this.changed.add(id);
      this.fetchSoon();
      this.refreshLater();
    }
    if (OF_EXPERIMENT.has(kind)) this.refreshSoon();
    this.drawing.request();
  }

  /** Drop the ranges of a lost attempt; the next one reports again. */
  private clearRanges(id: string): void {
    const ranges = this.rangesOf(id);
    for (const key of Object.keys(ranges)) delete ranges[key];
  }

  private report({ trialId, metric }: EventData): void {
    extendRanges(this.rangesOf(trialId ?? ""), metric?.value ?? null);
    const report = {
      trialId: trialId ?? "",
      sequence: metric?.sequence ?? 0,
      data: metric?.value ?? null,
    };
    for (const listener of this.reportListeners) listener(report);
  }

  /** Request the changed trials after a moment in which further changes may come. */
  private fetchSoon(): void {
    if (this.connection === "paused" || this.trialTimer !== null) return;
    const wait = Math.max(BATCH_MS, this.trialPace.take(performance.now()));
    this.trialTimer = setTimeout(() => void this.fetchChanged(), wait);
  }

  /** Request status and budgets soon. */
  private refreshSoon(): void {
    this.statusStale = true;
    if (this.connection === "paused" || this.statusTimer !== null) return;
    const wait = Math.max(BATCH_MS, this.statusPace.take(performance.now()));
    this.statusTimer = setTimeout(() => void this.fetchStatus(), wait);
  }

  /** Request status and budgets once trials have changed for some time. */
  private refreshLater(): void {
    if (this.connection === "paused" || this.statusTimer !== null) return;
    this.lateTimer ??= setTimeout(() => {
      this.lateTimer = null;
      this.refreshSoon();
    }, STATUS_MS);
  }

  private async fetchStatus(): Promise<void> {
    this.statusStale = false;
    try {
      await this.refresh();
    } catch (error) {
      this.fail(error); // the event stream reopens when the manager is back
    }
    this.statusTimer = null;
    if (this.statusStale && this.connection === "live") this.refreshSoon();
    this.drawing.request();
  }

  private async fetchChanged(): Promise<void> {
    const ids = [...this.changed].filter(Boolean);
    this.changed.clear();
    try {
      const work = [];
      for (let i = 0; i < ids.length; i += MAX_IDS) {
        const path = `trial-jobs?ids=${ids.slice(i, i + MAX_IDS).join(",")}`;
        work.push(
          this.client
            .get<TrialRecord[]>(path)
            .then((found) => found.forEach((one) => this.put(one))),
        );
      }
      await Promise.all(work);
    } catch (error) {
      // The event stream reopens when the manager is back.
      for (const id of ids) this.changed.add(id);
      this.fail(error);
    }
    this.trialTimer = null;
    if (this.changed.size && this.connection === "live") this.fetchSoon();
    this.drawing.request();
  }

  private fail(error: unknown): void {
    if (!isAbort(error)) this.problem = errorMessage(error);
    this.notify();
  }

  private notify(): void {
    this.version += 1;
    // Events change single trials; the numbers by state follow without a request.
    if (this.complete) this.counts = countStates(this.trials.values());
    for (const listener of this.listeners) listener();
  }
}
