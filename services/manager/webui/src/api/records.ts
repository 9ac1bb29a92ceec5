// Fields of REST records that the page reads. A test of the manager checks that the OpenAPI
// document has each of them.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export type TrialState =
  | "WAITING"
  | "RUNNING"
  | "SUCCEEDED"
  | "FAILED"
  | "USER_CANCELED"
  | "SYS_CANCELED"
  | "EARLY_STOPPED"
  | "UNKNOWN";

/** Cause of the end of a trial; of a trial of an older version UNSPECIFIED. */
export type EndCause =
  | "UNSPECIFIED"
  | "SUCCEEDED"
  | "EXIT_CODE"
  | "SIGNAL"
  | "NOT_STARTED"
  | "TIME_LIMIT"
  | "STOPPED"
  | "LOST"
  | "NEVER_STARTED"
  | "CUT_OFF";

export type StopCause = "UNSPECIFIED" | "USER" | "ASSESSOR" | "EXPERIMENT_STOPPED" | "AGENT";

export type WaitCause =
  "UNSPECIFIED" | "GPU_IN_USE" | "GPU_MISSING" | "BLOB" | "ENVIRONMENT" | "PLATFORM";

export interface Version {
  version: string;
  /** Empty on the base address, which serves no single experiment. */
  experimentId: string;
  grpc: string;
  /** Versions of agents that are incompatible with the manager, by agent id. */
  otherVersions: Record<string, string>;
}

export interface Status {
  status: string;
  errors: string[];
  /** Reason for waiting; empty while the experiment progresses. */
  waitingFor: string;
}

export interface Profile {
  id: string;
  revision: number;
  /** Seconds. */
  execDuration: number;
  logDir: string;
  nextSequenceId: number;
  /** The configuration in schema v2. */
  params: JsonObject;
  status: string;
  optimizeMode: "minimize" | "maximize";
  algorithm: string;
  repeatable: boolean;
  /** Milliseconds since 1970. */
  startTime?: number;
  endTime?: number;
  bestValue?: Json;
  bestTrialId?: string;
  remarks?: Remarks;
  /** Of an experiment with agents of its own. */
  agentLimits?: AgentLimits;
}

/** Limits of the agents of an experiment; a missing one does not hold. */
export interface AgentLimits {
  minAgents?: number;
  maxAgents?: number;
  idleTime?: string;
  maxAgentTime?: string;
  maxCost?: number;
  costPerAgentHour?: number;
}

/** Note, tags and star of an experiment or a trial. */
export interface Remarks {
  note: string;
  tags: string[];
  starred: boolean;
}

export interface Metadata {
  id: string;
  name: string;
  port: number | null;
  status: string;
  platform: string;
  startTime: number | null;
  /** Milliseconds since 1970, or the text `N/A`. */
  endTime: number | string;
  tag: string[];
  webuiUrl: string[];
  logDir: string;
  trialCounts: Record<string, number>;
  bestValue: Json;
  remarks: Remarks;
}

export interface Metric {
  timestamp: number;
  trialJobId: string;
  parameterId: string;
  type: "PERIODICAL" | "FINAL";
  /** 0-based, per trial and type. */
  sequence: number;
  data: Json;
}

/** Smallest and largest finite intermediate number of each metric of a trial. */
export interface IntermediateRanges {
  trialJobId: string;
  ranges: Record<string, [number, number]>;
}

export interface Trial {
  trialJobId: string;
  sequenceId: number;
  status: TrialState;
  /** One JSON text: parameter_id, parameter_source, parameters. */
  hyperParameters: string[];
  /** Folder with trial.log, stdout, stderr. */
  logPath: string;
  attempt: number;
  intermediateCount: number;
  createdTime: number;
  startTime?: number;
  endTime?: number;
  finalMetricData?: Metric[];
  latestIntermediate?: Json;
  message?: string;
  endCause?: EndCause;
  stopCause?: StopCause;
  waitCause?: WaitCause;
  exitCode?: number;
  runnerId?: string;
  platform?: string;
  gpuIndices?: number[];
  provenance?: Json;
  remarks?: Remarks;
}

export interface TensorBoard {
  id: string;
  status: string;
  trialJobIdList: string[];
  port: number;
}

/** Lines of a log that contain a text. */
export interface FoundLines {
  lines: { offset: number; text: string }[];
  /** Offset at which a further search goes on. */
  next: number;
  /** False: the search ended early. */
  complete: boolean;
}

/** An agent that runs trials, or that a platform has or is asked for. */
export interface Runner {
  id: string;
  pool: string;
  /** Empty: a person or the installation has started it. */
  platform: string;
  state: string;
  /** Why it does not run, in the platform's words. */
  reason: string;
  /** 0: not known. */
  slots: number;
  hostName: string;
  trialCount: number;
  gpuCount: number;
  draining: boolean;
  /** Milliseconds since 1970. */
  lastSeen: number | null;
  version: string;
  trials: { experimentId: string; trialId: string; attempt: number }[];
}

/** State of a pool of the fleet. */
export interface PoolState {
  name: string;
  platforms: string[];
  agentCounts: Record<string, number>;
  /** Why it does not grow; empty: it does. */
  reason: string;
  remedy: string;
  nextLaunch: number | null;
}

/** Explanation of the state of a trial, or why the next one was not created. */
export interface Explanation {
  trialJobId: string | null;
  status: string | null;
  summary: string;
  reasons: { kind: string; text: string; remedy: string }[];
  lostAttempts: { attempt: number; runnerId: string; reason: string; commandFailed: boolean }[];
  stderrTail: string;
  exitCode: number | null;
  signal: number | null;
}

/** Share of a metric's variance that each parameter explains. */
export interface Importance {
  metric: string;
  /** Number of trials the estimate is based on. */
  trials: number;
  parameters: { name: string; share: number }[];
  /** Share of the variance that no single parameter explains. */
  interactions: number;
}
