"""Comparison of multi-trial strategies on the table of cells: `python -m nni_benchmark nas`."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from nni.nas.benchmark import BenchmarkModelSpace
from nni.nas.execution import SequentialExecutionEngine
from nni.nas.strategy import TPE, PolicyBasedRL, Random, RegularizedEvolution, Strategy
from nni_benchmark.nas.table import DigitsBenchmark

Make = Callable[[int], Strategy]

STRATEGIES: Final[Mapping[str, Make]] = {
    "random": lambda seed: Random(seed=seed),
    "evolution": lambda seed: RegularizedEvolution(population_size=50, sample_size=25, seed=seed),
    "tpe": lambda seed: TPE(seed=seed),
    "ppo": lambda seed: PolicyBasedRL(seed=seed),
}
"""Name to constructor for a seed; the evolution is that of the published comparison."""


def best_accuracy(strategy: Strategy, evaluations: int) -> float:
    """Run one search with a strategy on the table; return its best validation accuracy, 0 to 1.

    Args:
        strategy: a new strategy.
        evaluations: number of models.

    Examples:
        >>> best_accuracy(Random(seed=0), 5) > 0.2
        True
    """
    evaluator = DigitsBenchmark()
    models = BenchmarkModelSpace(evaluator=evaluator)
    strategy(models, SequentialExecutionEngine(max_model_count=evaluations))
    return max(float(model.metric) for model in strategy.list_models(sort=True, limit=1))


def report(names: Sequence[str], evaluations: int, seeds: int) -> str:
    """Run all searches of the strategies; return mean, worst and best accuracy as a text table.

    Args:
        names: names of strategies.
        evaluations: models of each search.
        seeds: searches of each strategy.

    Examples:
        >>> print(report(["random"], evaluations=3, seeds=2).splitlines()[0])
        15,625 cells on digits, best of 3 evaluations, 2 seeds
    """
    lines = [
        f"15,625 cells on digits, best of {evaluations} evaluations, {seeds} seeds",
        f"{'strategy':<12}{'mean':>8}{'worst':>8}{'best':>8}",
    ]
    for name in names:
        found = [best_accuracy(STRATEGIES[name](seed), evaluations) for seed in range(seeds)]
        mean = statistics.fmean(found)
        lines.append(f"{name:<12}{mean:8.4f}{min(found):8.4f}{max(found):8.4f}")
    return "\n".join(lines)


def check_strategies(names: Sequence[str]) -> None:
    """Raise ValueError unless all strategies are known.

    Args:
        names: names of strategies.

    Raises:
        ValueError: one is unknown.

    Examples:
        >>> check_strategies(["hyperband"])
        Traceback (most recent call last):
        ValueError: strategies must be of random, evolution, tpe, ppo, got 'hyperband'
    """
    for name in names:
        if name not in STRATEGIES:
            raise ValueError(f"strategies must be of {', '.join(STRATEGIES)}, got {name!r}")
