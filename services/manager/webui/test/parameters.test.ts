import { expect, test } from "vitest";

import { sampleOf, stepNumber } from "../src/state/parameters";

test("the choices of a model stand beside the model in the parameters", () => {
  expect(sampleOf({ sample: { width: 8 }, model: {} })).toEqual({ width: 8 });
  expect(sampleOf({ sample: 3 })).toBeNull();
});

test("trials that users added belong to no step", () => {
  expect(stepNumber({ step: 1 })).toBeNull();
  expect(stepNumber({ job: {}, step: 3 })).toBe(3);
  expect(stepNumber(7)).toBeNull();
});
