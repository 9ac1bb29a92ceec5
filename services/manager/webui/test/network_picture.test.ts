import { expect, test } from "vitest";

import { boxSize } from "../src/charts/network_boxes";
import { layoutOf } from "../src/charts/network_layout";
import { networkPicture } from "../src/charts/network_picture";
import { svgOf } from "../src/charts/picture";
import { modelGraphOf } from "../src/state/model_graph";

const COLOURS = {
  ink: "ink",
  muted: "muted",
  card: "card",
  shade: "shade",
  line: "line",
  accent: "accent",
  accentShade: "accent-shade",
};
const GRAPH = modelGraphOf({
  graphs: [
    {
      name: "Net",
      nodes: [
        { name: "x", kind: "input", text: "" },
        {
          name: "block",
          kind: "layer",
          labels: ["block"],
          candidates: [{ name: "conv", text: "Conv2d()" }, { name: "skip" }],
        },
        { name: "join", kind: "inputs", text: "of 2 inputs", labels: ["join"] },
      ],
      edges: [
        [0, 1],
        [1, 2, "join", 0],
        [0, 2, "join", 1],
      ],
    },
  ],
})!.graphs[0]!;
const LAYOUT = layoutOf(
  GRAPH.nodes.map((node) => boxSize(node, false)),
  GRAPH.edges,
);

function svg(choices: { text: string; used: boolean[] }[], edges: boolean[]) {
  const picture = networkPicture(GRAPH, LAYOUT, { choices, edges, isUsed: true }, COLOURS);
  const { width, height } = picture;
  const page = { width, height, background: "white", font: "sans", title: "Net" };
  return svgOf([{ picture, left: 0, top: 0 }], page);
}

test("the picture of the space has all texts and edges", () => {
  const found = svg([], [true, true, true]);

  for (const text of ["x", "block", "choice: block", "· conv: Conv2d()", "· skip", "of 2 inputs"])
    expect(found).toContain(`>${text}</text>`);
  expect(found.match(/<polyline/g)!.length).toBe(6); // with the heads
  expect(found).not.toContain("stroke-dasharray");
  expect(found).not.toContain("NaN");
});

test("the picture of a model marks what it chose", () => {
  const chosen = [undefined, { text: "chosen: conv", used: [true, false] }];

  const found = svg(chosen as { text: string; used: boolean[] }[], [true, true, false]);

  expect(found).toContain(">✓ conv: Conv2d()</text>");
  expect(found).toContain(">· skip</text>");
  expect(found).toContain(">chosen: conv</text>");
  expect(found.match(/stroke-dasharray/g)!.length).toBe(1);
});
