// Surface of the result over two columns, estimated between the trials.

/** A trial at its positions on both axes, from 0 to 1, with its rank from 0 (worst) to 1 (best). */
export interface Sample {
  x: number;
  y: number;
  rank: number;
}

/** Cells of a surface, row by row from the lower left corner. */
export interface Surface {
  /** Number of columns and of rows. */
  size: number;
  /** Estimated ranks; null where no trial is near. */
  cells: (number | null)[];
}

/** Number of columns and rows: finer ones would pretend to know more. */
const SIZE = 40;
/** Least number of trials that make a surface. */
const LEAST = 4;
/** Maximum number of trials that are used, the latest ones: the time grows with their number. */
const MOST = 2_000;
/** Distance within which trials are averaged, and beyond which nothing is known. */
const SMOOTH = 0.06;
const REACH = 0.3;

/**
 * Return the average rank around each cell, weighted by the inverse distance to the power of four (Shepard 1968);
 * null with too few trials.
 */
export function surfaceOf(samples: readonly Sample[], size = SIZE): Surface | null {
  if (samples.length < LEAST) return null;
  const used = samples.slice(-MOST);
  const cells: (number | null)[] = [];
  for (let row = 0; row < size; row += 1)
    for (let column = 0; column < size; column += 1)
      cells.push(estimate(used, (column + 0.5) / size, (row + 0.5) / size));
  return { size, cells };
}

function estimate(samples: readonly Sample[], x: number, y: number): number | null {
  let sum = 0;
  let weights = 0;
  let least = Infinity;
  for (const one of samples) {
    const square = (one.x - x) ** 2 + (one.y - y) ** 2;
    const weight = 1 / (square + SMOOTH ** 2) ** 2;
    sum += weight * one.rank;
    weights += weight;
    if (square < least) least = square;
  }
  return least > REACH ** 2 ? null : sum / weights;
}
