// Limits of an experiment's agents: texts of a form, and the change that they mean.

import type { AgentLimits, JsonObject } from "../api/records";
import { durationSeconds, durationText } from "../format";

type Name = keyof AgentLimits;

interface LimitField {
  name: Name;
  label: string;
  hint: string;
  kind: "count" | "duration" | "amount";
  /** Smallest count. */
  least?: number;
}

export const LIMIT_FIELDS: LimitField[] = [
  {
    name: "minAgents",
    label: "Agents, least",
    hint: "stay without trials",
    kind: "count",
    least: 0,
  },
  { name: "maxAgents", label: "Agents, most", hint: "at once", kind: "count", least: 1 },
  {
    name: "idleTime",
    label: "Idle time",
    hint: "until an agent ends, such as 10m",
    kind: "duration",
  },
  {
    name: "maxAgentTime",
    label: "Agent time",
    hint: "of all agents, such as 50h",
    kind: "duration",
  },
  { name: "maxCost", label: "Cost, most", hint: "of the agent time", kind: "amount" },
  { name: "costPerAgentHour", label: "Price", hint: "of an agent for an hour", kind: "amount" },
];

/** Return a text for each limit; empty: it does not hold. */
export function limitTexts(limits: AgentLimits): Record<Name, string> {
  const texts = LIMIT_FIELDS.map(({ name, kind }) => {
    const value = limits[name];
    const seconds = kind === "duration" ? durationSeconds(value) : null;
    return [name, seconds ? durationText(seconds) : String(value ?? "")];
  });
  return Object.fromEntries(texts) as Record<Name, string>;
}

/** Return the change from limits to texts, empty if none differs, and a problem per wrong text. */
export function limitChange(
  limits: AgentLimits,
  texts: Record<string, string>,
): { params: JsonObject; problems: Record<string, string> } {
  const now = limitTexts(limits);
  const params: JsonObject = {};
  const problems: Record<string, string> = {};
  const remove: Name[] = [];
  for (const field of LIMIT_FIELDS) {
    const text = (texts[field.name] ?? "").trim();
    if (text === now[field.name]) continue;
    const value = valueOf(field, text);
    if (!text) remove.push(field.name);
    else if (value === null) problems[field.name] = `must be ${rule(field)}, or empty: no limit`;
    else params[field.name] = value;
  }
  if (remove.length) params["remove"] = remove;
  return { params, problems };
}

function valueOf({ kind, least }: LimitField, text: string): number | string | null {
  const number = Number(text);
  if (kind === "duration") return durationSeconds(text) ? text : null;
  if (kind === "count") return /^\d+$/.test(text) && number >= least! ? number : null;
  return text && Number.isFinite(number) && number > 0 ? number : null;
}

function rule({ kind, least }: LimitField): string {
  if (kind === "duration") return "a duration such as 90s, 30m, 2h or 1d";
  return kind === "count" ? `an integer >= ${least}` : "a number > 0";
}
