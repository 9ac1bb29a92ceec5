import { expect, test } from "vitest";

import {
  EMPTY,
  PART_BYTES,
  appended,
  earlier,
  prepended,
  rangeOf,
  windowOf,
} from "../src/state/log_window";

const bytes = (text: string) => new TextEncoder().encode(text);

test("a part of a log begins with a whole line, the first part with its first", () => {
  expect(windowOf(bytes("one\ntwo\n"), 0)).toEqual({ start: 0, end: 8, text: "one\ntwo\n" });
  expect(windowOf(bytes("ne\ntwo\n"), 1)).toEqual({ start: 4, end: 8, text: "two\n" });
  expect(windowOf(bytes("part of a line"), 7).text).toBe("part of a line");
  expect(windowOf(bytes("end of a line\n"), 7).text).toBe("end of a line\n");
});

test.each([1, 2, 3, 4, 5, 6, 7, 8, 9])("parts of %i bytes have whole characters", (size) => {
  const text = "ä€😀b".repeat(3);
  const all = bytes(text);
  let window = windowOf(all.subarray(0, all.length - size), 0);
  expect(text.startsWith(window.text)).toBe(true);
  window = windowOf(all.subarray(window.end), window.end);
  expect(text.endsWith(window.text)).toBe(true);
  expect(window.end).toBe(all.length);
  expect(windowOf(all.subarray(size), size).text).not.toContain("\ufffd");
});

test("bytes that are no text stay in the window", () => {
  expect(windowOf(new Uint8Array(6).fill(0x80), 0)).toMatchObject({ start: 0, end: 6 });
  expect(windowOf(new Uint8Array(0), 5)).toEqual({ start: 5, end: 5, text: "" });
});

test("the line that a search has found is not left out", () => {
  expect(windowOf(bytes("found\nnext"), 9, false).text).toBe("found\nnext");
});

test("earlier parts join without a gap", () => {
  const text = "äöü 1\nline 2\nline 3\nline 4\n";
  const all = bytes(text);
  let window = windowOf(all.subarray(15), 15);
  while (window.start > 0) {
    const from = Math.max(0, window.start - 11);
    window = prepended(window, all.subarray(from, window.start));
  }

  expect(window).toEqual({ start: 0, end: all.length, text });
});

test("the range before a window ends at it, and there is none before the begin", () => {
  expect(earlier({ ...EMPTY, start: PART_BYTES + 5 })).toEqual([5, PART_BYTES + 5]);
  expect(earlier({ ...EMPTY, start: 5 })).toEqual([0, 5]);
  expect(earlier(EMPTY)).toBeNull();
});

test("a followed window drops its oldest lines and knows where it begins", () => {
  const window = appended({ start: 4, end: 10, text: "ä 1\nb" }, " 2\nc 3\n", 10);

  expect(window).toEqual({ start: 9, end: 17, text: "b 2\nc 3\n" });
  expect(appended(EMPTY, "x".repeat(12), 10)).toEqual({ start: 2, end: 12, text: "x".repeat(10) });
});

test.each([
  ["bytes 5-9/20", { start: 5, total: 20 }],
  ["bytes */20", null],
  [null, null],
])("the header %s is read", (header, range) => {
  expect(rangeOf(header)).toEqual(range);
});
