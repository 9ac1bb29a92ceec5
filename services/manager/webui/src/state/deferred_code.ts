// Code that is fetched when it is first needed.

/** Code of a part of the page. */
export interface DeferredCode<T> {
  /** The code; undefined before it is there. */
  readonly value: T | undefined;
  /** Fetch the code once; after a failure the next call tries again. */
  fetch(): Promise<T>;
}

/** Return the code that `load` fetches. */
export function deferredCode<T>(load: () => Promise<T>): DeferredCode<T> {
  let value: T | undefined;
  let pending: Promise<T> | undefined;
  const fetch = () =>
    (pending ??= load().then(
      (found) => (value = found),
      (error: unknown) => {
        pending = undefined;
        throw error;
      },
    ));
  return {
    get value() {
      return value;
    },
    fetch,
  };
}

/** Fetch codes one after another, each when the browser is idle; failures wait for their use. */
export async function fetchWhenIdle(codes: readonly DeferredCode<unknown>[]): Promise<void> {
  for (const code of codes) {
    await idle();
    await code.fetch().catch(() => undefined);
  }
}

/** Wait until the browser is idle; one without such an event handles its input first. */
function idle(): Promise<void> {
  return new Promise((resume) => {
    if (typeof requestIdleCallback === "function") requestIdleCallback(() => resume());
    else setTimeout(resume);
  });
}
