import { expect, test } from "vitest";

import {
  MOST_GPUS,
  byteUnitOf,
  bytesText,
  gpuValues,
  gpusOf,
  samplesOf,
  unitOf,
} from "../src/state/resource_use";

const LINES = [
  '{"time":1000,"memory":2048,"processes":1}',
  '{"time":2000,"memory":4096,"processes":3,"cores":1.5,"gpus":[{"index":2,"utilization":0.5,"memory":7}]}',
];

test("lines become samples, the first one without cores", () => {
  const [first, second] = samplesOf(LINES.join("\n") + "\n");

  expect(first).toEqual({ time: 1000, memory: 2048, processes: 1, cores: null, gpus: [] });
  expect(second!.cores).toBe(1.5);
  expect(second!.gpus).toEqual([{ index: 2, utilization: 0.5, memory: 7 }]);
});

test("a line that is not complete yet waits for its end", () => {
  expect(samplesOf(LINES.join("\n"))).toHaveLength(1);
});

test.each([
  "no JSON",
  "null",
  "[1]",
  '{"time":"x","memory":1}',
  '{"time":1,"memory":-1}',
  '{"time":1,"memory":1e999}',
])("what a trial has written into the file is left out: %s", (line) => {
  expect(samplesOf(`${line}\n${LINES[0]}\n`)).toHaveLength(1);
});

test("a sample before the one above it is left out", () => {
  expect(samplesOf(`${LINES[1]}\n${LINES[0]}\n`)).toHaveLength(1);
});

test.each([
  [0, "seconds"],
  [179_999, "seconds"],
  [180_000, "minutes"],
  [3 * 3_600_000, "hours"],
])("the unit of a span of %i ms is %s", (span, name) => {
  expect(unitOf(span).name).toBe(name);
});

test("GPUs are those of any sample, and a missing value is null", () => {
  const samples = samplesOf(LINES.join("\n") + "\n");

  expect(gpusOf(samples)).toEqual([2]);
  expect(gpuValues(samples, 2, (use) => use.memory)).toEqual([null, 7]);
});

test("GPUs that a trial has made up are cut", () => {
  const gpus = Array.from({ length: 99 }, (_, index) => ({ index, utilization: 0, memory: 0 }));
  const lines = gpus.map((gpu) => JSON.stringify({ time: 1, memory: 1, gpus: [gpu] }));
  const [first] = samplesOf(`${JSON.stringify({ time: 1, memory: 1, gpus })}\n`);

  expect(first!.gpus).toHaveLength(MOST_GPUS);
  expect(gpusOf(samplesOf(`${lines.join("\n")}\n`))).toHaveLength(MOST_GPUS);
});

test.each([
  [0, "0 B"],
  [1023, "1023 B"],
  [1536, "1.50 KiB"],
  [5 * 1024 ** 3, "5.00 GiB"],
  [2 * 1024 ** 5, "2.05e+3 TiB"],
])("%i bytes are %s", (bytes, text) => {
  expect(bytesText(bytes)).toBe(text);
});

test("the unit of an axis fits its largest value", () => {
  expect(byteUnitOf([1, 3 * 1024 ** 2])).toEqual({ name: "MiB", length: 1024 ** 2 });
  expect(byteUnitOf([])).toEqual({ name: "B", length: 1 });
});
