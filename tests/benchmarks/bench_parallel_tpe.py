"""How much do running trials cost TPE, and how much does each lie help?

Mean of the best of 240 trials on Branin with 10, 40 and 80 trials at a time: without lies and with
each kind, beside what specification hpo §11 measured of a plain TPE with the same 40 seeds, and
random search. What it wants: with lies less than without. `--seeds N` changes the size.
"""

import argparse
import math
import statistics
from typing import Any, Final

from nni.hpo import Study
from tests.benchmarks.measure import print_figure, print_header

TRIALS: Final = 240
SPACE: Final[dict[str, Any]] = {
    "x": {"_type": "uniform", "_value": [-5, 10]},
    "y": {"_type": "uniform", "_value": [0, 15]},
}
PLAIN: Final = {
    10: {"off": 0.558, "min": 0.650, "mean": 0.494, "max": 0.494},
    40: {"off": 0.607, "min": 0.555, "mean": 0.492, "max": 0.492},
    80: {"off": 0.619, "min": 0.573, "mean": 0.533, "max": 0.533},
}
"""Concurrency to lie to mean of the best, of the specification."""
RANDOM: Final = 0.62
"""Of random search, from the specification."""


def branin(parameters: dict[str, float]) -> float:
    x, y = parameters["x"], parameters["y"]
    valley = y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6
    return valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def best(lie: str, concurrency: int, seed: int) -> float:
    """Return the best of one search whose trials end in the order in which they started."""
    arguments = {} if lie == "off" else {"parallel_optimize": True, "constant_liar_type": lie}
    study = Study(SPACE, tuner="TPE", tuner_args=arguments, seed=seed)
    running = [study.ask() for _ in range(concurrency)]
    for asked in range(concurrency, TRIALS + concurrency):
        trial = running.pop(0)
        study.tell(trial, branin(trial.parameters))
        if asked < TRIALS:
            running.append(study.ask())
    return study.best_value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    seeds = range(parser.parse_args().seeds)
    print_header(str(__doc__), seed=0, packages=["numpy"])
    for concurrency, plain in PLAIN.items():
        means: dict[str, float] = {}
        for lie, peer in plain.items():
            values = [best(lie, concurrency, seed) for seed in seeds]
            means[lie] = statistics.fmean(values)
            print_figure(f"{concurrency} at a time, lies: {lie}, median", values, "")
            print(f"     mean {means[lie]:.4f}, plain TPE {peer}, random search {RANDOM}")
        for lie in ("min", "mean", "max"):
            verdict = "less" if means[lie] < means["off"] else "not less"
            print(f"   {concurrency} at a time: with {lie} {verdict} than without lies")


if __name__ == "__main__":
    main()
