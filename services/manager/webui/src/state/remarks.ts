// Remarks on experiments and trials: note, tags and star.

import type { Remarks } from "../api/records";

export const NO_REMARKS: Remarks = { note: "", tags: [], starred: false };

/** Return the tags of a text with commas, each once and without spaces around it. */
export function readTags(text: string): string[] {
  return [...new Set(text.split(",").map((tag) => tag.trim()))].filter(Boolean);
}

/** Return remarks as words to search in: note, tags, and `starred`. */
export function remarksText(remarks: Remarks | undefined): string {
  if (!remarks) return "";
  return [...remarks.tags, remarks.note, remarks.starred ? "starred" : ""].join(" ").trim();
}
