import { expect, test } from "vitest";

import { formFields, parseFields, fieldTexts } from "../src/state/form";
import { dimensionsOf, describe, validateParameters } from "../src/state/space";

const SPACE = {
  lr: { _type: "loguniform", _value: [1e-5, 0.1] },
  layers: { _type: "randint", _value: [1, 6] },
  model: {
    _type: "choice",
    _value: ["linear", { _name: "svm", C: { _type: "uniform", _value: [0, 10] } }],
  },
  _constraints: ["lr < 1"],
};

test("dimensions are said in words, nested ones below their choice", () => {
  const found = dimensionsOf(SPACE);

  expect(found.map((one) => [one.name, one.type, one.range, one.depth])).toEqual([
    ["lr", "loguniform", "1e-5 … 0.1", 0],
    ["layers", "randint", "1 … 5", 0],
    ["model", "choice", "linear, svm", 0],
    ["model/C", "uniform", "0 … 10", 1],
  ]);
  expect(found[0]!.log).toBe(true);
  expect(found[2]!.options).toEqual(["linear", "svm"]);
});

test("a parameter of two branches shows the values of both", () => {
  const branch = (_name: string, type: string, value: number[]) => ({
    _name,
    C: { _type: type, _value: value },
  });
  const space = {
    model: {
      _type: "choice",
      _value: [
        branch("svm", "uniform", [0, 10]),
        branch("mlp", "uniform", [5, 90]),
        branch("tree", "randint", [1, 4]),
      ],
    },
  };
  const equal = {
    model: {
      _type: "choice",
      _value: [branch("a", "uniform", [0, 1]), branch("b", "uniform", [0, 1])],
    },
  };

  const [, found] = dimensionsOf(space);

  expect(found).toMatchObject({
    name: "model/C",
    type: "uniform, randint",
    range: "svm: 0 … 10; mlp: 5 … 90; tree: 1 … 3",
    bounds: [0, 90],
  });
  expect(dimensionsOf(equal)[1]!.range).toBe("0 … 1");
});

test("parameters inside of the space have no problem", () => {
  expect(validateParameters({ lr: 0.01, layers: 5, model: "linear" }, SPACE)).toEqual([]);
  expect(validateParameters({ lr: 0.01, layers: 1, model: { _name: "svm", C: 3 } }, SPACE)).toEqual(
    [],
  );
});

test("every problem is said with name, rule and value", () => {
  const found = validateParameters(
    { lr: 3, layers: 6, model: { _name: "svm", C: 11 }, more: 1 },
    SPACE,
  );

  expect(found).toEqual([
    "lr must be from 1e-5 to 0.1, got 3",
    "layers must be an integer from 1 to 5, got 6",
    "in model: C must be from 0 to 10, got 11",
    "more is not a parameter of the search space",
  ]);
  expect(validateParameters({ lr: 0.01, layers: 2, model: { _name: "tree" } }, SPACE)).toEqual([
    "model must be one of linear, svm, got tree",
  ]);
  expect(validateParameters({ lr: "x", model: "linear" }, SPACE)).toEqual([
    "lr must be a number, got x",
    "layers is missing",
  ]);
});

test("an unreadable space has no dimensions", () => {
  expect(dimensionsOf(null)).toEqual([]);
  expect(dimensionsOf("a value in the byte store")).toEqual([]);
});

test("a form has fields for the branch that is chosen only", () => {
  const texts = fieldTexts({ lr: 0.01, layers: 2, model: { _name: "svm", C: 3 } });

  expect(texts).toEqual({ lr: "0.01", layers: "2", model: "svm", "model/C": "3" });
  expect(formFields(SPACE, texts).map((one) => one.name)).toEqual([
    "lr",
    "layers",
    "model",
    "model/C",
  ]);
  expect(formFields(SPACE, { ...texts, model: "linear" }).map((one) => one.name)).toEqual([
    "lr",
    "layers",
    "model",
  ]);
});

test("the parameters of a form are those it was filled with", () => {
  const parameters = { lr: 0.01, layers: 2, model: { _name: "svm", C: 3 } };

  expect(parseFields(SPACE, fieldTexts(parameters))).toEqual({ parameters, problems: [] });
  expect(
    parseFields(SPACE, { lr: "1e-2", layers: " 3 ", model: "linear", "model/C": "9" }).parameters,
  ).toEqual({ lr: 0.01, layers: 3, model: "linear" });
  expect(parseFields(SPACE, { lr: "{1" }).problems).toEqual([
    "lr must be a number, a word or JSON, got {1",
  ]);
});

test("whole numbers below a bound end before it", () => {
  expect(describe("randint", [0, 10])).toBe("0 … 9");
  expect(describe("randint", [3, 4])).toBe("3");
  expect(describe("randint", [0, 2.5])).toBe("0 … 2");
});

test("choices of a model space are said with their kind and their layers", () => {
  const space = {
    layer: { _type: "choice", _value: [0, 1], kind: "layer", candidates: ["ReLU()", "Tanh()"] },
    skip: { _type: "subset", _value: [0, 1], kind: "inputs", chosen: 1 },
  };

  expect(dimensionsOf(space).map(({ type, range }) => [type, range])).toEqual([
    ["layer", "ReLU(), Tanh()"],
    ["inputs", "0, 1"],
  ]);
  expect(dimensionsOf(space)[0]!.options).toEqual(["0", "1"]);
});
