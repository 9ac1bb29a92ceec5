import { expect, test } from "vitest";

import { nextStale } from "../src/state/staged";

test("the parts get a value in turn", () => {
  expect(nextStale([undefined, undefined], "new", -1)).toBe(0);
  expect(nextStale(["new", undefined], "new", 0)).toBe(1);
  expect(nextStale(["new", "new"], "new", 1)).toBeNull();
  expect(nextStale([], "new", -1)).toBeNull();
});

test("a value that changes before all parts had it keeps no part waiting", () => {
  expect(nextStale(["old", undefined, undefined], "new", 0)).toBe(1);
  expect(nextStale(["old", "new", undefined], "newer", 1)).toBe(2);
  expect(nextStale(["old", "new", "newer"], "newest", 2)).toBe(0);
});
