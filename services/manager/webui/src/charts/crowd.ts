// Points and bars of which there are more than pixels: what a screen shows of them, as pixels.
//
// Thousands of paths take the browser seconds to fill. A point is a small mask that is copied into
// a buffer of pixels, at the nearest pixel; of bars that share a column of pixels the union is one
// bar.

/** Number of points from which on they are drawn as pixels. */
export const CROWD = 600;

/** Coverage of the pixels of one point, from 0 to 255, row by row; its middle is its place. */
export interface Stamp {
  /** Number of columns and of rows, odd. */
  side: number;
  coverage: ArrayLike<number>;
}

/** Pixels in their order, red, green, blue and opacity of each. */
export interface Pixels {
  width: number;
  height: number;
  data: Uint8ClampedArray;
}

/**
 * Copy a point to each place; where points overlap, the pixel has the greater coverage, as if all
 * were one shape.
 *
 * Args:
 *   pixels: empty, or with points of the same colour.
 *   places: x and y of each point in turn, in pixels from the upper left corner.
 *   colour: red, green and blue from 0 to 255, and opacity from 0 to 1.
 */
export function stampPoints(
  pixels: Pixels,
  places: readonly number[],
  stamp: Stamp,
  [red, green, blue, opacity]: readonly [number, number, number, number],
): void {
  const { width, height, data } = pixels;
  const half = (stamp.side - 1) / 2;
  for (let i = 0; i < places.length; i += 2) {
    const left = Math.round(places[i]!) - half;
    const top = Math.round(places[i + 1]!) - half;
    for (let row = Math.max(0, -top); row < Math.min(stamp.side, height - top); row += 1)
      for (
        let column = Math.max(0, -left);
        column < Math.min(stamp.side, width - left);
        column += 1
      ) {
        const covered = stamp.coverage[row * stamp.side + column]! * opacity;
        const at = 4 * ((top + row) * width + left + column);
        if (covered <= data[at + 3]!) continue;
        data[at] = red;
        data[at + 1] = green;
        data[at + 2] = blue;
        data[at + 3] = covered;
      }
  }
}

/** Column of pixels of a bar chart, with the upper end of its highest bar. */
export interface Column {
  /** Index of the column, from the left. */
  x: number;
  top: number;
}

/** Return the union of bars that are at most a pixel wide; `places` are x and top in turn. */
export function columnsOf(places: readonly number[]): Column[] {
  const tops = new Map<number, number>();
  for (let i = 0; i < places.length; i += 2) {
    const x = Math.floor(places[i]!);
    tops.set(x, Math.min(tops.get(x) ?? Infinity, places[i + 1]!));
  }
  return [...tops].map(([x, top]) => ({ x, top }));
}
