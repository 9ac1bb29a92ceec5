// Preferences of the user, stored in the browser across reloads and views.

import { useMemo, useState } from "preact/hooks";

const PREFIX = "nni:";

/** Return a stored value and a function that changes it. `key` is unique within the page. */
export function usePreference<T>(key: string, otherwise: T): [T, (value: T) => void] {
  const stored = useMemo(() => read(key, otherwise), [key]);
  const [changed, setChanged] = useState<{ key: string; value: T } | null>(null);
  const change = (next: T) => {
    setChanged({ key, value: next });
    write(key, next);
  };
  // The key may change, from that of an experiment that is still loading.
  return [changed?.key === key ? changed.value : stored, change];
}

/** Return a stored value; `otherwise` if there is none or the browser denies storage. */
export function read<T>(key: string, otherwise: T): T {
  try {
    const text = localStorage.getItem(PREFIX + key);
    return text === null ? otherwise : (JSON.parse(text) as T);
  } catch {
    return otherwise;
  }
}

/** Store a value unless the browser denies it. */
export function write(key: string, value: unknown): void {
  try {
    localStorage.setItem(PREFIX + key, JSON.stringify(value));
  } catch {
    // A private window may deny storage; the value then lasts until a reload.
  }
}
