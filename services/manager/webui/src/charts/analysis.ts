// Hook for analyses of the server: requested again when the number of results has grown enough.

import { useEffect, useState } from "preact/hooks";

import { isAbort, errorMessage } from "../api/client";
import type { Store } from "../state/store";

/** Growth of the number of results before a new request: an analysis costs seconds. */
const GROWTH = 1.2;

/** Return the analysis at `path`; null while it is loading. An empty `path` requests none. */
export function useAnalysis<T>(
  store: Store,
  path: string,
  results: number,
): { analysis: T | null; problem: string } {
  const [analysis, setAnalysis] = useState<T | null>(null);
  const [problem, setProblem] = useState("");
  const step = results > 0 ? Math.floor(Math.log(results) / Math.log(GROWTH)) : -1;
  useEffect(() => {
    if (!path) return undefined;
    const stop = new AbortController();
    store.client
      .get<T>(path, stop.signal)
      .then((found) => {
        setAnalysis(found);
        setProblem("");
      })
      .catch((error: unknown) => {
        if (!isAbort(error)) setProblem(errorMessage(error));
      });
    return () => stop.abort();
  }, [store, path, step]);
  return { analysis, problem };
}
