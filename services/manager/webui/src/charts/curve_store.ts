// Store of intermediate results: loaded on demand, then updated by events.

import { isAbort, errorMessage } from "../api/client";
import type { Json, Metric } from "../api/records";
import type { Store } from "../state/store";
import { Throttle } from "../state/throttle";
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
  /** Curves of the key that was requested last, kept up to date. */
  private cached: { key: string; curves: Map<string, number[]> } | null = null;
  private readonly drawing: Throttle;

  /** Calls `changed` after changes, at most four times a second, less often if that is costly. */
  constructor(
    private readonly store: Store,
    private readonly changed: () => void,
  ) {
    this.drawing = new Throttle(() => {
      this.version += 1;
      this.changed();
    }, 250);
  }

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
      this.drawing.request();
    });
    return () => {
      stop.abort();
      end();
      this.drawing.cancel();
    };
  }

  /** Return the numbers under `key` by trial. */
  curves(key: string): Curves {
    if (this.cached?.key !== key) {
      const curves = new Map<string, number[]>();
      for (const [id, reports] of this.reports)
        curves.set(
          id,
          Array.from(reports, (data) => numbersOf(data)[key] ?? NaN),
        );
      this.cached = { key, curves };
    }
    return new Map(this.cached.curves); // another one, so that the chart is drawn anew
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
    this.drawing.request();
  }

  private put(trial: string, sequence: number, data: Json): void {
    let reports = this.reports.get(trial);
    if (!reports) this.reports.set(trial, (reports = []));
    if (!(sequence in reports)) this.total += 1;
    reports[sequence] = data;
    const numbers = numbersOf(data);
    for (const key in numbers) this.keys.add(key);
    if (this.cached) {
      const curves = this.cached.curves;
      const curve = curves.get(trial) ?? [];
      while (curve.length < sequence) curve.push(NaN); // an earlier report is still to come
      curve[sequence] = numbers[this.cached.key] ?? NaN;
      curves.set(trial, curve);
    }
    this.drawing.request();
  }
}
