// Store of intermediate results: loaded on demand, then updated by events.

import { isAbort, errorMessage } from "../api/client";
import type { Json, Metric } from "../api/records";
import type { Store } from "../state/store";
import { numbersOf } from "../state/trial";
import type { Curves } from "./series";

const PAGE = 10_000;
/** Maximum number of reports to hold: each takes a few dozen bytes. */
const MAX_REPORTS = 500_000;

export class CurveStore {
  /** The reports of each trial, in order. */
  readonly reports = new Map<string, Json[]>();
  /** Keys of the reports; a plain number has the key `default`. */
  readonly keys = new Set<string>();
  state: "loading" | "complete" | "failed" = "loading";
  problem = "";
  /** Whether reports beyond the maximum were left out. */
  truncated = false;
  version = 0;
  private total = 0;
  private notification: ReturnType<typeof setTimeout> | null = null;

  /** Calls `changed` after changes, at most four times a second. */
  constructor(
    private readonly store: Store,
    private readonly changed: () => void,
  ) {}

  /** Load all reports and follow new ones; returns a function that stops this. */
  open(): () => void {
    const stop = new AbortController();
    const end = this.store.onReport(({ trialId, sequence, data }) =>
      this.put(trialId, sequence, data),
    );
    this.load(stop.signal).catch((error: unknown) => {
      if (isAbort(error)) return;
      this.state = "failed";
      this.problem = errorMessage(error);
      this.notify();
    });
    return () => {
      stop.abort();
      end();
      if (this.notification) clearTimeout(this.notification);
    };
  }

  /** Return the numbers under `key` by trial. */
  curves(key: string): Curves {
    const found: Curves = new Map();
    for (const [id, reports] of this.reports) {
      found.set(
        id,
        Array.from(reports, (data) => numbersOf(data)[key] ?? NaN),
      );
    }
    return found;
  }

  private async load(signal: AbortSignal): Promise<void> {
    let path: string | null = `metric-data?type=PERIODICAL&limit=${PAGE}`;
    while (path) {
      const page: { items: Metric[]; next: string | null } = await this.store.client.page(
        path,
        signal,
      );
      for (const one of page.items) this.put(one.trialJobId, one.sequence, one.data);
      this.truncated = this.total >= MAX_REPORTS && page.next !== null;
      path = this.truncated ? null : page.next;
    }
    this.state = "complete";
    this.notify();
  }

  private put(trial: string, sequence: number, data: Json): void {
    let reports = this.reports.get(trial);
    if (!reports) this.reports.set(trial, (reports = []));
    if (!(sequence in reports)) this.total += 1;
    reports[sequence] = data;
    for (const key in numbersOf(data)) this.keys.add(key);
    this.notify();
  }

  private notify(): void {
    this.notification ??= setTimeout(() => {
      this.notification = null;
      this.version += 1;
      this.changed();
    }, 250);
  }
}
