// Virtual table: only the visible rows are in the document.
//
// Rows have a fixed height and absolute positions, so the browser lays out only what changes;
// scrolling reuses elements for other rows. (A `<table>` would be laid out as a whole each time:
// 30 ms instead of 3.) Screen readers get the roles of a table and the index of each row from
// `aria-rowindex`.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { Icon } from "../components/icon";
import { usePreference } from "../state/preferences";
import { type ColumnPlace, clampWidth, placesOf } from "./column_places";
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
  /** Content of the header instead of the title. */
  head?: ComponentChildren;
  cell: (row: Row) => ComponentChildren;
}

interface Props<Row> {
  label: string;
  /** Unique name, under which the browser remembers the widths of columns. */
  name: string;
  /** Number of columns that stay while the table is scrolled sideways. */
  pin?: number;
  /** Called to move a column before or behind another one; without it the order is fixed. */
  onOrder?: (key: string, target: string) => void;
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
  const { label, columns, rows, sort, onSort, onOpen, isMarked, empty, pin = 0 } = props;
  const [widths, setWidths] = usePreference<Record<string, number>>(`widths:${props.name}`, {});
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({
    first: 0,
    end: 40,
    height: 600,
    width: 0,
    sideways: false,
  });
  const [active, renderActive] = useState(0);
  const latest = useRef(0); // keys may come faster than renders
  const focus = useRef<"none" | "requested" | "held">("none");

  const setActive = (index: number) => {
    latest.current = index;
    renderActive(index);
  };
  const measure = () => {
    const { scrollTop, scrollLeft, clientHeight, clientWidth } = box.current!;
    const sideways = scrollLeft > 0;
    const next = visibleRows(scrollTop, clientHeight, ROW_HEIGHT, rows.length);
    setView((before) =>
      before.first === next.first &&
      before.end === next.end &&
      before.height === clientHeight &&
      before.width === clientWidth &&
      before.sideways === sideways
        ? before
        : { ...next, height: clientHeight, width: clientWidth, sideways },
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

  // Scrolling keeps these values, so that only what differs between rows is compared.
  const { places, width, styles, classes } = useMemo(() => {
    const found = placesOf(columns, view.width, widths, pin);
    return {
      ...found,
      styles: found.places.map(styleOf),
      classes: found.places.map((place, c) => cellClass(columns[c]!, place)),
    };
  }, [columns, view.width, widths, pin]);
  const resize = (key: string, next: number | null) => {
    const { [key]: _before, ...others } = widths;
    setWidths(next === null ? others : { ...others, [key]: clampWidth(next) });
  };
  return (
    <div
      class={view.sideways ? "table-box sideways" : "table-box"}
      ref={box}
      onScroll={measure}
      tabIndex={-1}
    >
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
                onWidth={(next) => resize(column.key, next)}
                onOrder={props.onOrder}
                neighbours={[columns[c - 1]?.key, columns[c + 1]?.key]}
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
                  <div role="cell" class={classes[c]} style={styles[c]}>
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

function cellClass(column: { number?: boolean }, place: ColumnPlace): string {
  return `t-cell${column.number ? " number" : ""}${place.pinned ? " pinned" : ""}`;
}

const styleOf = ({ left, width }: ColumnPlace) => ({ left: `${left}px`, width: `${width}px` });

/** Change of a width by one press of a key, in px. */
const KEY_PX = 16;
/** Type of the data of a header that is dragged. */
const DRAGGED = "text/x-nni-column";

interface HeaderProps<Row> {
  column: TableColumn<Row>;
  place: ColumnPlace;
  sort: Props<Row>["sort"];
  onSort: (key: string) => void;
  /** Called with null for the usual width. */
  onWidth: (width: number | null) => void;
  onOrder: Props<Row>["onOrder"];
  /** Keys of the columns beside it. */
  neighbours: [string | undefined, string | undefined];
}

function Header<Row>(props: HeaderProps<Row>) {
  const { column, place, sort, onSort, onWidth, onOrder, neighbours } = props;
  const sorted = sort.key === column.key;
  if (column.sortable === false)
    return (
      <div role="columnheader" class={cellClass(column, place)} style={styleOf(place)}>
        {column.head ?? (column.title || <span class="visually-hidden">Select</span>)}
      </div>
    );
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !event.shiftKey) return;
    event.preventDefault();
    const beside = neighbours[step < 0 ? 0 : 1];
    if (!event.altKey) onWidth(place.width + step * KEY_PX);
    else if (beside) onOrder?.(column.key, beside);
  };
  return (
    <div
      role="columnheader"
      class={cellClass(column, place)}
      style={styleOf(place)}
      aria-sort={sorted ? (sort.descending ? "descending" : "ascending") : undefined}
      draggable={onOrder !== undefined}
      onDragStart={(event) => event.dataTransfer?.setData(DRAGGED, column.key)}
      onDragOver={(event) => {
        if (onOrder && event.dataTransfer?.types.includes(DRAGGED)) event.preventDefault();
      }}
      onDrop={(event) => {
        const key = event.dataTransfer?.getData(DRAGGED);
        if (key && key !== column.key) onOrder?.(key, column.key);
      }}
    >
      <button
        type="button"
        title={`Sort by ${column.title}`}
        onClick={() => onSort(column.key)}
        onKeyDown={onKeyDown}
      >
        <span>{column.title}</span>
        {sorted ? <Icon name={sort.descending ? "down" : "up"} size={12} /> : null}
      </button>
      <Handle width={place.width} onWidth={onWidth} />
    </div>
  );
}

/** Right edge of a header: dragging it changes the width, a double click resets it. */
function Handle({ width, onWidth }: { width: number; onWidth: (width: number | null) => void }) {
  const start = useRef<{ x: number; width: number } | null>(null);
  return (
    <span
      class="t-resize"
      aria-hidden="true"
      draggable
      onDragStart={(event) => {
        // The header would be dragged.
        event.preventDefault();
        event.stopPropagation();
      }}
      onPointerDown={(event) => {
        start.current = { x: event.clientX, width };
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        const from = start.current;
        if (from) onWidth(from.width + event.clientX - from.x);
      }}
      onPointerUp={() => {
        start.current = null;
      }}
      onPointerCancel={() => {
        start.current = null;
      }}
      onDblClick={() => onWidth(null)}
    />
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
