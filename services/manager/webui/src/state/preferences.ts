// What the user has chosen: kept in the browser, so that it outlives reloads and page switches.

import { useState } from "preact/hooks";

const PREFIX = "nni:";

/** Return a kept value and the function that changes it. `key` names it within the page. */
export function usePreference<T>(key: string, otherwise: T): [T, (value: T) => void] {
  const [value, setValue] = useState<T>(() => read(key, otherwise));
  const change = (next: T) => {
    setValue(next);
    write(key, next);
  };
  return [value, change];
}

/** Return a kept value; `otherwise` if there is none or the browser keeps nothing. */
export function read<T>(key: string, otherwise: T): T {
  try {
    const text = localStorage.getItem(PREFIX + key);
    return text === null ? otherwise : (JSON.parse(text) as T);
  } catch {
    return otherwise;
  }
}

/** Keep a value if the browser lets us. */
export function write(key: string, value: unknown): void {
  try {
    localStorage.setItem(PREFIX + key, JSON.stringify(value));
  } catch {
    // A private window may refuse; the choice then lasts as long as the page.
  }
}
