"""Do evolution and reinforcement learning find better models than random search?

Best model of 20 searches with different seeds on a table of 15,625 cells of six operations: each
operation and each pair of them adds to the metric. p is that of a one-sided Mann-Whitney test
against random search with as many evaluations. Targets: evolution at 200 evaluations p < 0.01, PPO
at 500 p < 0.05. `--seeds N` changes their number.
"""

import argparse
import random
import time
from collections.abc import Callable
from typing import Final

import torch
from scipy.stats import mannwhitneyu

from nni.mutable import Categorical, Sample
from nni.nas.space import RawFormatModelSpace
from nni.nas.strategy import TPE, PolicyBasedRL, Random, RegularizedEvolution, Strategy
from nni.testing.strategies import SimulatedEngine, TableSpace
from tests.benchmarks.measure import print_figure, print_header

EDGES: Final = 6
OPERATIONS: Final = 5
INTERACTION: Final = 0.5
"""Deviation of what a pair of operations adds; a single one has 1."""
SEED: Final = 0

Make = Callable[[int], Strategy]
STRATEGIES: Final[dict[str, tuple[int, Make, str]]] = {
    "evolution": (
        200,
        lambda seed: RegularizedEvolution(population_size=50, sample_size=25, seed=seed),
        "< 0.01",
    ),
    "TPE": (200, lambda seed: TPE(seed=seed), ""),
    "PPO": (500, lambda seed: PolicyBasedRL(seed=seed), "< 0.05"),
}
"""Evaluations, constructor for a seed, and the target of p."""


def table(seed: int) -> Callable[[Sample], float]:
    """Return the metric of a cell by its operations."""
    rng = random.Random(seed)
    single = [[rng.gauss(0, 1) for _ in range(OPERATIONS)] for _ in range(EDGES)]
    pairs = {
        (first, second): [
            [rng.gauss(0, INTERACTION) for _ in range(OPERATIONS)] for _ in range(OPERATIONS)
        ]
        for first in range(EDGES)
        for second in range(first)
    }

    def metric(sample: Sample) -> float:
        cell = [sample[str(edge)] for edge in range(EDGES)]
        alone = sum(single[edge][operation] for edge, operation in enumerate(cell))
        return float(alone + sum(one[cell[i]][cell[j]] for (i, j), one in pairs.items()))

    return metric


def best_of(strategy: Strategy, metric: Callable[[Sample], float], evaluations: int) -> float:
    """Return the best metric of one search."""
    choices = (Categorical(list(range(OPERATIONS)), label=str(edge)) for edge in range(EDGES))
    strategy(RawFormatModelSpace(TableSpace(*choices)), SimulatedEngine(metric, evaluations))
    return float(strategy.list_models(limit=1)[0].metric)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    seeds = range(parser.parse_args().seeds)
    print_header(str(__doc__), seed=SEED, packages=["torch"])
    torch.set_num_threads(1)
    metric = table(SEED)
    for name, (evaluations, make, target) in STRATEGIES.items():
        start = time.perf_counter()
        found = [best_of(make(seed), metric, evaluations) for seed in seeds]
        took = (time.perf_counter() - start) / len(seeds)
        drawn = [best_of(Random(seed=seed), metric, evaluations) for seed in seeds]
        print_figure(f"random, best of {evaluations}", drawn, "")
        print_figure(f"{name}, best of {evaluations}", found, "")
        p = mannwhitneyu(found, drawn, alternative="greater").pvalue
        print_figure(f"{name}, p against random", [float(p)], "", target=target)
        print_figure(f"{name}, time of a search", [took], "s")


if __name__ == "__main__":
    main()
