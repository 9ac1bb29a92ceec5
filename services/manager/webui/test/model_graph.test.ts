import { expect, test } from "vitest";

import type { Json } from "../src/api/records";
import { choicesOf } from "../src/state/architectures";
import {
  canOpen,
  candidateText,
  choiceAt,
  chosenInputs,
  modelGraphOf,
  stepsOf,
  summaryOf,
  usesEdge,
  usesSteps,
} from "../src/state/model_graph";
import { trial } from "./trials";

const SPACE = choicesOf({
  width: { _type: "choice", _value: [8, 16], kind: "value" },
  block: { _type: "choice", _value: ["conv", "0"], kind: "layer" },
  kernel: {
    _type: "choice",
    _value: [3, 5],
    kind: "value",
    inside: { label: "block", value: "conv" },
  },
  depth: { _type: "choice", _value: [1, 2, 3], kind: "depth" },
});
const RECORD: Json = {
  graphs: [
    {
      name: "Net",
      traced: true,
      nodes: [
        node("x", "input"),
        {
          name: "block",
          kind: "layer",
          text: "",
          labels: ["block", "kernel"],
          candidates: [
            { name: "conv", text: "Conv2d(8, 8, kernel)", graph: 1 },
            { name: "0", text: "Identity()" },
          ],
        },
        {
          name: "blocks",
          kind: "depth",
          text: "",
          labels: ["depth"],
          candidates: [0, 1, 2].map((at) => ({ name: String(at), text: `Block${at}()` })),
        },
        { name: "sum", kind: "inputs", text: "of 2 inputs", labels: ["inputs"] },
        node("head", "module", { labels: ["width"], graph: 1 }),
      ],
      edges: [
        [0, 1],
        [1, 2],
        [0, 3, "inputs", 0],
        [2, 3, "inputs", 1],
        [3, 4],
      ],
    },
    { name: "Inner", traced: false, nodes: [node("inner", "module", { graph: 1 })], edges: [] },
  ],
  cut: false,
};

test("a record gives graphs, nodes and edges", () => {
  const found = modelGraphOf(RECORD)!;

  expect(found.cut).toBe(false);
  expect(found.graphs.map((graph) => [graph!.name, graph!.traced])).toEqual([
    ["Net", true],
    ["Inner", false],
  ]);
  const [net] = found.graphs;
  expect(net!.nodes.map(({ kind }) => kind)).toEqual([
    "input",
    "layer",
    "depth",
    "inputs",
    "module",
  ]);
  expect(net!.nodes[1]!.candidates.map(({ graph }) => graph)).toEqual([1, null]);
  expect(net!.edges[0]).toEqual({ from: 0, to: 1, condition: null });
  expect(net!.edges[3]).toEqual({ from: 2, to: 3, condition: { label: "inputs", value: 1 } });
  expect(summaryOf(net!)).toBe("5 nodes, 4 of them with choices");
});

test.each<[string, Json | undefined]>([
  ["nothing", undefined],
  ["null", null],
  ["a list", []],
  ["no graphs", { graphs: 3 }],
  ["a malformed network", { graphs: [null, { name: "a", nodes: [node("x", "input")] }] }],
  ["a network without nodes", { graphs: [{ name: "a", nodes: [{ name: 1 }] }] }],
])("there is no network in %s", (_, record) => expect(modelGraphOf(record)).toBeNull());

test("malformed parts are left out, and edges keep their nodes", () => {
  const record: Json = {
    graphs: [
      {
        name: 5,
        nodes: [
          null,
          node("a", "input"),
          node("b", "unknown"),
          { kind: "module" },
          {
            name: "c",
            kind: "layer",
            labels: [1, "l"],
            graph: 1.5,
            candidates: [1, { name: "d" }],
          },
          node("e", "module", { graph: 9, labels: "l", candidates: {} }),
          node("f", "module", { graph: 1 }),
        ],
        edges: [
          [1, 4],
          [4, 4],
          [0, 1],
          [2, 5],
          [1, 99],
          [-1, 1],
          ["1", 4],
          [1],
          null,
          [4, 5, 3, 1],
          [4, 5, "l"],
          [4, 5, "l", null],
        ],
      },
      "none",
    ],
  };

  const graph = modelGraphOf(record)!.graphs[0]!;

  expect(graph.name).toBe("");
  expect(graph.nodes.map(({ name, graph }) => [name, graph])).toEqual([
    ["a", null],
    ["c", null],
    ["e", null],
    ["f", null],
  ]);
  expect(graph.nodes[1]).toMatchObject({ labels: ["l"], candidates: [{ name: "d", text: "" }] });
  expect(graph.edges).toEqual([
    { from: 0, to: 1, condition: null },
    { from: 1, to: 2, condition: { label: "l", value: null } },
  ]);
});

test("a record without an end is cut", () => {
  const nodes = Array.from({ length: 5_000 }, (_, at) => node(String(at), "module"));

  const found = modelGraphOf({ graphs: [{ name: "a", nodes, edges: [] }] })!;

  expect(found.cut).toBe(true);
  expect(found.graphs[0]!.nodes.length).toBe(3_000);
});

test("a path names the graphs from the network to the open one", () => {
  const model = modelGraphOf(RECORD)!;

  expect(stepsOf(model, "").map(({ name }) => name)).toEqual(["Net"]);
  expect(stepsOf(model, "4").map(({ name, graph }) => [name, graph])).toEqual([
    ["Net", 0],
    ["head", 1],
  ]);
  expect(stepsOf(model, "1:0").map(({ name, path }) => [name, path])).toEqual([
    ["Net", ""],
    ["block · conv: Conv2d(8, 8, kernel)", "1:0"],
  ]);
});

