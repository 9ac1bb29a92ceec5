// Component whose code is fetched when it is first shown.

import type { ComponentType } from "preact";
import { useEffect, useReducer, useState } from "preact/hooks";

import { type DeferredCode, deferredCode } from "../state/deferred_code";

/** Component that shows nothing until its code is there. */
export type Deferred<P> = ComponentType<P> & { code: DeferredCode<ComponentType<P>> };

/** Return a component whose code `load` fetches; until then it is `heightPx` high. */
export function deferred<P extends object>(
  load: () => Promise<ComponentType<P>>,
  heightPx = 0,
): Deferred<P> {
  const code = deferredCode(load);
  function Part(props: P) {
    const [, again] = useReducer((count: number) => count + 1, 0);
    const [failed, setFailed] = useState(false);
    useEffect(() => {
      if (code.value) return undefined;
      let shown = true;
      void code.fetch().then(
        () => shown && again(null),
        () => shown && setFailed(true),
      );
      return () => {
        shown = false;
      };
    }, []);
    const Content = code.value;
    if (Content) return <Content {...props} />;
    if (failed)
      return (
        <p class="empty" role="alert">
          This part of the page could not be loaded. Reload the page once the manager is reachable.
        </p>
      );
    return heightPx ? <div style={{ height: `${heightPx}px` }} /> : null;
  }
  return Object.assign(Part, { code });
}
