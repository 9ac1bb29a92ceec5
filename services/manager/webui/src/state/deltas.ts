// Changes of a trial's record by an event of the log, so that it need not be requested again.

import type { Json, Trial as TrialRecord, TrialState } from "../api/records";

/** Fields of an event that the page reads. */
export interface EventData {
  /** Milliseconds since 1970. */
  time?: number;
  trialId?: string;
  attempt?: number;
  parameterId?: number;
  metric?: { type?: string; sequence?: number; value?: Json; reportedAt?: number };
  startedAt?: number;
  runnerId?: string;
  endedAt?: number;
  state?: TrialState;
  note?: string;
  tags?: string[];
  starred?: boolean;
}

/**
 * Return the record after an event; null if the event does not change it.
 *
 * Repeated events change nothing: the record may have been requested after them.
 */
export function changedRecord(
  record: TrialRecord,
  kind: string,
  data: EventData,
): TrialRecord | null {
  if ((data.attempt ?? record.attempt) < record.attempt) return null;
  switch (kind) {
    case "metric_reported":
      return withMetric(record, data);
    case "trial_started":
      if (isEnded(record.status)) return null;
      return {
        ...record,
        status: "RUNNING",
        ...(data.startedAt === undefined ? {} : { startTime: data.startedAt }),
        ...(data.runnerId ? { runnerId: data.runnerId } : {}),
      };
    case "trial_ended":
      if (!data.state) return null;
      return {
        ...record,
        status: data.state,
        ...(data.endedAt === undefined ? {} : { endTime: data.endedAt }),
      };
    case "remarks_changed":
      return {
        ...record,
        remarks: { note: data.note ?? "", tags: data.tags ?? [], starred: data.starred ?? false },
      };
    default:
      return null;
  }
}

function isEnded(status: TrialState): boolean {
  return !["WAITING", "RUNNING", "UNKNOWN"].includes(status);
}

function withMetric(record: TrialRecord, data: EventData): TrialRecord | null {
  const value = data.metric?.value ?? null;
  const sequence = data.metric?.sequence ?? 0;
  if (data.metric?.type === "PERIODICAL") {
    if (sequence < record.intermediateCount) return null;
    return { ...record, intermediateCount: sequence + 1, latestIntermediate: value };
  }
  if (data.metric?.type !== "FINAL" || value === null) return null;
  const result = {
    timestamp: data.metric.reportedAt ?? data.time ?? 0,
    trialJobId: record.trialJobId,
    parameterId: String(data.parameterId ?? 0),
    type: "FINAL" as const,
    sequence,
    data: value,
  };
  return { ...record, finalMetricData: [result] };
}

/** Whether the whole record has to be requested after an event. */
export function needsRecord(kind: string, data: EventData): boolean {
  // An event has null in place of a long value.
  if (kind === "remarks_changed") return false;
  if (kind === "metric_reported") return (data.metric?.value ?? null) === null;
  return true;
}