test.each(["0", "99", "1", "1:1", "1:9", "x", "4x", "-1", ",", "1:0:0"])(
  "the path %s names no graph inside of the network",
  (path) => expect(stepsOf(modelGraphOf(RECORD)!, path).length).toBe(1),
);

test("a graph that contains itself cannot be opened within itself", () => {
  const model = modelGraphOf(RECORD)!;
  const steps = stepsOf(model, "4,0,0,0,0");

  expect(steps.map(({ graph }) => graph)).toEqual([0, 1]);
  expect(canOpen(steps, 1)).toBe(false);
  expect(canOpen(steps, 0)).toBe(false);
  expect(canOpen(steps, null)).toBe(false);
});

test.each([
  ["conv", "Conv2d()", "conv: Conv2d()"],
  ["0", "Conv2d()", "Conv2d()"],
  ["conv", "", "conv"],
  ["conv", "conv", "conv"],
])("a candidate %s with the layer %s is named %s", (name, text, shown) =>
  expect(candidateText({ name, text, graph: null })).toBe(shown),
);

test("a model marks the layer that it chose", () => {
  const [, block] = modelGraphOf(RECORD)!.graphs[0]!.nodes;

  expect(choiceAt(block!, SPACE, model({ block: "conv", kernel: 3 }))).toEqual({
    text: "chosen: conv",
    used: [true, false],
  });
  expect(choiceAt(block!, SPACE, model({ block: 0 }))).toEqual({
    text: "chosen: Identity()",
    used: [false, true],
  });
});

test("a model marks the blocks within its depth", () => {
  const blocks = modelGraphOf(RECORD)!.graphs[0]!.nodes[2]!;

  expect(choiceAt(blocks, SPACE, model({ depth: 2 }))).toEqual({
    text: "chosen: 2 of 3",
    used: [true, true, false],
  });
});

test("other choices are said with their values", () => {
  const [x, , , sum, head] = modelGraphOf(RECORD)!.graphs[0]!.nodes;

  expect(choiceAt(x!, SPACE, model({}))).toBeNull();
  expect(choiceAt(sum!, SPACE, model({ inputs: [0, 1] }))!.text).toBe("chosen: inputs [0,1]");
  expect(choiceAt(head!, SPACE, model({ width: 16 }))!.text).toBe("chosen: width 16");
  expect(choiceAt(head!, SPACE, model({}))!.text).toBe("not used by this model");
  const many = { ...head!, labels: ["a", "b", "c", "d"] };
  expect(choiceAt(many, [], model({ a: 1, b: 2, c: 3, d: 4 }))!.text).toBe(
    "chosen: a 1, b 2, c 3, 1 more",
  );
});

test("the inputs that a model chose are said by their names", () => {
  const net = modelGraphOf(RECORD)!.graphs[0]!;
  const chosen = model({ inputs: [1], block: "conv" });
  const read = chosenInputs(net, chosen);

  expect(read).toEqual([[], [], [], ["blocks"], []]);
  expect(choiceAt(net.nodes[3]!, SPACE, chosen, read[3]!)!.text).toBe("chosen: blocks");
  expect(choiceAt(net.nodes[1]!, SPACE, chosen, ["x"])!.text).toBe("chosen: conv; reads x");
  expect(chosenInputs(net, model({})).flat()).toEqual([]);
});

test("a node whose inputs are chosen depends on that choice", () => {
  const record = {
    graphs: [
      { name: "a", nodes: [node("x", "input"), node("y", "module")], edges: [[0, 1, "in", 0]] },
    ],
  };

  expect(modelGraphOf(record)!.graphs[0]!.nodes[1]!.labels).toEqual(["in"]);
});

test("a choice inside of a candidate that was not chosen is not used", () => {
  const inner = { ...modelGraphOf(RECORD)!.graphs[0]!.nodes[4]!, labels: ["kernel"] };

  expect(choiceAt(inner, SPACE, model({ block: "0", kernel: 3 }))!.text).toBe(
    "not used by this model",
  );
  expect(choiceAt(inner, SPACE, model({ block: "conv", kernel: 3 }))!.text).toBe(
    "chosen: kernel 3",
  );
});

test("an edge with a condition is used by the models that chose its value", () => {
  const [, , edge] = modelGraphOf(RECORD)!.graphs[0]!.edges;

  expect(usesEdge(edge!, model({ inputs: [0, 1] }))).toBe(true);
  expect(usesEdge(edge!, model({ inputs: 0 }))).toBe(true);
  expect(usesEdge(edge!, model({ inputs: [1] }))).toBe(false);
  expect(usesEdge(edge!, model({ inputs: 1 }))).toBe(false);
  expect(usesEdge(edge!, model({}))).toBe(true);
  expect(usesEdge({ ...edge!, condition: null }, model({ inputs: 1 }))).toBe(true);
});

test("a graph inside of a candidate is used by the models that chose it", () => {
  const steps = stepsOf(modelGraphOf(RECORD)!, "1:0");

  expect(usesSteps(steps, SPACE, model({ block: "conv" }))).toBe(true);
  expect(usesSteps(steps, SPACE, model({ block: "0" }))).toBe(false);
});

function node(name: string, kind: string, more: { [key: string]: Json } = {}): Json {
  return { name, kind, text: "", ...more };
}

function model(sample: { [key: string]: Json }) {
  return trial(0, 1, { sample, model: {}, nni_version: "4" });
}
