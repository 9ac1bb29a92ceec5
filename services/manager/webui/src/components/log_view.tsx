// Log viewer: follows the end unless scrolled up, has a search, limits the text.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { isAbort, errorMessage } from "../api/client";
import { useApp } from "../state/context";
import { terminalText } from "../state/terminal";
import { Icon } from "./icon";

/** Maximum number of characters to show; the download has all. */
const MAX_CHARACTERS = 400_000;
/** Maximum number of matching lines to show. */
const MAX_LINES = 2_000;

/** View of the file at `path` of the experiment, followed while it grows. */
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
    const append = (chunk: string) => {
      setState("live");
      setText((before) => (before + chunk).slice(-MAX_CHARACTERS));
    };
    store.client
      .stream(follow ? `${path}?follow=true` : path, stop.signal, append)
      .then(() => setState("ended"))
      .catch((error: unknown) => {
        if (isAbort(error)) return;
        setState("ended");
        setProblem(errorMessage(error));
      });
    return () => stop.abort();
  }, [path, follow, store]);

  useEffect(() => {
    if (atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text, search]);

  const shown = useMemo(() => {
    const readable = terminalText(text);
    if (!search) return readable;
    const wanted = search.toLowerCase();
    return readable
      .split("\n")
      .filter((line) => line.toLowerCase().includes(wanted))
      .slice(-MAX_LINES)
      .join("\n");
  }, [text, search]);

  return (
    <div class="log">
      <div class="tools">
        <input
          type="search"
          placeholder="Filter lines…"
          aria-label="Search in the log"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        <label class="check">
          <input type="checkbox" checked={wrap} onChange={() => setWrap(!wrap)} /> Wrap lines
        </label>
        <span class="muted small" role="status">
          {state === "live" && follow ? "following" : state === "loading" ? "loading" : ""}
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
              ? "No matching lines."
              : state === "ended"
                ? "The log is empty."
                : "")}
      </pre>
    </div>
  );
}
