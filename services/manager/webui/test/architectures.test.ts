import { expect, test } from "vitest";

import {
  choicesOf,
  chosenText,
  frontOf,
  isArchitectureSpace,
  tallyOf,
  usesChoice,
} from "../src/state/architectures";
import { trial } from "./trials";

const SPACE = {
  width: { _type: "choice", _value: [8, 16], kind: "value" },
  rate: { _type: "loguniform", _value: [0.01, 1], kind: "number", inside: inside("wide") },
  layer: {
    _type: "choice",
    _value: ["wide", "none"],
    kind: "layer",
    candidates: ["Linear(4, 3)", "Identity()"],
  },
  skip: { _type: "subset", _value: [0, 1, 2], kind: "inputs", chosen: 2 },
};

test("only a space whose entries have a kind is one of architectures", () => {
  expect(isArchitectureSpace(SPACE)).toBe(true);
  expect(isArchitectureSpace({ lr: { _type: "uniform", _value: [0, 1] } })).toBe(false);
  expect(isArchitectureSpace(null)).toBe(false);
});

test("a choice inside a candidate follows its choice, one level deeper", () => {
  const found = choicesOf(SPACE);

  expect(found.map(({ label, depth }) => [label, depth])).toEqual([
    ["width", 0],
    ["layer", 0],
    ["rate", 1],
    ["skip", 0],
  ]);
  expect(found[2]!.inside).toEqual({ label: "layer", candidate: "wide" });
  expect(found[2]!.range).toBe("0.01 … 1");
  expect(found[1]!.candidates.map(({ text }) => text)).toEqual([
    "wide: Linear(4, 3)",
    "none: Identity()",
  ]);
});

test("each candidate is counted once for each model that chose it", () => {
  const models = [model(0, 1, { skip: [0, 2], width: 8 }), model(1, 2, { skip: [0, 1], width: 8 })];
  const [width, , , skip] = choicesOf(SPACE);

  expect(tallyOf(width!, models).counts).toEqual([2, 0]);
  expect(tallyOf(skip!, models).counts).toEqual([2, 1, 1]);
});

test("numbers have an extent instead of counts", () => {
  const rate = choicesOf(SPACE)[2]!;

  expect(tallyOf(rate, [model(0, 1, { rate: 0.5 }), model(1, 1, { rate: 0.1 })])).toEqual({
    counts: [],
    extent: [0.1, 0.5],
  });
  expect(tallyOf(rate, []).extent).toBeNull();
});

test("what a model chose is said with the names of the candidates", () => {
  const [, layer, , skip] = choicesOf(SPACE);
  const one = model(0, 1, { layer: "none", skip: [] });

  expect(chosenText(layer!, one)).toBe("none: Identity()");
  expect(chosenText(skip!, one)).toBe("none");
  expect(chosenText(choicesOf(SPACE)[0]!, one)).toBe("–");
});

test("a choice inside a candidate has no effect where another one is chosen", () => {
  const choices = choicesOf(SPACE);
  const rate = choices[2]!;

  expect(usesChoice(rate, choices, model(0, 1, { layer: "wide", rate: 1 }))).toBe(true);
  expect(usesChoice(rate, choices, model(0, 1, { layer: "none", rate: 1 }))).toBe(false);
  expect(usesChoice(choices[0]!, choices, model(0, 1, { layer: "none" }))).toBe(true);
});

test("the choices of a model stand beside the model in the parameters", () => {
  expect(model(0, 1, { "cell/op_1": 2 }).flat).toEqual({ "cell/op_1": 2 });
});

test("the front holds the models that no other one dominates", () => {
  const found = frontOf(
    [
      [0.9, 5],
      [0.8, 3],
      [0.8, 4],
      [0.7, 3],
      [0.9, 5],
      [NaN, 1],
    ].map(([accuracy, latency], i) => model(i, { default: accuracy!, latency: latency! }, {})),
    [
      { key: "default", minimize: false },
      { key: "latency", minimize: true },
    ],
  );

  expect(found.map(({ number }) => number)).toEqual([0, 4, 1]);
});

function inside(value: string) {
  return { label: "layer", value };
}

function model(number: number, result: Parameters<typeof trial>[1], sample: object) {
  return trial(number, result, { sample: sample as never, model: { big: [1, 2] } });
}
