import { expect, test } from "vitest";

import {
  durationSeconds,
  durationText,
  pythonLiteral,
  formatValue,
  formatDuration,
  formatShort,
  formatState,
} from "../src/format";

test.each([
  [null, "–"],
  [undefined, "–"],
  ["words", "words"],
  [3, "3"],
  [0.1 + 0.2, "0.3"],
  [1.23456789, "1.23457"],
  [0.00001234, "1.234e-5"],
  [12345678.5, "1.2346e7"],
  [[1, "a"], '[1,"a"]'],
  [true, "true"],
])("%j is shown as %s", (value, text) => expect(formatValue(value)).toBe(text));

test.each([
  [0, "0 s"],
  [0.25, "250 ms"],
  [2.34, "2.3 s"],
  [75, "1 min 15 s"],
  [3600, "1 h"],
  [90061, "1 d 1 h"],
  [-5, "0 s"],
])("%d seconds are shown as %s", (seconds, text) => expect(formatDuration(seconds)).toBe(text));

test("a duration of the configuration is read and written", () => {
  expect(durationSeconds("30m")).toBe(1800);
  expect(durationSeconds("0.5 h")).toBe(1800);
  expect(durationSeconds("soon")).toBeNull();
  expect([5400, 7200, 86400, 61].map(durationText)).toEqual(["90m", "2h", "1d", "61s"]);
});

test("numbers of an axis are short", () => {
  expect([0, 1e-7, 0.123456, 250000].map(formatShort)).toEqual(["0", "1e-7", "0.1235", "2.5e5"]);
});

test("states are words", () => {
  expect(["EARLY_STOPPED", "USER_CANCELED", "RUNNING"].map(formatState)).toEqual([
    "early stopped",
    "killed",
    "running",
  ]);
});

test("a Python literal has Python's words for JSON's", () => {
  const value = { lr: 1e-5, flag: true, none: null, list: [1, 'a"b'], inner: { off: false } };

  expect(pythonLiteral(value)).toBe(
    '{"lr": 0.00001, "flag": True, "none": None, "list": [1, "a\\"b"], "inner": {"off": False}}',
  );
});

test("a value has six digits without zeros at their end", () => {
  const numbers = [0.5, 0.1234565, 1234.56789, 123456.7, 999999.7, -0.00012, 2.0000001, 1e-4];

  expect(numbers.map(formatValue)).toEqual(
    numbers.map((number) => String(Number(number.toPrecision(6)))),
  );
});
