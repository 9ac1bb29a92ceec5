import { expect, test } from "vitest";

import { jobOf, layersOf, stepsOf } from "../src/state/compression";
import { trial } from "./trials";

const JOB = { algorithm: { name: "L1NormPruner" }, schedule: { iterations: 2 }, speedup: true };

test("only an experiment with a description is a job", () => {
  expect(jobOf({ compression: JOB })).toEqual(JOB);
  expect(jobOf({ tuner: { name: "TPE" } })).toBeNull();
});

test("all steps of a job are listed, those without a trial too", () => {
  const steps = stepsOf(JOB, [
    trial(
      0,
      { default: 0.5, sparsity: { "a.weight": 0.4, "a.bias": 1, "b.weight": 0.6 } },
      step(1),
    ),
  ]);

  expect(steps.map(({ number, kind }) => [number, kind])).toEqual([
    [1, "prune"],
    [2, "prune"],
    [3, "speedup"],
  ]);
  expect(steps.map(({ trial: one }) => one?.number)).toEqual([0, undefined, undefined]);
  expect(steps[0]!.sparsity).toBeCloseTo(0.5);
  expect(steps[1]!.sparsity).toBeNull();
});

test("the speedup is followed by what the description asks for", () => {
  const full = {
    ...JOB,
    speedup: { fine_tuning: { max_steps: 5 } },
    quantization: true,
    export: { threads: 2 },
  };

  expect(
    stepsOf(full, [])
      .slice(2)
      .map(({ kind }) => kind),
  ).toEqual(["speedup", "fine_tune", "quantize", "export"]);
  expect(stepsOf({ ...JOB, speedup: {}, export: false }, []).at(-1)?.kind).toBe("speedup");
});

test("a step that ran again counts with its last trial, in whatever order they come", () => {
  const again = [trial(4, 2, step(1)), trial(1, 1, step(1))];

  expect(stepsOf({}, again).map(({ trial: one }) => one?.number)).toEqual([4]);
});

test("layers keep the order of the model", () => {
  const found = layersOf(trial(0, { sparsity: { "z.weight": 0, "a.weight": 1, odd: "x" } }));

  expect(found).toEqual([
    { target: "z.weight", sparsity: 0 },
    { target: "a.weight", sparsity: 1 },
  ]);
  expect(layersOf(undefined)).toEqual([]);
});

function step(number: number) {
  return { job: JOB, step: number };
}
