"""What does one ask of GP, Metis, DNGO and SMAC cost, and how good is the best of 100 trials?

CPU time with one BLAS thread, ten mixed parameters, after 100 and 1,000 results. Targets for GP:
100 and 150 ms. Then medians of the best on the problems of `bench_tpe_quality`, trials one after
another, lower is better. `--seeds N --trials N` change the size, `--latency` leaves quality out.

And the loss where a Gaussian process is conditioned on a selection of the results: rank correlation
of predictions and losses of unseen points, near the best and anywhere, beside the process of all
results (1 is a perfect order).
"""

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from threadpoolctl import threadpool_limits

from nni.hpo import RandomTuner
from nni.hpo.models.gp_model import MOST_MODELLED, GPModel
from nni.hpo.models.gp_regression import Kernel
from nni.hpo.models.matern import Matern
from nni.hpo.models.subsets import covering_subset
from nni.hpo.models.targets import standardised, warped
from nni.hpo.registry.factory import create
from nni_benchmark import functions
from tests.benchmarks.bench_tpe_quality import PROBLEMS, ours
from tests.benchmarks.measure import print_figure, print_header

SEED = 0
REPETITIONS = 30
TARGETS = {("GPTuner", 100): "<= 100 ms", ("GPTuner", 1000): "<= 150 ms"}
NUMBERS: dict[str, Any] = {
    **{f"f{i}": {"_type": "uniform", "_value": [-5, 5]} for i in range(5)},
    "i0": {"_type": "randint", "_value": [1, 20]},
    "i1": {"_type": "randint", "_value": [0, 100]},
    "q0": {"_type": "quniform", "_value": [0, 1, 0.1]},
    "c0": {"_type": "choice", "_value": [1, 2, 4, 8]},
    "c1": {"_type": "choice", "_value": [0, 1]},
}
"""Of types that all four support."""
TUNERS = ("GPTuner", "MetisTuner", "DNGOTuner", "SMAC")
FLOAT_PROBLEMS = ("branin", "hartmann6", "ackley10", "rosenbrock5")


def value_of(point: dict[str, Any]) -> float:
    return float(sum(point[f"f{i}"] ** 2 for i in range(5)) + abs(point["i0"] - 7) + point["c0"])


def asks(name: str, size: int) -> list[float]:
    """Return CPU milliseconds of asks, each followed by a result."""
    rival = RandomTuner(seed=SEED)
    rival.update_search_space(NUMBERS)
    tuner = create("tuner", name, optimize_mode="minimize", seed=SEED)
    tuner.update_search_space(NUMBERS)
    points = [rival.generate_parameters(index) for index in range(size)]
    tuner.import_data([{"parameter": point, "value": value_of(point)} for point in points])
    times = []
    for number in range(REPETITIONS):
        start = time.process_time()
        point = tuner.generate_parameters(number)
        times.append((time.process_time() - start) * 1000)
        tuner.receive_trial_result(number, point, value_of(point))
        tuner.trial_end(number, True)
    return times


def best(name: str, problem: str, seed: int, trials: int) -> float:
    return ours(PROBLEMS[problem], seed, trials, name)


def order_found(function: Any, axes: int, size: int, seed: int, limit: int) -> tuple[float, float]:
    """Return rank correlations of predictions and losses, near the best results and anywhere."""
    rng = np.random.default_rng(seed)
    points = rng.random((size // 3, axes))
    losses = np.array([function(point) for point in points])
    while len(points) < size:
        good = points[np.argsort(losses)[:10]]
        steps = rng.choice([0.2, 0.07, 0.02]) * rng.standard_normal(good.shape)
        near = np.clip(good + steps, 0, 1)
        points = np.concatenate([points, near])
        losses = np.append(losses, [function(point) for point in near])
    kept = covering_subset(points, losses, limit)
    gp = GPModel(Kernel(np.arange(axes), Matern.of(2.5), 1e-6))
    targets = standardised(warped(losses)[kept])
    model = gp.update(points[kept], targets, kept, size).posterior
    centres = points[np.argsort(losses)[:10]][rng.integers(10, size=300)]
    near = np.clip(centres + 0.1 * rng.standard_normal(centres.shape), 0, 1)
    near_found, far_found = (
        float(spearmanr(model.predict(unseen)[0], [function(p) for p in unseen]).statistic)
        for unseen in (near, rng.random((300, axes)))
    )
    return near_found, far_found


def print_selection(seeds: int) -> None:
    """Print how well selections order unseen points."""
    for name, function, axes in (
        ("hartmann6", functions.hartmann6, 6),
        ("ackley10", lambda x: functions.ackley(-5 + 15 * x), 10),
    ):
        for size in (600, 1000):
            for limit in (size, MOST_MODELLED):
                found = [order_found(function, axes, size, s, limit) for s in range(seeds)]
                of = "all" if limit == size else str(limit)
                for place, where in enumerate(("near the best", "anywhere")):
                    figures = [pair[place] for pair in found]
                    print_figure(f"{name}, {size} results, model of {of}: {where}", figures, "")


def print_quality(seeds: int, trials: int) -> None:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for the processes of the pool
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for problem in FLOAT_PROBLEMS:
            for name in (*TUNERS, "Random"):
                jobs = [pool.submit(best, name, problem, s, trials) for s in range(seeds)]
                print_figure(f"{problem}, {name}", [job.result() for job in jobs], "")
    print(f"   medians of {seeds} seeds (least .. greatest), {trials} trials each")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--latency", action="store_true")
    options = parser.parse_args()
    print_header(str(__doc__), seed=SEED, packages=["numpy"])
    for name in TUNERS:
        for size in (100, 1000):
            with threadpool_limits(1):
                times = asks(name, size)
            target = TARGETS.get((name, size), "")
            print_figure(f"ask, {name}, {size} results", times, "ms CPU", target=target)
    with threadpool_limits(1):
        print_selection(3)
    if not options.latency:
        print_quality(options.seeds, options.trials)


if __name__ == "__main__":
    main()
