// Answers that the server computes: asked again only when the results have grown enough.

import { useEffect, useState } from "preact/hooks";

import { isAbort, words } from "../api/client";
import type { Store } from "../state/store";

/** Results must have grown by so much before an analysis is asked for again: it costs seconds. */
const GROWTH = 1.2;

/** Return the answer at `path`; null while it is on its way. Nothing is asked if `path` is empty. */
export function useAsked<T>(
  store: Store,
  path: string,
  results: number,
): { answer: T | null; problem: string } {
  const [answer, setAnswer] = useState<T | null>(null);
  const [problem, setProblem] = useState("");
  const step = results > 0 ? Math.floor(Math.log(results) / Math.log(GROWTH)) : -1;
  useEffect(() => {
    if (!path) return undefined;
    const stop = new AbortController();
    store.client
      .get<T>(path, stop.signal)
      .then((found) => {
        setAnswer(found);
        setProblem("");
      })
      .catch((error: unknown) => {
        if (!isAbort(error)) setProblem(words(error));
      });
    return () => stop.abort();
  }, [store, path, step]);
  return { answer, problem };
}
