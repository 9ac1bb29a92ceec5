// Context of all components: store, location, navigation, notifications, theme.

import { createContext } from "preact";
import { useContext, useEffect, useReducer } from "preact/hooks";

import type { Move, PageLocation } from "./page_location";
import type { Store } from "./store";

export type { PageLocation } from "./page_location";

export interface App {
  store: Store;
  place: PageLocation;
  /** Return the relative URL of a location. */
  href: (to: Move) => string;
  /** Go to a location; `replace` is no step for the browser's Back. */
  go: (to: Move, how?: "push" | "replace") => void;
  /** Show a notification about an error or a completed action. */
  notify: (text: string, kind?: "error" | "done") => void;
  theme: "light" | "dark";
}

export const PageContext = createContext<App | null>(null);

/** Return the context of the page. */
export function useApp(): App {
  const app = useContext(PageContext);
  if (!app) throw new Error("useApp needs a PageContext");
  return app;
}

/** Return the store; re-renders the caller after each change. */
export function useStore(): Store {
  const { store } = useApp();
  const [, again] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    let frame = 0;
    const end = store.subscribe(() => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        again(null);
      });
    });
    again(null); // changes between the first render and this effect
    return () => {
      end();
      cancelAnimationFrame(frame);
    };
  }, [store]);
  return store;
}

/** Return the time in ms; re-renders the caller each second while `runs`. */
export function useClock(runs: boolean): number {
  const [, again] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    if (!runs) return undefined;
    const timer = setInterval(() => again(null), 1000);
    return () => clearInterval(timer);
  }, [runs]);
  return Date.now();
}
