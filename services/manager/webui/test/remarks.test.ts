import { expect, test } from "vitest";

import { allColumns, defaultColumns } from "../src/state/columns";
import { changedRecord, needsRecord } from "../src/state/deltas";
import { parseFilter } from "../src/state/filter";
import { readTags, remarksText } from "../src/state/remarks";
import { type Trial, trialOf } from "../src/state/trial";
import { MAXIMIZE, trial } from "./trials";

const plain = trial(0, 0.5);
const EVENT = { trialId: "id1", note: "Look again", tags: ["2nd run", "paper"], starred: true };
const remarked: Trial = trialOf(changedRecord(trial(1, 0.7).record, "remarks_changed", EVENT)!, {});
const COLUMNS = allColumns([], ["default"], MAXIMIZE);
const found = (text: string) =>
  [plain, remarked]
    .filter((one) => parseFilter(text, COLUMNS).test(one, 0))
    .map((one) => one.number);

test("tags of a text are unique and without spaces around them", () => {
  expect(readTags(" a, b c ,a,, ")).toEqual(["a", "b c"]);
  expect(readTags("")).toEqual([]);
});

test("an event has all remarks, and no record is requested", () => {
  expect(remarked.record.remarks).toEqual({
    note: "Look again",
    tags: ["2nd run", "paper"],
    starred: true,
  });
  expect(needsRecord("remarks_changed", EVENT)).toBe(false);
  expect(changedRecord(remarked.record, "remarks_changed", { trialId: "id1" })?.remarks).toEqual({
    note: "",
    tags: [],
    starred: false,
  });
});

test.each([
  ["paper", [1]],
  ["tag=paper", [1]],
  ['tags="2nd run"', [1]],
  ["tag=pap", []],
  ["tag!=paper", [0]],
  ["tag=", [0]],
  ["starred", [1]],
  ["star=yes", [1]],
  ["star=", [0]],
  ["again", [1]],
])("the search %s finds trials by their remarks", (text, numbers) => {
  expect(found(text)).toEqual(numbers);
});

test("columns of remarks are visible once a trial has some", () => {
  expect(defaultColumns(COLUMNS, [plain])).not.toContain("tags");
  expect(defaultColumns(COLUMNS, [plain, remarked].values())).toEqual(
    expect.arrayContaining(["star", "tags"]),
  );
  expect(remarksText(undefined)).toBe("");
});
