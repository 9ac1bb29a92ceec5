"""Do evolution and reinforcement learning find better models than random search?

Best validation accuracy of 20 searches with different seeds on the committed table of 15,625 cells
on digits. p is that of a one-sided Mann-Whitney test against random search with as many
evaluations. Targets: evolution at 200 evaluations p < 0.01, PPO at 500 p < 0.05. `--seeds N`
changes their number.
"""

import argparse
import time
from collections.abc import Callable
from typing import Final

import torch
from scipy.stats import mannwhitneyu

from nni.nas.strategy import TPE, PolicyBasedRL, Random, RegularizedEvolution, Strategy
from nni_benchmark.nas.comparison import best_accuracy
from tests.benchmarks.measure import print_figure, print_header

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    seeds = range(parser.parse_args().seeds)
    print_header(str(__doc__), seed=SEED, packages=["torch"])
    torch.set_num_threads(1)
    for name, (evaluations, make, target) in STRATEGIES.items():
        start = time.perf_counter()
        found = [best_accuracy(make(seed), evaluations) for seed in seeds]
        took = (time.perf_counter() - start) / len(seeds)
        drawn = [best_accuracy(Random(seed=seed), evaluations) for seed in seeds]
        print_figure(f"random, best of {evaluations}", drawn, "")
        print_figure(f"{name}, best of {evaluations}", found, "")
        p = mannwhitneyu(found, drawn, alternative="greater").pvalue
        print_figure(f"{name}, p against random", [float(p)], "", target=target)
        print_figure(f"{name}, time of a search", [took], "s")


if __name__ == "__main__":
    main()
