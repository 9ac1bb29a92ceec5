import { expect, test } from "vitest";

import { isCompatible, versionWarnings } from "../src/state/versions";

const MANAGER = { version: "3.1.2", experimentId: "", grpc: "", otherVersions: {} };

test("only the first two numbers of a version tell", () => {
  expect(isCompatible("3.1.2", "3.1.9")).toBe(true);
  expect(isCompatible("3.1", "3.1.9.dev0")).toBe(true);
  expect(isCompatible("3.1.2", "3.10.2")).toBe(false);
  expect(isCompatible("3.1.2", "4.1.2")).toBe(false);
  expect(isCompatible("unknown", "3.1.2")).toBe(true);
});

test("nothing is said when everything fits", () => {
  expect(versionWarnings("3.1.0", MANAGER)).toEqual([]);
});

test("a page of another version says how to get the right one", () => {
  expect(versionWarnings("3.0.0", MANAGER)).toEqual([
    "This page was built for NNI 3.0.0, but the manager has version 3.1.2: " +
      "reload the page without the browser's cache (Ctrl+Shift+R).",
  ]);
});

test("all agents of another version are named", () => {
  const warnings = versionWarnings("3.1.0", {
    ...MANAGER,
    otherVersions: { b: "3.0.1", a: "4.0.0" },
  });
  expect(warnings).toEqual([
    "The manager has version 3.1.2, but agent a has version 4.0.0, agent b has version 3.0.1: " +
      "trials may fail; install the same version everywhere.",
  ]);
});
