// Lists of chosen keys: in menus, and as text in the address.

/** Return the items whose title contains all words of a search. */
export function foundIn<T extends { title: string }>(all: readonly T[], search: string): T[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return all.filter(({ title }) => words.every((word) => title.toLowerCase().includes(word)));
}

/** Return the chosen items in their order, then the others in theirs. */
export function inOrder<T extends { key: string }>(
  all: readonly T[],
  chosen: readonly string[],
): T[] {
  const byKey = new Map(all.map((one) => [one.key, one]));
  const first = chosen.flatMap((key) => byKey.get(key) ?? []);
  return [...first, ...all.filter((one) => !chosen.includes(one.key))];
}

/** Return the keys without `key`, or with it at their end. */
export function toggled(chosen: readonly string[], key: string): string[] {
  return chosen.includes(key) ? chosen.filter((one) => one !== key) : [...chosen, key];
}

/** Return the keys with one moved by some places; it stays within the list. */
export function shifted(chosen: readonly string[], key: string, by: number): string[] {
  const at = chosen.indexOf(key);
  if (at < 0) return [...chosen];
  return placedAt(chosen, at, Math.max(0, Math.min(chosen.length - 1, at + by)));
}

/** Return the keys with the one at `from` moved to `to`. */
export function placedAt(chosen: readonly string[], from: number, to: number): string[] {
  const next = [...chosen];
  if (from >= 0) next.splice(to, 0, ...next.splice(from, 1));
  return next;
}

/** Return keys as text of the address; a key may contain any character. */
export function keysText(keys: readonly string[]): string {
  return keys.map((key) => key.replaceAll("~", "~0").replaceAll(",", "~1")).join(",");
}

/** Return the keys of a text of the address; null: it names none, the usual ones are meant. */
export function keysOf(text: string): string[] | null {
  if (!text) return null;
  const keys = text.split(",").map((key) => key.replaceAll("~1", ",").replaceAll("~0", "~"));
  return [...new Set(keys)];
}
