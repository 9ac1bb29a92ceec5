// Which rows of a long table are in the document.

export interface VisibleRows {
  /** Index of the first row in the document. */
  first: number;
  /** Index behind the last one. */
  end: number;
}

/** Rows kept ready above and below what is seen, so that scrolling shows no gap. */
const SPARE = 6;
/** The window moves by so many rows at once: most turns of the wheel then change nothing. */
const STEP = 4;

/** Return the rows to draw.
 *
 * `top` and `height` are what is seen of the table, in px, `rowHeight` that of every row.
 */
export function visibleRows(
  top: number,
  height: number,
  rowHeight: number,
  count: number,
): VisibleRows {
  const seen = Math.ceil(height / rowHeight) + 1;
  // The list may have shrunk while it was scrolled down.
  const start = Math.max(0, Math.min(Math.floor(top / rowHeight), count - seen) - SPARE);
  const first = start - (start % STEP);
  return { first, end: Math.min(count, first + seen + 2 * SPARE + STEP) };
}
