// Log viewer: begins with the end of the log, fetches earlier parts on demand, follows it while it
// grows, filters what is shown, and searches the whole log at the manager.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { ApiError, isAbort, errorMessage } from "../api/client";
import type { FoundLines } from "../api/records";
import { useApp } from "../state/context";
import {
  EMPTY,
  PART_BYTES,
  type LogWindow,
  appended,
  earlier,
  prepended,
  rangeOf,
  wholeParts,
  windowOf,
} from "../state/log_window";
import { joined, lineText, terminalLines, terminalText } from "../state/terminal";
import { Icon } from "./icon";
import { StyledText } from "./styled_text";

/** Maximum number of matching lines to show. */
const MAX_LINES = 2_000;
const NOT_FOUND = 404;
const NO_SUCH_RANGE = 416;

/** View of the file at `path` of the experiment, followed while it grows. */
export function LogView({ path, follow }: { path: string; follow: boolean }) {
  const { store } = useApp();
  const [shownPart, setPart] = useState<LogWindow>(EMPTY);
  const [state, setState] = useState<"loading" | "live" | "ended">("loading");
  const [problem, setProblem] = useState("");
  const [search, setSearch] = useState("");
  const [wrap, setWrap] = useState(true);
  /** Offset at which a found line begins; null: the end of the log is shown and followed. */
  const [from, setFrom] = useState<number | null>(null);
  const [found, setFound] = useState<FoundLines | null>(null);
  const [busy, setBusy] = useState(false);
  const box = useRef<HTMLPreElement>(null);
  const atEnd = useRef(true);

  useEffect(() => {
    setFound(null);
    setFrom(null);
  }, [path]);

  useEffect(() => {
    const stop = new AbortController();
    setPart(EMPTY);
    setProblem("");
    setState("loading");
    atEnd.current = from === null;
    const load = async () => {
      const first =
        from === null
          ? await fetchPart(`bytes=-${PART_BYTES}`)
          : await fetchPart(`bytes=${from}-${from + PART_BYTES - 1}`, true);
      setPart(first);
      if (from === null && follow) {
        setState("live");
        const live = `${path}?follow=true&offset=${first.end}`;
        const receive = wholeParts((bytes) => setPart((before) => appended(before, bytes)));
        await store.client.stream(live, stop.signal, receive);
      }
      setState("ended");
    };
    const fetchPart = async (range: string, whole = false): Promise<LogWindow> => {
      try {
        const { bytes, header } = await store.client.part(path, range, stop.signal);
        const start = rangeOf(header)?.start ?? 0;
        return windowOf(bytes, start, start > 0 && !whole);
      } catch (error) {
        const none = error instanceof ApiError && error.status === NO_SUCH_RANGE;
        const unwritten = follow && error instanceof ApiError && error.status === NOT_FOUND;
        if (none || unwritten) return EMPTY;
        throw error;
      }
    };
    load().catch((error: unknown) => {
      if (isAbort(error)) return;
      setState("ended");
      setProblem(errorMessage(error));
    });
    return () => stop.abort();
  }, [path, follow, store, from]);

  useEffect(() => {
    if (!box.current) return;
    if (atEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [shownPart, search]);

  const shown = useMemo(() => {
    const lines = terminalLines(shownPart.text);
    if (!search) return joined(lines);
    const wanted = search.toLowerCase();
    return joined(
      lines.filter((line) => lineText(line).toLowerCase().includes(wanted)).slice(-MAX_LINES),
    );
  }, [shownPart, search]);

  const before = earlier(shownPart);
  const loadEarlier = async () => {
    if (!before) return;
    setBusy(true);
    try {
      const range = `bytes=${before[0]}-${before[1] - 1}`;
      const { bytes } = await store.client.part(path, range);
      const height = box.current?.scrollHeight ?? 0;
      atEnd.current = false;
      setPart((now) => (now.start === before[1] ? prepended(now, bytes) : now));
      // The lines that were on the screen stay there.
      requestAnimationFrame(() => {
        if (box.current) box.current.scrollTop += box.current.scrollHeight - height;
      });
    } catch (error) {
      setProblem(errorMessage(error));
    }
    setBusy(false);
  };
  const searchWhole = async (event: Event, after: FoundLines | null = null) => {
    event.preventDefault();
    if (!search) return;
    setBusy(true);
    try {
      const query = new URLSearchParams({ text: search, offset: String(after?.next ?? 0) });
      const address = `${path}/search?${query}`;
      const more = await store.client.get<FoundLines>(address);
      setFound(after ? { ...more, lines: [...after.lines, ...more.lines] } : more);
      setProblem("");
    } catch (error) {
      setProblem(errorMessage(error));
    }
    setBusy(false);
  };

  return (
    <div class="log">
      <form class="tools" onSubmit={(event) => void searchWhole(event)}>
        <input
          type="search"
          placeholder="Filter lines…"
          aria-label="Search in the log"
          value={search}
          onInput={(event) => {
            setSearch(event.currentTarget.value);
            setFound(null);
          }}
        />
        <button class="plain" disabled={!search || busy}>
          Search the whole log
        </button>
        <label class="check">
          <input type="checkbox" checked={wrap} onChange={() => setWrap(!wrap)} /> Wrap lines
        </label>
        <span class="muted small" role="status">
          {state === "live" && follow ? "following" : state === "loading" ? "loading" : ""}
        </span>
        <a class="plain" href={store.client.url(path)} download={path.split("/").pop()}>
          <Icon name="download" /> Download
        </a>
      </form>
      {problem ? <p class="hint">{problem}</p> : null}
      {found ? (
        <FoundList
          found={found}
          busy={busy}
          onOpen={(offset) => {
            setSearch("");
            setFrom(offset);
          }}
          onMore={(event) => void searchWhole(event, found)}
        />
      ) : null}
      {from !== null || before ? (
        <div class="row">
          {before ? (
            <button
              type="button"
              class="quiet"
              disabled={busy || state === "loading"}
              onClick={() => void loadEarlier()}
            >
              <Icon name="up" /> Earlier lines
            </button>
          ) : null}
          {from === null ? null : (
            <button type="button" class="quiet" onClick={() => setFrom(null)}>
              <Icon name="down" /> End of the log
            </button>
          )}
        </div>
      ) : null}
      <pre
        ref={box}
        class={wrap ? "log-text wrap" : "log-text"}
        tabIndex={0}
        role="region"
        aria-label="Log"
        onScroll={(event) => {
          const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
          atEnd.current = scrollTop + clientHeight >= scrollHeight - 20;
        }}
      >
        {shown.length ? (
          <StyledText spans={shown} />
        ) : problem ? null : search ? (
          "No matching lines here."
        ) : state === "ended" ? (
          "The log is empty."
        ) : null}
      </pre>
    </div>
  );
}

/** Lines that a search of the whole log has found; each opens the log at its place. */
function FoundList({
  found,
  busy,
  onOpen,
  onMore,
}: {
  found: FoundLines;
  busy: boolean;
  onOpen: (offset: number) => void;
  onMore: (event: Event) => void;
}) {
  return (
    <section class="found" aria-label="Found lines">
      <p class="muted small" role="status">
        {found.lines.length} {found.lines.length === 1 ? "line" : "lines"}
        {found.complete ? " in the whole log" : " so far"}
      </p>
      <ol>
        {found.lines.map(({ offset, text }) => (
          <li key={offset}>
            <button type="button" class="link mono" onClick={() => onOpen(offset)}>
              {terminalText(text) || "…"}
            </button>
          </li>
        ))}
      </ol>
      {found.complete ? null : (
        <button type="button" class="plain" disabled={busy} onClick={onMore}>
          Search on
        </button>
      )}
    </section>
  );
}
