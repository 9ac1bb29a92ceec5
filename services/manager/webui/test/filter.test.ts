import { expect, test } from "vitest";

import { allColumns, defaultColumns, sorted } from "../src/state/columns";
import { parseFilter, searchText, valuesIn } from "../src/state/filter";
import { MAXIMIZE, trial } from "./trials";

const TRIALS = [
  trial(0, 0.5, { lr: 0.001, opt: "adam", model: { _name: "svm", C: 3 } }),
  trial(1, 0.9, { lr: 0.1, opt: "sgd", model: { _name: "mlp", units: 32 } }),
  trial(2, undefined, { lr: 0.01, opt: "adam", model: { _name: "svm", C: 0.5 } }, "FAILED"),
  trial(3, { default: 0.7, loss: 4 }, { lr: 0.05, opt: "rms prop", model: { _name: "svm", C: 9 } }),
];
const COLUMNS = allColumns(
  ["lr", "opt", "model", "model/C", "model/units"],
  ["default", "loss"],
  MAXIMIZE,
);

const found = (text: string) =>
  TRIALS.filter((one) => parseFilter(text, COLUMNS).test(one, 0)).map((one) => one.number);

test.each([
  ["", [0, 1, 2, 3]],
  ["id2", [2]],
  ["#1", [1]],
  ["#1..2", [1, 2]],
  ["#0,3", [0, 3]],
  ["failed", [2]],
  ["status:FAILED", [2]],
  ["state=succeeded", [0, 1, 3]],
  ["sgd", [1]],
  ["0.0", [0, 2, 3]],
  ["lr:0.005..0.06", [2, 3]],
  ["lr:..0.01", [0, 2]],
  ["lr:0.1", [1]],
  ["result>0.6", [1, 3]],
  ["metric<=0.7 adam", [0]],
  ["opt=adam,sgd", [0, 1, 2]],
  ["opt!=adam", [1, 3]],
  ['opt="rms prop"', [3]],
  ["C>1", [0, 3]],
  ["loss>=4", [3]],
  ["model=svm lr<0.02", [0, 2]],
])("%s finds %j", (text, numbers) => expect(found(text)).toEqual(numbers));

const CHOICES = [
  trial(0, 1, { units: null, name: "a,b" }),
  trial(1, 1, { units: [8, 16], name: "null" }),
  trial(2, 1, { units: ["a b", "c"], name: "" }),
  trial(3, 1, { units: 32 }),
  trial(4, 1, { name: 'no "quotes"' }),
];
const CHOICE_COLUMNS = allColumns(["units", "name"], ["default"], MAXIMIZE);

test.each([
  ["units=null", [0]],
  ["units=", [4]],
  ["units=,null", [0, 4]],
  ["units!=null", [1, 2, 3, 4]],
  ["units=[8,16]", [1]],
  ["units=[8, 16],32", [1, 3]],
  ['units=["a b","c"]', [2]],
  ['name="a,b"', [0]],
  ["name=null", [1]],
  ['name=""', [2]],
  ["name=", [3]],
  ["[8,16]", [1]],
])("%s finds %j among null, lists and no value", (text, numbers) =>
  expect(
    CHOICES.filter((one) => parseFilter(text, CHOICE_COLUMNS).test(one, 0)).map(
      (one) => one.number,
    ),
  ).toEqual(numbers),
);

test.each(["adam", "a,b", "rms prop", "null", "[8,16]", '["a b","c"]', '""', 'no "quotes"'])(
  "the filter reads %s as one value",
  (label) => expect(valuesIn(searchText(label)).length).toBe(1),
);

test("null sorts with the values, and no value last", () => {
  const units = CHOICE_COLUMNS.find((one) => one.key === "p:units")!;

  expect(sorted(CHOICES, units, false, 0).at(-1)!.number).toBe(4);
  expect(sorted(CHOICES, units, true, 0).at(-1)!.number).toBe(4);
  expect(CHOICES.map((one) => units.text(one, 0))).toEqual([
    "null",
    "[8,16]",
    '["a b","c"]',
    "32",
    "",
  ]);
});

test("the tuner of each trial is a column, shown where several have proposed trials", () => {
  const [random, tpe, listed, added] = [0, 1, 2, 3].map((number) => trial(number, 0.5));
  random!.record.provenance = { algorithm: "Random", results: 0 };
  tpe!.record.provenance = { algorithm: "TPE", results: 1 };
  listed!.record.provenance = { algorithm: "Portfolio", tuner: "TPE", results: 1 };
  const column = COLUMNS.find((one) => one.key === "tuner")!;

  expect([random, tpe, listed, added].map((one) => column.text(one!, 0))).toEqual([
    "Random",
    "TPE",
    "TPE",
    "–",
  ]);
  expect(defaultColumns(COLUMNS, [random!, tpe!])).toContain("tuner");
  expect(defaultColumns(COLUMNS, [tpe!, listed!, added!])).not.toContain("tuner");
});

test("the best intermediate result is a column, shown where trials have no result", () => {
  const stopped = trial(1, undefined, {}, "EARLY_STOPPED", { default: [0.2, 0.6] });
  stopped.record.intermediateCount = 2;
  const best = COLUMNS.find((one) => one.key === "best")!;

  expect([best.text(stopped, 0), best.text(TRIALS[0]!, 0)]).toEqual(["0.6", "–"]);
  expect(defaultColumns(COLUMNS, [stopped])).toContain("best");
  expect(defaultColumns(COLUMNS, TRIALS)).not.toContain("best");
  expect(defaultColumns(COLUMNS, TRIALS)).toContain("result");
});

test("invalid parts are reported and ignored", () => {
  const filter = parseFilter("depth>3 lr>many adam", COLUMNS);

  expect(filter.problems).toEqual([
    'There is no column "depth".',
    '"lr>" needs a number, got "many".',
  ]);
  expect(TRIALS.filter((one) => filter.test(one, 0)).map((one) => one.number)).toEqual([0, 2]);
});

test("trials without a value are last in both directions", () => {
  const result = COLUMNS.find((one) => one.key === "result")!;
  const loss = COLUMNS.find((one) => one.key === "m:loss")!;

  expect(sorted(TRIALS, result, false, 0).map((one) => one.number)).toEqual([0, 3, 1, 2]);
  expect(sorted(TRIALS, result, true, 0).map((one) => one.number)).toEqual([1, 3, 0, 2]);
  expect(sorted(TRIALS, loss, true, 0)[0]!.number).toBe(3);
});
