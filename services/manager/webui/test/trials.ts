// Trials for tests.

import type { Json, TrialState } from "../src/api/records";
import { type Trial, trialOf } from "../src/state/trial";

export function trial(
  number: number,
  result: Json | undefined,
  parameters: Json = {},
  state: TrialState = "SUCCEEDED",
): Trial {
  return trialOf({
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
  });
}
