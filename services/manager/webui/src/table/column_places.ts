// Places of the columns of a table: widths, remaining space, and which stay while it is scrolled.

export interface ColumnPlace {
  left: number;
  width: number;
  /** Whether it stays at the left edge while the table is scrolled sideways. */
  pinned: boolean;
}

/** Least width of a column that the user resizes, and greatest, in px. */
export const LEAST_PX = 40;
export const MOST_PX = 900;
/** Greatest share of the table that pinned columns take; more would leave no room for others. */
const MOST_PINNED = 0.6;

/** Return a width that a user may choose. */
export function clampWidth(width: number): number {
  return Math.round(Math.max(LEAST_PX, Math.min(MOST_PX, width)));
}

/**
 * Return the place of each column and the width of all.
 *
 * Args:
 *   columns: in their order, with their usual widths.
 *   room: width of the table; space that remains is divided among the columns.
 *   chosen: widths that the user has chosen, by key; these columns get no more.
 *   pin: number of columns to pin, from the left; those that leave too little room are not.
 */
export function placesOf(
  columns: readonly { key: string; width: number }[],
  room: number,
  chosen: Readonly<Record<string, number>> = {},
  pin = 0,
): { places: ColumnPlace[]; width: number } {
  const own = (key: string) => {
    const width = Object.hasOwn(chosen, key) ? chosen[key]! : NaN;
    return Number.isFinite(width) ? clampWidth(width) : null;
  };
  let fixed = 0;
  let flexible = 0;
  for (const { key, width } of columns) {
    const mine = own(key);
    if (mine === null) flexible += width;
    else fixed += mine;
  }
  const wider = flexible > 0 ? Math.max(1, (room - fixed) / flexible) : 1;
  let left = 0;
  let pins = true;
  const places = columns.map(({ key, width }, i) => {
    const mine = own(key) ?? Math.floor(width * wider);
    // The first one that does not fit ends the pinned ones.
    pins &&= i < pin && (room === 0 || left + mine <= room * MOST_PINNED);
    const place = { left, width: mine, pinned: pins };
    left += mine;
    return place;
  });
  return { places, width: left };
}
