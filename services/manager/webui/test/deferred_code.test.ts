// Tests of code that is fetched when it is first needed.

import { expect, test } from "vitest";

import { deferredCode, fetchWhenIdle } from "../src/state/deferred_code";

test("is fetched once, by the first who needs it", async () => {
  let loads = 0;
  const code = deferredCode(async () => (loads += 1));

  const before = code.value;
  const found = await Promise.all([code.fetch(), code.fetch()]);

  expect(before).toBeUndefined();
  expect(found).toEqual([1, 1]);
  expect(code.value).toBe(1);
});

test("is tried again after a failure", async () => {
  let loads = 0;
  const code = deferredCode(async () => {
    loads += 1;
    if (loads === 1) throw new TypeError("Failed to fetch");
    return "code";
  });

  await expect(code.fetch()).rejects.toThrow("Failed to fetch");
  expect(code.value).toBeUndefined();

  expect(await code.fetch()).toBe("code");
});

test("a failure while idle does not keep others from being fetched", async () => {
  const lost = deferredCode(() => Promise.reject(new TypeError("Failed to fetch")));
  const other = deferredCode(() => Promise.resolve("other"));

  await fetchWhenIdle([lost, other]);

  expect(lost.value).toBeUndefined();
  expect(other.value).toBe("other");
});
