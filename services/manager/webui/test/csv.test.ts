import { expect, test } from "vitest";

import { allColumns } from "../src/state/columns";
import { cell, trialsCsv } from "../src/state/csv";
import { MAXIMIZE, trial } from "./trials";

test.each([
  [undefined, ""],
  [0.1 + 0.2, "0.30000000000000004"],
  [-3, "-3"],
  ["adam", "adam"],
  ['say "hi", now', '"say ""hi"", now"'],
  ["two\nlines", '"two\nlines"'],
  [[8, 16], '"[8,16]"'],
  [null, "null"],
  ["-1e-3", "-1e-3"],
  ["=1+1", "'=1+1"],
  ["@cmd", "'@cmd"],
])("the value %j is written as %s", (value, text) => {
  expect(cell(value)).toBe(text);
});

test("a table has its titles and a line for each trial", () => {
  const columns = allColumns(["lr"], ["default"], MAXIMIZE).filter(({ key }) =>
    ["number", "state", "result", "p:lr"].includes(key),
  );
  const trials = [trial(1, 0.5, { lr: 0.01 }), trial(2, undefined, { lr: 1 }, "FAILED")];

  expect(trialsCsv(columns, trials, 0).split("\r\n")).toEqual([
    "No.,State,Result,lr",
    "1,SUCCEEDED,0.5,0.01",
    "2,FAILED,,1",
    "",
  ]);
});
