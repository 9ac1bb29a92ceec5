"""Does an assessor cost quality, at equal epochs?

Curves of several shapes, each trial up to 20 epochs, and a budget of epochs for all trials. Columns
are medians of the regret of the best completed trial: without an assessor, with Medianstop where
stopped trials teach nothing, and with Medianstop as it is. Optuna's TPE with its MedianPruner runs
on the same problems. `--seeds N`, `--tuners NAME ...`, `--problems NAME ...` and `--full N` (the
budget in full trials) change the size; `--start N` is the first epoch at which trials are stopped.
"""

import argparse
import math
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, Final

import optuna
from threadpoolctl import threadpool_limits

from nni.hpo import AssessResult, MedianstopAssessor, Study
from nni.hpo.search.study import one_blas_thread
from tests.benchmarks.measure import print_header

EPOCHS: Final = 20
TUNERS: Final = ("Random", "TPE", "auto", "GPTuner")

Point = dict[str, Any]
Curve = Callable[[float], float]

SPACE: Final = {
    "lr": {"_type": "loguniform", "_value": [1e-4, 1.0]},
    "decay": {"_type": "uniform", "_value": [0, 1]},
    "width": {"_type": "randint", "_value": [1, 33]},
    "mix": {"_type": "uniform", "_value": [0, 1]},
}


def far(point: Point) -> float:
    """Return how far a configuration is from the best one; 0 at best, about 1 on average."""
    rate = math.log10(point["lr"]) + 2.3
    width = (point["width"] - 20) / 32
    bent = point["decay"] - 0.35 - 0.3 * math.sin(3 * point["mix"])
    return float(rate**2 * 0.5 + 3 * bent**2 + width**2 + 0.5 * (point["mix"] - 0.7) ** 2)


def flat(point: Point) -> Curve:
    """Curves that show their end from the first epoch on, so that most trials are stopped."""
    end = far(point)
    return lambda epoch: end + 0.02 * math.exp(-epoch / 5)


def parallel(point: Point) -> Curve:
    """Curves in the order of their ends, at every epoch."""
    end = far(point)
    return lambda epoch: end + 0.5 * math.exp(-epoch / 5)


def scaled(point: Point) -> Curve:
    """Power laws that begin close together and part slowly."""
    end = far(point)
    return lambda epoch: 2.5 - (2.5 - end) * (1 - epoch**-0.7)


def crossing(point: Point) -> Curve:
    """High rates are ahead at first; lower ones end better."""
    end = far(point)
    speed = 0.08 + 0.25 * (math.log10(point["lr"]) + 4)
    return lambda epoch: end + 2 * math.exp(-speed * epoch)


def late(point: Point) -> Curve:
    """Nothing happens until a drop, which is the later the wider the model."""
    end, drop = far(point), 2 + point["width"] / 6
    return lambda epoch: end + 1.5 / (1 + math.exp(2 * (epoch - drop)))


def overfitting(point: Point) -> Curve:
    """Without decay the loss falls faster, and rises again."""
    end, decay = far(point), point["decay"]
    return lambda epoch: (
        end + 2 * math.exp(-epoch * (0.6 - 0.4 * decay)) + 0.002 * (1 - decay) * epoch**2
    )


PROBLEMS: Final = {
    one.__name__: one for one in (flat, parallel, scaled, crossing, late, overfitting)
}
NOISE: Final = {"scaled": 0.05}
"""Standard deviation of each result."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Curves of one shape."""

    name: str
    budget: int
    """Epochs of all trials together."""
    start: int = 0
    """Epoch from which on trials are stopped."""

    def results(self, point: Point, noise: random.Random) -> Iterator[float]:
        """Yield the result of each epoch."""
        curve, spread = PROBLEMS[self.name](point), NOISE.get(self.name, 0.0)
        for epoch in range(1, EPOCHS + 1):
            yield curve(epoch) + noise.gauss(0, spread)

    def quality(self, point: Point) -> float:
        """Return the last loss without noise."""
        return PROBLEMS[self.name](point)(EPOCHS)

    @property
    def optimum(self) -> float:
        """The least last loss of many points: the random ones, and a descent from the best."""
        draws = random.Random(0)
        best: Point = {"lr": 5e-3, "decay": 0.6, "width": 20, "mix": 0.7}
        for step in range(6000):
            reach = 0.5 * 0.999**step
            point = {
                "lr": min(1.0, max(1e-4, best["lr"] * 10 ** draws.gauss(0, 2 * reach))),
                "decay": min(1.0, max(0.0, best["decay"] + draws.gauss(0, reach))),
                "width": min(32, max(1, best["width"] + round(draws.gauss(0, 16 * reach)))),
                "mix": min(1.0, max(0.0, best["mix"] + draws.gauss(0, reach))),
            }
            best = min(best, point, key=self.quality)
        return self.quality(best)


