"""Time a blocked matrix product with one set of tiles, or estimate it by a model of a cache."""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import statistics
import time

import numpy as np

import nni

ROWS, INNER, COLUMNS = 64, 128, 128
ALONE = {"rows": [1, 1, 64], "inner": [1, 128], "columns": [1, 1, 128]}
"""One tile for the whole product."""
CACHES = [(4 * 1024, 1.0), (32 * 1024, 4.0), (2**40, 30.0)]
"""Bytes of each level, and the cost of a number from it in cycles; the last one is the memory.
Small ones, since the product is small."""
VECTOR = 8
"""Numbers that one instruction multiplies; a shorter inner loop wastes the rest."""
REPEATS = 3


def estimated(rows, inner, columns):
    """Return the cycles for a multiplication, by a model of a cache; the same for all machines.

    A list of factors is how often a loop runs at each level, from the outside to the inside.
    """
    cycles = 0.0
    below_rows, below_columns = rows[1] * rows[2], columns[1] * columns[2]
    for tile_rows, tile_inner, tile_columns in (
        (below_rows, inner[1], below_columns),
        (rows[2], inner[1], columns[2]),
    ):
        numbers = tile_rows * tile_inner + tile_inner * tile_columns + tile_rows * tile_columns
        cost = next(cost for size, cost in CACHES if 4 * numbers <= size)
        reused = 1 / tile_rows + 1 / tile_columns + 2 / tile_inner  # loads for each multiplication
        cycles += cost * reused
    wasted = -(-columns[2] // VECTOR) * VECTOR / columns[2]
    started = 8 / (rows[2] * inner[1] * columns[2])  # the inner loops
    return wasted / VECTOR + cycles + started


def measured(rows, inner, columns):
    """Return the median time of the product in seconds, block by block with NumPy."""
    left = np.ones((ROWS, INNER), dtype=np.float32)
    right = np.ones((INNER, COLUMNS), dtype=np.float32)
    step_rows, step_inner, step_columns = rows[1] * rows[2], inner[1], columns[1] * columns[2]
    seconds = []
    for _ in range(REPEATS):
        product = np.zeros((ROWS, COLUMNS), dtype=np.float32)
        began = time.perf_counter()
        for row in range(0, ROWS, step_rows):
            for column in range(0, COLUMNS, step_columns):
                block = product[row : row + step_rows, column : column + step_columns]
                for k in range(0, INNER, step_inner):
                    block += (
                        left[row : row + step_rows, k : k + step_inner]
                        @ right[k : k + step_inner, column : column + step_columns]
                    )
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def evaluate(parameters):
    return estimated(**(ALONE | parameters))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", action="store_true", help="time it; by default, estimate")
    function = measured if parser.parse_args().measure else estimated
    nni.report_final_result(function(**(ALONE | nni.get_next_parameter())))
