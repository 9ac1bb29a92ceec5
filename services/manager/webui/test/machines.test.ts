import { expect, test } from "vitest";

import type { Runner } from "../src/api/records";
import { agentsText, agoText, iconOf, matching, ordered } from "../src/state/machines";
import { locationOf } from "../src/state/page_location";

const runner = (id: string, change: Partial<Runner> = {}): Runner => ({
  id,
  pool: "p",
  platform: "",
  state: "CONNECTED",
  reason: "",
  slots: 0,
  hostName: "",
  trialCount: 0,
  gpuCount: 0,
  draining: false,
  lastSeen: null,
  version: "",
  trials: [],
  ...change,
});
const RUNNERS = [
  runner("b", { hostName: "box.lab", slots: 4 }),
  runner("a", { platform: "slurm", state: "PENDING", reason: "Priority" }),
  runner("c", { trials: [{ experimentId: "abcd1234", trialId: "tria0", attempt: 1 }], slots: 2 }),
];
const ids = (found: Runner[]) => found.map(({ id }) => id).join("");

test.each([
  ["", "bac"],
  ["BOX", "b"],
  ["slurm priority", "a"],
  ["slurm box", ""],
  ["tria0", "c"],
])("the search %j finds agents with all of its words", (text, found) => {
  expect(ids(matching(RUNNERS, text))).toBe(found);
});

test.each([
  ["id", false, "abc"],
  ["slots", false, "cba"],
  ["slots", true, "bca"],
  ["unknown", true, "cba"],
])("agents ordered by %s, unknown values last", (key, descending, found) => {
  expect(ids(ordered(RUNNERS, key, descending))).toBe(found);
});

test("times are relative and never in the future", () => {
  expect(agoText(null, 0)).toBe("never");
  expect(agoText(5_000, 1_000)).toBe("just now");
  expect(agoText(0, 60_000)).toBe("60 s ago");
  expect(agoText(0, 600_000)).toBe("10 min ago");
  expect(agoText(0, 7_200_000)).toBe("2 h ago");
});

test("states have different icons, and pools count their agents by state", () => {
  expect(["RUNNING", "SILENT", "DRAINING", "PENDING"].map(iconOf)).toEqual([
    "check",
    "question",
    "pause",
    "dots",
  ]);
  const pool = { name: "p", platforms: [], reason: "", remedy: "", nextLaunch: null };
  expect(agentsText({ ...pool, agentCounts: { RUNNING: 2, PENDING: 1 } })).toBe(
    "2 running, 1 pending",
  );
  expect(agentsText({ ...pool, agentCounts: {} })).toBe("no agents");
});

test("the base address has the view of machines", () => {
  expect(locationOf({ pathname: "/machines", search: "?q=box" }, false)).toMatchObject({
    view: "machines",
    values: { q: "box" },
  });
});
