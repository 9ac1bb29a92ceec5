// Intermediate results: asked for when they are looked at, then kept up to date by events.

import { isAbort, words } from "../api/client";
import type { Json, Metric } from "../api/records";
import type { Store } from "../state/store";
import { numbersOf } from "../state/trial";
import type { Curves } from "./series";

const PAGE = 10_000;
/** Most reports that are kept: each is a few dozen bytes. */
const MOST_REPORTS = 500_000;

export class CurveStore {
  /** The reports of each trial, in order. */
  readonly reports = new Map<string, Json[]>();
  /** Keys that reports have; a plain number is `default`. */
  readonly keys = new Set<string>();
  state: "loading" | "complete" | "failed" = "loading";
  problem = "";
  /** Whether some were left out because there are too many. */
  cut = false;
  version = 0;
  private total = 0;
  private told: ReturnType<typeof setTimeout> | null = null;

  /** `changed` is called after changes, at most four times a second. */
  constructor(
    private readonly store: Store,
    private readonly changed: () => void,
  ) {}

  /** Fetch all and follow; returns what ends that. */
  open(): () => void {
    const stop = new AbortController();
    const end = this.store.onReport(({ trialId, sequence, data }) =>
      this.put(trialId, sequence, data),
    );
    this.load(stop.signal).catch((error: unknown) => {
      if (isAbort(error)) return;
      this.state = "failed";
      this.problem = words(error);
      this.tell();
    });
    return () => {
      stop.abort();
      end();
      if (this.told) clearTimeout(this.told);
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
      this.cut = this.total >= MOST_REPORTS && page.next !== null;
      path = this.cut ? null : page.next;
    }
    this.state = "complete";
    this.tell();
  }

  private put(trial: string, sequence: number, data: Json): void {
    let reports = this.reports.get(trial);
    if (!reports) this.reports.set(trial, (reports = []));
    if (!(sequence in reports)) this.total += 1;
    reports[sequence] = data;
    for (const key in numbersOf(data)) this.keys.add(key);
    this.tell();
  }

  private tell(): void {
    this.told ??= setTimeout(() => {
      this.told = null;
      this.version += 1;
      this.changed();
    }, 250);
  }
}
