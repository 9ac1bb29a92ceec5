// A table of any length: only the rows in sight are in the document.
//
// Rows have one height and a place of their own, so the browser lays out nothing but what
// changes; scrolling puts other words into the same elements instead of making new ones. (A
// `<table>` would be laid out as a whole each time: 30 ms where this takes 3.) Screen readers get
// the roles of a table and learn the true place of each row from `aria-rowindex`.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { Icon } from "../components/icon";
import { visibleRows } from "./visible_rows";

export const ROW_HEIGHT = 36;

export interface TableColumn<Row> {
  key: string;
  title: string;
  /** In px; what is left over goes to all columns alike. */
  width: number;
  number?: boolean;
  /** False: its header is no button. */
  sortable?: boolean;
  cell: (row: Row) => ComponentChildren;
}

interface Props<Row> {
  label: string;
  columns: TableColumn<Row>[];
  rows: Row[];
  sort: { key: string; descending: boolean };
  onSort: (key: string) => void;
  onOpen: (row: Row) => void;
  isMarked?: (row: Row) => boolean;
  /** Shown instead of rows if there are none. */
  empty: ComponentChildren;
}

export function VirtualTable<Row>(props: Props<Row>) {
  const { label, columns, rows, sort, onSort, onOpen, isMarked, empty } = props;
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ first: 0, end: 40, height: 600, width: 0 });
  const [active, drawActive] = useState(0);
  const latest = useRef(0); // keys may come faster than drawings
  const focus = useRef<"none" | "wanted" | "kept">("none");

  const setActive = (index: number) => {
    latest.current = index;
    drawActive(index);
  };
  const look = () => {
    const { scrollTop, clientHeight, clientWidth } = box.current!;
    const next = visibleRows(scrollTop, clientHeight, ROW_HEIGHT, rows.length);
    setView((before) =>
      before.first === next.first &&
      before.end === next.end &&
      before.height === clientHeight &&
      before.width === clientWidth
        ? before
        : { ...next, height: clientHeight, width: clientWidth },
    );
  };
  useLayoutEffect(() => {
    look();
    const observer = new ResizeObserver(look);
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, [rows.length]);

  const first = Math.min(view.first, rows.length);
  const end = Math.min(view.end, rows.length);
  const tabStop = active >= first && active < end ? active : first;

  useEffect(() => {
    // Elements are used again for other rows: the focus follows its row as long as that is here.
    if (focus.current === "none") return;
    const row = box.current?.querySelector<HTMLElement>(
      `.t-row[aria-rowindex="${latest.current + 2}"]`,
    );
    const held = document.activeElement;
    if (focus.current === "wanted" || (held instanceof HTMLElement && held.matches(".t-row"))) {
      if (row && row !== held) row.focus({ preventScroll: true });
      if (row) focus.current = "kept";
    }
  });

  const move = (event: KeyboardEvent) => {
    if (!(event.target as HTMLElement).matches(".t-row")) return;
    const page = Math.max(1, Math.floor(view.height / ROW_HEIGHT) - 2);
    const at = latest.current;
    const to = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: rows.length - 1,
    }[event.key];
    if (event.key === "Enter" && rows[at]) onOpen(rows[at]);
    if (to === undefined || rows.length === 0) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(rows.length - 1, to));
    focus.current = "wanted";
    setActive(next);
    reveal(box.current!, next);
  };

  const { places, width } = placed(columns, view.width);
  return (
    <div class="table-box" ref={box} onScroll={look} tabIndex={-1}>
      <div
        class="trials"
        role="table"
        aria-label={label}
        aria-rowcount={rows.length + 1}
        aria-colcount={columns.length}
        style={{ minWidth: `${width}px` }}
      >
        <div role="rowgroup" class="t-head-group">
          <div role="row" class="t-head" aria-rowindex={1}>
            {columns.map((column, c) => (
              <Header
                key={column.key}
                column={column}
                place={places[c]!}
                sort={sort}
                onSort={onSort}
              />
            ))}
          </div>
        </div>
        <div
          role="rowgroup"
          class="t-body"
          style={{ height: `${rows.length * ROW_HEIGHT}px` }}
          onKeyDown={move}
        >
          {rows.slice(first, end).map((row, i) => {
            const index = first + i;
            return (
              <div
                role="row"
                aria-rowindex={index + 2}
                tabIndex={index === tabStop ? 0 : -1}
                class={isMarked?.(row) ? "t-row marked" : "t-row"}
                style={{ top: `${index * ROW_HEIGHT}px` }}
                onFocus={(event) => {
                  // While the keyboard moves, the focus follows `active` and not the other way round.
                  if (event.target !== event.currentTarget || focus.current === "wanted") return;
                  focus.current = "kept";
                  setActive(index);
                }}
                onBlur={() => {
                  if (focus.current === "kept") focus.current = "none";
                }}
                onClick={(event) => {
                  if (!(event.target as Element).closest("a, button, input, label")) onOpen(row);
                }}
              >
                {columns.map((column, c) => (
                  <div
                    role="cell"
                    class={column.number ? "t-cell number" : "t-cell"}
                    style={places[c]}
                  >
                    {column.cell(row)}
                  </div>
                ))}
              </div>
            );
          })}
        </div>
      </div>
      {rows.length === 0 ? <div class="empty">{empty}</div> : null}
    </div>
  );
}

type Place = { left: string; width: string };

/** Return where each column stands; room that is left over goes to all columns alike. */
function placed<Row>(
  columns: TableColumn<Row>[],
  room: number,
): { places: Place[]; width: number } {
  const least = columns.reduce((sum, one) => sum + one.width, 0);
  const wider = Math.max(1, room / least);
  let left = 0;
  const places = columns.map(({ width }) => {
    const place = { left: `${left}px`, width: `${Math.floor(width * wider)}px` };
    left += Math.floor(width * wider);
    return place;
  });
  return { places, width: left };
}

function Header<Row>({
  column,
  place,
  sort,
  onSort,
}: {
  column: TableColumn<Row>;
  place: Place;
  sort: Props<Row>["sort"];
  onSort: (key: string) => void;
}) {
  const sorted = sort.key === column.key;
  if (column.sortable === false)
    return (
      <div role="columnheader" class="t-cell" style={place}>
        {column.title ? column.title : <span class="unseen">Select</span>}
      </div>
    );
  return (
    <div
      role="columnheader"
      class={column.number ? "t-cell number" : "t-cell"}
      style={place}
      aria-sort={sorted ? (sort.descending ? "descending" : "ascending") : undefined}
    >
      <button type="button" title={`Sort by ${column.title}`} onClick={() => onSort(column.key)}>
        <span>{column.title}</span>
        {sorted ? <Icon name={sort.descending ? "down" : "up"} size={12} /> : null}
      </button>
    </div>
  );
}

/** Scroll so far that a row is seen whole below the header. */
function reveal(box: HTMLElement, index: number): void {
  const top = index * ROW_HEIGHT;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + 2 * ROW_HEIGHT > box.scrollTop + box.clientHeight) {
    box.scrollTop = top + 2 * ROW_HEIGHT - box.clientHeight;
  }
}
