// State of a trial or an experiment, as icon, colour and word.

import { formatState } from "../format";
import { Icon, type IconName } from "./icon";

const ICONS: Record<string, IconName> = {
  SUCCEEDED: "check",
  DONE: "check",
  FAILED: "cross",
  ERROR: "cross",
  RUNNING: "ring",
  WAITING: "dots",
  INITIALIZED: "dots",
  EARLY_STOPPED: "stop",
  STOPPED: "stop",
  STOPPING: "stop",
  USER_CANCELED: "slash",
  SYS_CANCELED: "slash",
  UNKNOWN: "question",
  VIEWED: "pause",
  NO_MORE_TRIAL: "ring",
  TUNER_NO_MORE_TRIAL: "ring",
};

/** `label` replaces the word of the state. */
export function StatePill({ state, label }: { state: string; label?: string }) {
  return (
    <span class="pill" data-state={state}>
      <Icon name={ICONS[state] ?? "question"} size={13} />
      {label ?? formatState(state)}
    </span>
  );
}
