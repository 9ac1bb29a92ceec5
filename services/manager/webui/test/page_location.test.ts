import { expect, test } from "vitest";

import { locationOf, moved, search, sortOf, sortText } from "../src/state/page_location";
import { neighbour } from "../src/state/trial";
import { trial } from "./trials";

test.each([
  ["/p/detail", "?trial=abcde", { view: "detail", trial: "abcde", values: {} }],
  [
    "/detail",
    "?q=lr%3A..0.1&state=FAILED&sort=-result&select=a,b&compare=1&chart=front",
    {
      view: "detail",
      trial: "",
      values: { q: "lr:..0.1", state: "FAILED", sort: "-result", select: "a,b", compare: "1" },
    },
  ],
  [
    "/charts",
    "?chart=curves&metric=loss",
    { view: "charts", trial: "", values: { chart: "curves", metric: "loss" } },
  ],
  [
    "/charts",
    "?chart=scatter&x=p%3Alr&y=duration&span=1..2&compare=1",
    {
      view: "charts",
      trial: "",
      values: { chart: "scatter", x: "p:lr", y: "duration", span: "1..2" },
    },
  ],
  [
    "/experiment",
    "?select=a,b&compare=1&by=time",
    { view: "experiment", trial: "", values: { select: "a,b", compare: "1", by: "time" } },
  ],
  ["/detail", "?trial=a&tab=log", { view: "detail", trial: "a", values: { tab: "log" } }],
  ["/detail", "?tab=log", { view: "detail", trial: "", values: {} }],
  ["/", "", { view: "oview", trial: "", values: {} }],
  ["/toString", "", { view: "oview", trial: "", values: {} }],
])("the location of %s%s is read", (pathname, query, place) =>
  expect(locationOf({ pathname, search: query }, true)).toEqual(place),
);

test("without an experiment the view is that of all experiments", () =>
  expect(locationOf({ pathname: "/oview", search: "" }, false).view).toBe("experiment"));

test.each([
  "?id=exp00001&trial=abcde&q=failed&sort=-number&tab=log",
  "?id=exp00001&q=&state=FAILED%2CRUNNING",
  "?id=exp00001",
])("%s is written as it was read", (query) =>
  expect(search(locationOf({ pathname: "/detail", search: query }, true), "exp00001")).toBe(query),
);

test("another view begins without the values of the one before, a trial opens within them", () => {
  const place = locationOf({ pathname: "/detail", search: "?q=failed" }, true);

  expect(moved(place, { view: "charts" })).toEqual({ view: "charts", trial: "", values: {} });
  expect(moved(place, { trial: "abcde" })).toMatchObject({
    trial: "abcde",
    values: { q: "failed" },
  });
  expect(moved(place, { values: { sort: "id" } }).values).toEqual({ q: "failed", sort: "id" });
});

test("an order is a column, with a minus if it is descending", () => {
  expect(sortOf("-p:lr")).toEqual({ key: "p:lr", descending: true });
  expect(sortOf("id")).toEqual({ key: "id", descending: false });
  expect(sortText({ key: "result", descending: true })).toBe("-result");
});

test("next and previous follow the list, not the numbers", () => {
  const list = [trial(7, 1), trial(2, 1), trial(5, 1)];

  expect(neighbour(list, list[0]!, 1)?.number).toBe(2);
  expect(neighbour(list, list[2]!, 1)).toBeUndefined();
  expect(neighbour(list, list[0]!, -1)).toBeUndefined();
  expect(neighbour(list, trial(9, 1), 1)?.number).toBe(7);
});