@dataclass(frozen=True, slots=True)
class Found:
    """Outcome of one search."""

    regret: float
    started: int
    completed: int


def search(problem: Problem, tuner: str, seed: int, *, stops: bool, teaches: bool) -> Found:
    """Search with one of our tuners until the epochs are used."""
    study = Study(SPACE, tuner=tuner, seed=seed)
    assessor = MedianstopAssessor("minimize", problem.start) if stops else None
    noise, used, started = random.Random(seed), 0, 0
    done: list[tuple[Point, float]] = []
    while used < problem.budget:
        trial = study.ask()
        started += 1
        history: list[float] = []
        good = True
        for value in problem.results(trial.parameters, noise):
            history.append(value)
            used += 1
            if assessor is not None:
                good = assessor.assess_trial(str(trial.id), list(history)) is AssessResult.Good
            if not good:
                break
        if assessor is not None:
            assessor.trial_end(str(trial.id), good)
        shown = history if teaches else []
        study.tell(trial, history[-1] if good else None, stopped=not good, intermediate=shown)
        if good:
            done.append((trial.parameters, history[-1]))
    return _found(problem, done, started)


def optuna_search(problem: Problem, seed: int, *, stops: bool) -> Found:
    """Search with Optuna's TPE until the epochs are used."""
    median_pruner = optuna.pruners.MedianPruner(n_warmup_steps=max(0, problem.start - 1))
    pruner = median_pruner if stops else optuna.pruners.NopPruner()
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed), pruner=pruner)
    noise, used, started = random.Random(seed), 0, 0
    done = []
    while used < problem.budget:
        trial = study.ask()
        started += 1
        point = {
            "lr": trial.suggest_float("lr", 1e-4, 1.0, log=True),
            "decay": trial.suggest_float("decay", 0, 1),
            "width": trial.suggest_int("width", 1, 32),
            "mix": trial.suggest_float("mix", 0, 1),
        }
        good = True
        for epoch, value in enumerate(problem.results(point, noise), 1):
            used += 1
            trial.report(value, epoch)
            if trial.should_prune():
                good = False
                break
        if good:
            study.tell(trial, value)
            done.append((point, value))
        else:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    return _found(problem, done, started)


def _found(problem: Problem, done: list[tuple[Point, float]], started: int) -> Found:
    incumbent, _ = min(done, key=lambda pair: pair[1])
    return Found(problem.quality(incumbent), started, len(done))


def main() -> int:
    parser = argparse.ArgumentParser("./dev bench stopped_trials", description=__doc__)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--full", type=int, default=30)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--tuners", nargs="+", default=TUNERS)
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS))
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    print_header(str(__doc__), seed=0, packages=["numpy", "optuna"])
    print(
        f"{'problem':12} {'searcher':9} {'no stops':>10} {'untaught':>10} {'Medianstop':>10}"
        f" {'started':>8} {'completed':>9}"
    )
    with threadpool_limits(1), one_blas_thread():
        for name in options.problems:
            problem = Problem(name, options.full * EPOCHS, options.start)
            optimum = problem.optimum
            for tuner in options.tuners:
                columns = [
                    [
                        search(problem, tuner, seed, stops=stops, teaches=teaches)
                        for seed in range(options.seeds)
                    ]
                    for stops, teaches in ((False, False), (True, False), (True, True))
                ]
                _print(name, tuner, optimum, columns)
            plain, stopped = (
                [optuna_search(problem, seed, stops=stops) for seed in range(options.seeds)]
                for stops in (False, True)
            )
            _print(name, "Optuna", optimum, [plain, [], stopped])
    return 0


def _print(problem: str, searcher: str, optimum: float, columns: list[list[Found]]) -> None:
    regrets = [
        f"{median(one.regret - optimum for one in column):10.2g}" if column else f"{'':10}"
        for column in columns
    ]
    started = fmean(one.started for one in columns[-1])
    completed = fmean(one.completed for one in columns[-1])
    print(f"{problem:12} {searcher:9} {' '.join(regrets)} {started:8.0f} {completed:9.0f}")


if __name__ == "__main__":
    sys.exit(main())
