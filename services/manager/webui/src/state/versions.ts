// Compatibility of the versions of page, manager and agents.

import type { Version } from "../api/records";

/** Return one warning for each incompatibility. */
export function versionWarnings(page: string, { version, otherVersions }: Version): string[] {
  const found: string[] = [];
  if (!isCompatible(page, version))
    found.push(
      `This page was built for NNI ${page}, but the manager has version ${version}: ` +
        "reload the page without the browser's cache (Ctrl+Shift+R).",
    );
  const agents = Object.entries(otherVersions)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([agent, other]) => `${agent} has version ${other}`);
  if (agents.length)
    found.push(
      `The manager has version ${version}, but agent ${agents.join(", agent ")}: ` +
        "trials may fail; install the same version everywhere.",
    );
  return found;
}

/** Whether two versions have the same first two numbers. */
export function isCompatible(one: string, other: string): boolean {
  const [first, second] = [line(one), line(other)];
  return !first || !second || first === second;
}

function line(version: string): string {
  return /^\d+\.\d+(?=\.|$)/.exec(version)?.[0] ?? "";
}
