// Samples of the CPU, memory and GPU use of a trial, as its agent writes them: a JSON object a line.

import type { Json } from "../api/records";
import { isObject } from "./space";

export interface GpuUse {
  index: number;
  /** Share of the time in which the GPU computed, from 0 to 1. */
  utilization: number;
  /** Bytes. */
  memory: number;
}

export interface ResourceSample {
  /** Milliseconds since 1970. */
  time: number;
  /** Average number of busy cores since the sample before; null: this is the first one. */
  cores: number | null;
  /** Bytes. */
  memory: number;
  processes: number;
  gpus: GpuUse[];
}

/** Unit of a time axis: its name, and its length in milliseconds. */
export interface TimeUnit {
  name: string;
  length: number;
}

const UNITS: readonly TimeUnit[] = [
  { name: "hours", length: 3_600_000 },
  { name: "minutes", length: 60_000 },
  { name: "seconds", length: 1_000 },
];
/** Axes shorter than this number of a unit have the next smaller unit. */
const FEWEST = 3;
/** GPUs that are shown: more than a machine has; a trial may write any number of them. */
export const MOST_GPUS = 32;
const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Return the samples of complete lines; lines that a trial has written over are left out. */
export function samplesOf(text: string): ResourceSample[] {
  const samples: ResourceSample[] = [];
  for (const line of text.split("\n").slice(0, -1)) {
    let fields: Json;
    try {
      fields = JSON.parse(line) as Json;
    } catch {
      continue;
    }
    if (!isObject(fields)) continue;
    const { time, cores, memory, processes, gpus } = fields;
    if (!isNumber(time) || !isNumber(memory)) continue;
    if (time < (samples.at(-1)?.time ?? 0)) continue; // no line goes back
    samples.push({
      time,
      cores: isNumber(cores) ? cores : null,
      memory,
      processes: isNumber(processes) ? processes : 1,
      gpus: Array.isArray(gpus) ? (gpus as unknown[]).filter(isGpu).slice(0, MOST_GPUS) : [],
    });
  }
  return samples;
}

const isNumber = (value: unknown): value is number =>
  typeof value === "number" && Number.isFinite(value) && value >= 0;

function isGpu(value: unknown): value is GpuUse {
  const fields = (value ?? {}) as Record<string, unknown>;
  return isNumber(fields.index) && isNumber(fields.utilization) && isNumber(fields.memory);
}

/** Return the largest unit of which a span of milliseconds has at least three. */
export function unitOf(span: number): TimeUnit {
  return UNITS.find(({ length }) => span >= FEWEST * length) ?? UNITS.at(-1)!;
}

/** Return the indices of the GPUs of any sample, in order; at most `MOST_GPUS`. */
export function gpusOf(samples: readonly ResourceSample[]): number[] {
  const indices = new Set(samples.flatMap(({ gpus }) => gpus.map(({ index }) => index)));
  return [...indices].sort((a, b) => a - b).slice(0, MOST_GPUS);
}

/** Return a value of one GPU at each sample; null where it was not read. */
export function gpuValues(
  samples: readonly ResourceSample[],
  index: number,
  value: (use: GpuUse) => number,
): (number | null)[] {
  return samples.map(({ gpus }) => {
    const use = gpus.find((one) => one.index === index);
    return use ? value(use) : null;
  });
}

/** Return a number of bytes with a unit: `1.5 GiB`. */
export function bytesText(bytes: number): string {
  const [value, unit] = scaled(bytes);
  return `${unit === "B" ? value : value.toPrecision(3)} ${unit}`;
}

/** Return the unit for values up to the largest one, and the bytes in it. */
export function byteUnitOf(values: readonly number[]): { name: string; length: number } {
  const largest = values.reduce((most, one) => Math.max(most, one), 1);
  const [value, name] = scaled(largest);
  return { name, length: largest / value };
}

function scaled(bytes: number): [number, string] {
  let value = bytes;
  let step = 0;
  while (value >= 1024 && step < BYTE_UNITS.length - 1) {
    value /= 1024;
    step += 1;
  }
  return [value, BYTE_UNITS[step]!];
}
