// What every part of the page may ask for.

import { createContext } from "preact";
import { useContext, useEffect, useReducer } from "preact/hooks";

import type { Store } from "./store";

/** Where a person is on the page. */
export interface Place {
  view: "oview" | "detail" | "charts" | "experiment";
  /** Trial whose details are open; empty for none. */
  trial: string;
}

export interface App {
  store: Store;
  place: Place;
  /** Address of a place, relative to this one. */
  href: (place: Partial<Place>) => string;
  go: (place: Partial<Place>) => void;
  /** Tell something that went wrong or has been done. */
  notify: (text: string, kind?: "error" | "done") => void;
  theme: "light" | "dark";
}

export const AppContext = createContext<App | null>(null);

/** Return what the page is made of. */
export function useApp(): App {
  const app = useContext(AppContext);
  if (!app) throw new Error("outside of the page");
  return app;
}

/** Return the store; the caller is drawn again after each change. */
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
    again(null); // what changed between the first drawing and now
    return () => {
      end();
      cancelAnimationFrame(frame);
    };
  }, [store]);
  return store;
}

/** Return the time in ms; the caller is drawn again each second while `runs`. */
export function useClock(runs: boolean): number {
  const [, again] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    if (!runs) return undefined;
    const timer = setInterval(() => again(null), 1000);
    return () => clearInterval(timer);
  }, [runs]);
  return Date.now();
}
