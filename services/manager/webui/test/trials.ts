// Trials for tests.

import type { Json, Trial as TrialRecord, TrialState } from "../src/api/records";
import type { Goals } from "../src/state/objectives";
import { type Ranges, type Trial, trialOf } from "../src/state/trial";

export const MAXIMIZE: Goals = goals("maximize");
export const MINIMIZE: Goals = goals("minimize");

function goals(mode: "maximize" | "minimize"): Goals {
  return { objectives: [{ metric: "default", mode }], limits: [], chosen: {} };
}

export function trial(
  number: number,
  result: Json | undefined,
  parameters: Json = {},
  state: TrialState = "SUCCEEDED",
  ranges: Ranges = {},
): Trial {
  return trialOf(recordOf(number, result, parameters, state), ranges);
}

function recordOf(
  number: number,
  result: Json | undefined,
  parameters: Json,
  state: TrialState,
): TrialRecord {
  return {
    trialJobId: `id${number}`,
    sequenceId: number,
    status: state,
    hyperParameters: [JSON.stringify({ parameters, parameter_source: "algorithm" })],
    logPath: "",
    attempt: 1,
    intermediateCount: 0,
    createdTime: 1000,
    startTime: 2000,
    ...(state === "RUNNING" ? {} : { endTime: 2000 + 1000 * number }),
    ...(result === undefined
      ? {}
      : {
          finalMetricData: [
            {
              timestamp: 0,
              trialJobId: "",
              parameterId: "",
              type: "FINAL" as const,
              sequence: 0,
              data: result,
            },
          ],
        }),
  };
}
