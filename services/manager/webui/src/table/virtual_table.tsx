// Virtual table: only the visible rows are in the document.
//
// Rows have a fixed height and absolute positions, so the browser lays out only what changes;
// scrolling reuses elements for other rows. (A `<table>` would be laid out as a whole each time:
// 30 ms instead of 3.) Screen readers get the roles of a table and the index of each row from
// `aria-rowindex`.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { Icon } from "../components/icon";
import { visibleRows } from "./visible_rows";

export const ROW_HEIGHT = 36;

export interface TableColumn<Row> {
  key: string;
  title: string;
  /** Minimum width in px; remaining space is divided among the columns. */
  width: number;
  number?: boolean;
  /** False: the header is not a button. */
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
  /** Content of a table without rows. */
  empty: ComponentChildren;
}

export function VirtualTable<Row>(props: Props<Row>) {
  const { label, columns, rows, sort, onSort, onOpen, isMarked, empty } = props;
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ first: 0, end: 40, height: 600, width: 0 });
  const [active, renderActive] = useState(0);
  const latest = useRef(0); // keys may come faster than renders
  const focus = useRef<"none" | "requested" | "held">("none");

  const setActive = (index: number) => {
    latest.current = index;
    renderActive(index);
  };
  const measure = () => {
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
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, [rows.length]);

  const first = Math.min(view.first, rows.length);
  const end = Math.min(view.end, rows.length);
  const tabStop = active >= first && active < end ? active : first;

  useEffect(() => {
    // Elements are reused for other rows: the focus follows its row while that is rendered.
    if (focus.current === "none") return;
    const row = box.current?.querySelector<HTMLElement>(
      `.t-row[aria-rowindex="${latest.current + 2}"]`,
    );
    const focused = document.activeElement;
    if (
      focus.current === "requested" ||
      (focused instanceof HTMLElement && focused.matches(".t-row"))
    ) {
      if (row && row !== focused) row.focus({ preventScroll: true });
      if (row) focus.current = "held";
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
    focus.current = "requested";
    setActive(next);
    reveal(box.current!, next);
  };

  const { places, width } = placed(columns, view.width);
  return (
    <div class="table-box" ref={box} onScroll={measure} tabIndex={-1}>
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
                  // During keyboard navigation the focus follows `active`, not the reverse.
                  if (event.target !== event.currentTarget || focus.current === "requested") return;
                  focus.current = "held";
                  setActive(index);
                }}
                onBlur={() => {
                  if (focus.current === "held") focus.current = "none";
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

type PageLocation = { left: string; width: string };

/** Return position and width of each column; remaining space is divided among the columns. */
function placed<Row>(
  columns: TableColumn<Row>[],
  room: number,
): { places: PageLocation[]; width: number } {
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
  place: PageLocation;
  sort: Props<Row>["sort"];
  onSort: (key: string) => void;
}) {
  const sorted = sort.key === column.key;
  if (column.sortable === false)
    return (
      <div role="columnheader" class="t-cell" style={place}>
        {column.title ? column.title : <span class="visually-hidden">Select</span>}
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

/** Scroll until a row is fully visible below the header. */
function reveal(box: HTMLElement, index: number): void {
  const top = index * ROW_HEIGHT;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + 2 * ROW_HEIGHT > box.scrollTop + box.clientHeight) {
    box.scrollTop = top + 2 * ROW_HEIGHT - box.clientHeight;
  }
}
