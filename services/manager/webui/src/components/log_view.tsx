// Text that grows: kept at its end unless the reader scrolls up, searchable, never too long.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { isAbort, words } from "../api/client";
import { useApp } from "../state/context";
import { Icon } from "./icon";

/** Most characters shown; older ones stay in the download. */
const MOST_CHARACTERS = 400_000;
/** Most lines that a search shows. */
const MOST_LINES = 2_000;

/** Show the file at `path` of the experiment and follow it while it grows. */
export function LogView({ path, follow }: { path: string; follow: boolean }) {
  const { store } = useApp();
  const [text, setText] = useState("");
  const [state, setState] = useState<"loading" | "live" | "ended">("loading");
  const [problem, setProblem] = useState("");
  const [search, setSearch] = useState("");
  const [wrap, setWrap] = useState(true);
  const box = useRef<HTMLPreElement>(null);
  const atEnd = useRef(true);

  useEffect(() => {
    const stop = new AbortController();
    setText("");
    setProblem("");
    setState("loading");
    const take = (piece: string) => {
      setState("live");
      setText((before) => (before + piece).slice(-MOST_CHARACTERS));
    };
    store.client
      .stream(follow ? `${path}?follow=true` : path, stop.signal, take)
      .then(() => setState("ended"))
      .catch((error: unknown) => {
        if (isAbort(error)) return;
        setState("ended");
        setProblem(words(error));
      });
    return () => stop.abort();
  }, [path, follow, store]);

  useEffect(() => {
    if (atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text, search]);

  const shown = useMemo(() => {
    if (!search) return text;
    const wanted = search.toLowerCase();
    return text
      .split("\n")
      .filter((line) => line.toLowerCase().includes(wanted))
      .slice(-MOST_LINES)
      .join("\n");
  }, [text, search]);

  return (
    <div class="log">
      <div class="tools">
        <input
          type="search"
          placeholder="Only lines with…"
          aria-label="Search in the log"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        <label class="check">
          <input type="checkbox" checked={wrap} onChange={() => setWrap(!wrap)} /> Wrap lines
        </label>
        <span class="muted small" role="status">
          {state === "live" && follow ? "following" : state === "loading" ? "waiting for text" : ""}
        </span>
        <a class="plain" href={store.client.url(path)} download={path.split("/").pop()}>
          <Icon name="download" /> Download
        </a>
      </div>
      {problem ? <p class="hint">{problem}</p> : null}
      <pre
        ref={box}
        class={wrap ? "log-text wrap" : "log-text"}
        tabIndex={0}
        aria-label="Log"
        onScroll={(event) => {
          const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
          atEnd.current = scrollTop + clientHeight >= scrollHeight - 20;
        }}
      >
        {shown ||
          (problem
            ? ""
            : search
              ? "No line holds this."
              : state === "ended"
                ? "The log is empty."
                : "")}
      </pre>
    </div>
  );
}
