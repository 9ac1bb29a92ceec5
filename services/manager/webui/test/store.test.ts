import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { Store } from "../src/state/store";
import { trial } from "./trials";

/** Event stream whose events the test sends. */
class ManualEventSource extends EventTarget {
  static readonly CLOSED = 2;
  static last: ManualEventSource;
  readyState = 0;
  onopen: (() => void) | null = null;
  onerror: (() => void) | null = null;

  constructor() {
    super();
    ManualEventSource.last = this;
    void Promise.resolve().then(() => this.onopen?.());
  }

  close(): void {
    this.readyState = ManualEventSource.CLOSED;
  }

  send(kind: string): void {
    this.dispatchEvent(new MessageEvent(kind, { data: "{}" }));
  }
}

const RESPONSES: Record<string, unknown> = {
  session: { canChange: true },
  experiment: { params: {}, optimizeMode: "minimize" },
  "job-statistics": {},
};
/** Status of the experiment at the manager. */
let status = "RUNNING";
/** Called when a request of the status has read it, before its response arrives. */
let onStatus: () => void = () => {};

async function respond(url: string): Promise<Response> {
  if (url.includes("order=metric")) return new Response("[]"); // no trial counts as one of the best
  const path = url.split("?")[0]!.split("/").at(-1)!;
  if (path !== "check-status") return new Response(JSON.stringify(RESPONSES[path] ?? []));
  const response = new Response(JSON.stringify({ status, errors: [] }));
  onStatus();
  return response;
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("fetch", respond);
  vi.stubGlobal("EventSource", ManualEventSource);
  vi.stubGlobal("requestAnimationFrame", (run: () => void) => setTimeout(run, 16));
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("an event that comes during a request of the status leads to another one", async () => {
  const store = new Store("exp00001");
  const opened = store.open();
  await vi.advanceTimersByTimeAsync(1_000);
  await opened;

  onStatus = () => {
    onStatus = () => {};
    status = "DONE";
    ManualEventSource.last.send("experiment_state_changed");
  };
  ManualEventSource.last.send("experiment_state_changed");
  await vi.advanceTimersByTimeAsync(20_000);

  expect(store.status?.status).toBe("DONE");
});

test("many trials are parsed in parts, and appear together", async () => {
  const records = Array.from({ length: 600 }, (_, i) => trial(i, i).record);
  RESPONSES["trial-jobs"] = records;
  const store = new Store("exp00001");
  const sizes = new Set<number>();
  const end = store.subscribe(() => sizes.add(store.trials.size));

  const opened = store.open();
  await vi.runAllTimersAsync();
  await opened;
  end();
  delete RESPONSES["trial-jobs"];

  expect(store.complete).toBe(true);
  expect(sizes.has(600)).toBe(true);
  expect([...sizes].filter((size) => size > 0 && size < 600)).toEqual([]);
});

test("the first request of the list asks for few trials, the next ones for many", async () => {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (url: string) => {
    const isList = url.includes("order=sequence");
    if (!isList) return respond(url);
    asked.push(url.split("?")[1]!);
    const number = asked.length;
    const query = url.split("?")[1]!.replace(/&cursor=.*/, "");
    const headers: Record<string, string> =
      number < 3 ? { link: `<trial-jobs?${query}&cursor=c${number}>; rel="next"` } : {};
    return new Response(JSON.stringify([trial(number, number).record]), { headers });
  });
  const store = new Store("exp00001");
  const opened = store.open();
  await vi.advanceTimersByTimeAsync(1_000);
  await opened;

  const list = "order=sequence&descending=true";
  expect(asked).toEqual([
    `limit=200&${list}`,
    `limit=1000&${list}&cursor=c1`,
    `limit=1000&${list}&cursor=c2`,
  ]);
  expect(store.complete).toBe(true);
  expect(store.trials.size).toBe(3);
});
