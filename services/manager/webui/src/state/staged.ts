// Hook for costly parts of a view: one per animation frame, so that the page stays responsive.

import { useEffect, useReducer, useRef } from "preact/hooks";

/** Return the index of the part to renew next; null: all have the value. */
export function nextStale<T>(
  parts: readonly (T | undefined)[],
  value: T,
  after: number,
): number | null {
  for (let i = 1; i <= parts.length; i += 1) {
    const at = (after + i) % parts.length;
    if (parts[at] !== value) return at;
  }
  return null;
}

/**
 * Return what each of `count` parts shows: the last `value` that it got, undefined before the first.
 *
 * In each animation frame one part gets the present value. The turn goes on where it was when the
 * value changes, so that frequent changes keep no part waiting.
 */
export function useStaged<T>(value: T, count: number): readonly (T | undefined)[] {
  const [, again] = useReducer((turns: number, _one: number) => turns + 1, 0);
  const parts = useRef<(T | undefined)[]>([]);
  const last = useRef(-1);
  parts.current.length = count;
  useEffect(() => {
    let frame = 0;
    const step = () => {
      const next = nextStale(Array.from(parts.current), value, last.current);
      if (next === null) return;
      parts.current[next] = value;
      last.current = next;
      again(0);
      frame = requestAnimationFrame(step);
    };
    frame = requestAnimationFrame(step);
    return () => cancelAnimationFrame(frame);
  }, [value, count]);
  return Array.from(parts.current);
}
