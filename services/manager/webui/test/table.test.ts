import { expect, test } from "vitest";

import { chartHeight } from "../src/state/chart_height";
import { menuPlace } from "../src/state/menu_place";
import { MAX_SELECTED, selectedOf, toggledAll } from "../src/state/selection";
import { clampWidth, placesOf } from "../src/table/column_places";
import { trial } from "./trials";

const COLUMNS = [
  { key: "box", width: 50 },
  { key: "no", width: 50 },
  { key: "lr", width: 100 },
];

test("remaining space is divided among columns whose width the user has not chosen", () => {
  expect(placesOf(COLUMNS, 400).places.map((one) => one.width)).toEqual([100, 100, 200]);
  expect(placesOf(COLUMNS, 400, { lr: 100 }).places.map((one) => one.width)).toEqual([
    150, 150, 100,
  ]);
  expect(placesOf(COLUMNS, 100)).toMatchObject({ width: 200 });
  expect(placesOf(COLUMNS, 400, { lr: NaN }).width).toBe(400);
  expect(placesOf(COLUMNS, 400, { box: 60, no: 60, lr: 60 }).width).toBe(180);
});

test.each([
  [0, 400, [false, false, false]],
  [2, 400, [true, true, false]],
  [3, 400, [true, true, false]], // a third one would take all of the room
  [2, 120, [true, false, false]],
  [2, 0, [true, true, false]], // before the first measurement
])("%d columns are pinned in %d px", (pin, room, pinned) =>
  expect(placesOf(COLUMNS, room, {}, pin).places.map((one) => one.pinned)).toEqual(pinned),
);

test("a width stays between the least and the greatest", () =>
  expect([-5, 100.4, 1e6].map(clampWidth)).toEqual([40, 100, 900]));

test("all matching trials are selected, or none if they were", () => {
  const rows = [trial(0, 1), trial(1, 1)];
  const some = new Set(["id1"]);
  const all = new Set(["id0", "id1", "other"]);

  expect([new Set<string>(), some, all].map((one) => selectedOf(rows, one))).toEqual([
    "none",
    "some",
    "all",
  ]);
  expect(toggledAll(rows, some)).toEqual(["id0", "id1"]);
  expect(toggledAll(rows, all)).toEqual([]);
  expect(selectedOf([], new Set())).toBe("none");
});

test("of many trials the first ones are selected", () => {
  const rows = Array.from({ length: MAX_SELECTED + 5 }, (_, number) => trial(number, 1));
  const chosen = toggledAll(rows, new Set());

  expect(chosen).toHaveLength(MAX_SELECTED);
  expect(selectedOf(rows, new Set(chosen))).toBe("all");
});

const SCREEN = { width: 390, height: 800 };

test.each([
  // button's left and top, panel's width and height, align; shift, height, above
  [20, 100, 220, 300, "left", { shift: 0, maxHeight: 520, above: false }],
  [300, 100, 220, 300, "left", { shift: -138, maxHeight: 520, above: false }],
  [20, 100, 220, 300, "right", { shift: -12, maxHeight: 520, above: false }],
  [20, 700, 220, 300, "left", { shift: 0, maxHeight: 520, above: true }],
  [20, 500, 220, 600, "left", { shift: 0, maxHeight: 486, above: true }],
  [20, 700, 220, 40, "left", { shift: 0, maxHeight: 54, above: false }],
] as const)("a menu at %d, %d of %d × %d px, %s", (left, top, width, height, align, place) =>
  expect(
    menuPlace({ left, right: left + 80, top, bottom: top + 32 }, { width, height }, SCREEN, align),
  ).toEqual(place),
);

test.each([
  [900, 70, 570],
  [500, 70, 320],
  [3000, 70, 1000],
  [900, -500, 640],
])("in a window of %d px, from %d px on, a chart has %d px", (height, top, chart) =>
  expect(chartHeight(height, top)).toBe(chart),
);
