import { expect, test } from "vitest";

import { boxAround } from "../src/charts/chart_export";
import { importancePicture } from "../src/charts/importance";
import { type Shape, escaped, svgOf } from "../src/charts/picture";

const PAGE = { width: 100.2, height: 50, background: "#fff", font: "sans-serif", title: "T" };

function svg(...shapes: Shape[]): string {
  return svgOf([{ picture: { width: 10, height: 10, shapes }, left: 3, top: 4 }], PAGE);
}

test("a document has a size, a title, a background and its pictures at their places", () => {
  const text = svg();

  expect(text).toContain('width="101" height="50" viewBox="0 0 101 50"');
  expect(text).toContain("<title>T</title>");
  expect(text).toContain('<rect width="101" height="50" fill="#fff"/>');
  expect(text).toContain('<g transform="translate(3 4)">');
});

test.each<[string, Shape, string]>([
  [
    "a line",
    { kind: "line", points: [[0, 1], [2.006, 3]], stroke: "#123", width: 2, dash: [6, 4] }, // prettier-ignore
    '<polyline points="0,1 2.01,3" fill="none" stroke="#123" stroke-width="2" stroke-linejoin="round" stroke-dasharray="6 4"/>',
  ],
  [
    "a transparent colour",
    { kind: "line", points: [[0, 0]], stroke: "rgba(1,2,3,0.5)", opacity: 0.25 },
    '<polyline points="0,0" fill="none" stroke="rgb(1,2,3)" stroke-opacity="0.5" stroke-width="1" stroke-linejoin="round" opacity="0.25"/>',
  ],
  [
    "a disc",
    { kind: "mark", x: 1, y: 2, size: 6, symbol: "disc", colour: "red" },
    '<circle cx="1" cy="2" r="3" fill="red"/>',
  ],
  [
    "a cross",
    { kind: "mark", x: 2, y: 2, size: 2, symbol: "cross", colour: "red" },
    '<path d="M1 1L3 3M1 3L3 1" fill="none" stroke="red" stroke-width="1.5"/>',
  ],
  [
    "a turned text",
    { kind: "text", x: 1, y: 2, text: "a < b & c", anchor: "middle", colour: "red", turned: true },
    '<text x="1" y="2" text-anchor="middle" dominant-baseline="central" font-size="12" fill="red" transform="rotate(-90 1 2)">a &lt; b &amp; c</text>',
  ],
  [
    "what is clipped",
    { kind: "clip", x: 1, y: 2, width: 3, height: 4, shapes: [] },
    '<svg x="1" y="2" width="3" height="4" viewBox="1 2 3 4" overflow="hidden"></svg>',
  ],
])("%s is written", (_name, shape, text) => expect(svg(shape)).toContain(text));

test("a pattern is defined once and used by each bar of its colour", () => {
  const bar = (x: number, colour: string): Shape => ({
    ...{ kind: "rect", x, y: 0, width: 1, height: 1, colour, pattern: "hatched" },
  });
  const text = svg(bar(0, "red"), bar(1, "red"), bar(2, "blue"));

  expect(text.match(/<pattern /g)).toHaveLength(2);
  expect(text.match(/url\(#pattern-0\)/g)).toHaveLength(2);
  expect(text.match(/url\(#pattern-1\)/g)).toHaveLength(1);
});

test("text of users is no markup, and what XML forbids is replaced", () =>
  expect(escaped('</text><script>"\u0000\u001b')).toBe(
    "&lt;/text&gt;&lt;script&gt;&quot;\ufffd\ufffd",
  ));

test("the box around others has a margin", () =>
  expect(
    boxAround([
      { left: 20, top: 30, right: 40, bottom: 50 },
      { left: 30, top: 20, right: 60.5, bottom: 40 },
    ]),
  ).toEqual({ left: 8, top: 8, width: 65, height: 54 }));

test("bars of the importance are as long as their shares", () => {
  const colours = { ink: "i", muted: "m", track: "t", bar: "b" };
  const { shapes, height } = importancePicture(
    [
      { name: "lr", share: 0.75 },
      { name: "interactions", share: 0.25, muted: true },
    ],
    480,
    colours,
  );
  const bars = shapes.filter((one) => one.kind === "rect");

  expect(bars.map(({ width, colour }) => [width, colour])).toEqual([
    [200, "t"],
    [150, "b"],
    [200, "t"],
    [50, "m"],
  ]);
  expect(height).toBe(56);
});
