import { expect, test } from "vitest";

import {
  EMPTY,
  PART_BYTES,
  appended,
  earlier,
  prepended,
  rangeOf,
  wholeParts,
  windowOf,
} from "../src/state/log_window";

const bytes = (text: string) => new TextEncoder().encode(text);
const concat = (...parts: Uint8Array[]) => new Uint8Array(parts.flatMap((part) => [...part]));

test("a part of a log begins with a whole line, the first part with its first", () => {
  expect(windowOf(bytes("one\ntwo\n"), 0)).toMatchObject({ start: 0, end: 8, text: "one\ntwo\n" });
  expect(windowOf(bytes("ne\ntwo\n"), 1)).toMatchObject({ start: 4, end: 8, text: "two\n" });
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
  expect(windowOf(new Uint8Array(0), 5)).toMatchObject({ start: 5, end: 5, text: "" });
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

  expect(window).toMatchObject({ start: 0, end: all.length, text });
});

test("the range before a window ends at it, and there is none before the begin", () => {
  expect(earlier({ ...EMPTY, start: PART_BYTES + 5 })).toEqual([5, PART_BYTES + 5]);
  expect(earlier({ ...EMPTY, start: 5 })).toEqual([0, 5]);
  expect(earlier(EMPTY)).toBeNull();
});

test("a followed window drops its oldest lines and knows where it begins", () => {
  const window = appended(windowOf(bytes("ä 1\nb"), 4, false), bytes(" 2\nc 3\n"), 10);

  expect(window).toMatchObject({ start: 9, end: 17, text: "b 2\nc 3\n" });
  expect(appended(EMPTY, bytes("x".repeat(12)), 10)).toMatchObject({
    start: 2,
    end: 12,
    text: "x".repeat(10),
  });
});

test("offsets of a followed window count bytes that are no UTF-8 as they are", () => {
  const odd = new Uint8Array([0xef, 0xbb, 0xbf, 0xff, 0xe2, 0x82, 0x0a, 0x80, 0x61, 0x0a]);
  let window = EMPTY;
  for (let count = 0; count < 3; count += 1) window = appended(window, odd, 12);

  expect(window.end).toBe(3 * odd.length);
  const kept = 3 * odd.length - window.start;
  expect(window.text).toBe(windowOf(concat(odd, odd, odd).subarray(-kept), 0).text);
  expect(window.text.startsWith("\ufffda\n")).toBe(true);
});

test("a followed window drops whole pieces and then lines", () => {
  const line = bytes(`${"ä".repeat(9_999)}\n`);
  let window = EMPTY;
  for (let count = 0; count < 5; count += 1) window = appended(window, line, 25_000);

  expect(window).toMatchObject({ start: 3 * line.length, end: 5 * line.length });
  expect(window.text.length).toBe(20_000);
});

test.each([1, 2, 3, 5, 7])("chunks of %i bytes become parts of whole characters", (size) => {
  const text = "ä€😀b".repeat(3);
  const all = bytes(text);
  let found = "";
  const receive = wholeParts((part) => {
    found += windowOf(part, 0).text;
  });
  for (let at = 0; at < all.length; at += size) receive(all.subarray(at, at + size));

  expect(found).toBe(text);
});

test.each([
  ["bytes 5-9/20", { start: 5, total: 20 }],
  ["bytes */20", null],
  [null, null],
])("the header %s is read", (header, range) => {
  expect(rangeOf(header)).toEqual(range);
});
