// Range of rows of a virtual table that are in the document.

export interface VisibleRows {
  /** Index of the first row in the document. */
  first: number;
  /** Index after the last row in the document. */
  end: number;
}

/** Rows rendered above and below the visible ones, so that scrolling shows no gap. */
const OVERSCAN = 6;
/** The range moves in steps of so many rows: most wheel events then change nothing. */
const STEP = 4;

/** Return the range of rows to render.
 *
 * `top` and `height` are the visible part of the table in px, `rowHeight` is that of each row.
 */
export function visibleRows(
  top: number,
  height: number,
  rowHeight: number,
  count: number,
): VisibleRows {
  const seen = Math.ceil(height / rowHeight) + 1;
  // The list may have shrunk while it was scrolled down.
  const start = Math.max(0, Math.min(Math.floor(top / rowHeight), count - seen) - OVERSCAN);
  const first = start - (start % STEP);
  return { first, end: Math.min(count, first + seen + 2 * OVERSCAN + STEP) };
}
