import { expect, test } from "vitest";

import {
  foundIn,
  inOrder,
  keysOf,
  keysText,
  placedAt,
  shifted,
  toggled,
} from "../src/state/choices";

const ALL = [
  { key: "p:lr", title: "learning rate" },
  { key: "p:wd", title: "weight decay" },
  { key: "m:acc", title: "accuracy" },
];

test.each([
  ["", ["p:lr", "p:wd", "m:acc"]],
  ["RATE", ["p:lr"]],
  ["ay we", ["p:wd"]],
  ["none", []],
])("the search %j finds %j", (search, keys) =>
  expect(foundIn(ALL, search).map((one) => one.key)).toEqual(keys),
);

test("chosen items come first in their order, unknown keys are left out", () =>
  expect(inOrder(ALL, ["m:acc", "gone", "p:lr"]).map((one) => one.key)).toEqual([
    "m:acc",
    "p:lr",
    "p:wd",
  ]));

test("a click adds a key at the end or removes it", () => {
  expect(toggled(["a", "b"], "c")).toEqual(["a", "b", "c"]);
  expect(toggled(["a", "b"], "a")).toEqual(["b"]);
});

test.each([
  ["a", 1, ["b", "a", "c"]],
  ["a", -1, ["a", "b", "c"]],
  ["c", 5, ["a", "b", "c"]],
  ["b", -5, ["b", "a", "c"]],
  ["x", 1, ["a", "b", "c"]],
])("%s moves by %d", (key, by, keys) => expect(shifted(["a", "b", "c"], key, by)).toEqual(keys));

test("a key is placed before or behind another", () => {
  expect(placedAt(["a", "b", "c"], 0, 2)).toEqual(["b", "c", "a"]);
  expect(placedAt(["a", "b", "c"], 2, 0)).toEqual(["c", "a", "b"]);
  expect(placedAt(["a", "b"], -1, 0)).toEqual(["a", "b"]);
});

test.each([[["p:lr", "number"]], [["p:a,b", "p:~1", "p:~"]], [["p:a/b", "m:x y"]]])(
  "the keys %j are read from the address as they were written",
  (keys) => expect(keysOf(keysText(keys))).toEqual(keys),
);

test("a key that an address names twice is there once", () =>
  expect(keysOf("a,b,a")).toEqual(["a", "b"]));

test("an address without keys means the usual ones", () => expect(keysOf("")).toBeNull());
