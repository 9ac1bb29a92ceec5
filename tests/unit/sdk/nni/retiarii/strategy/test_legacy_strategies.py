"""Strategies with the arguments of NNI 2.x."""

import math
import warnings
from typing import Any

import pytest

from nni.mutable import Categorical, Sample
from nni.nas.space import RawFormatModelSpace
from nni.nas.strategy import Strategy
from nni.retiarii import strategy as legacy
from nni.retiarii.deprecation import warn_once
from nni.retiarii.strategy.legacy_strategies import SubmissionLimit
from nni.testing.strategies import Score, SimulatedEngine, TableSpace

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def searched(strategy: Strategy, score: Score, values: int = 30) -> list[int]:
    """Return the values of the models that a strategy evaluates, in the order of submission."""
    space = RawFormatModelSpace(TableSpace(Categorical(list(range(values)), label="a")))
    engine = SimulatedEngine(score)
    strategy(space, engine)
    return [(model.sample or {})["a"] for model in engine.list_models()]


def identity(sample: Sample) -> float:
    return float(sample["a"])


@pytest.mark.claim("nas", 90)
def test_random_search_of_a_varying_space_needs_no_deduplication() -> None:
    with pytest.raises(ValueError, match="dedup must be False if variational is True"):
        legacy.Random(True)

    assert legacy.Random(variational=True, dedup=False).status == "empty"


def test_rejected_models_of_random_search_are_not_evaluated() -> None:
    strategy = legacy.Random(model_filter=lambda model: (model.sample or {})["a"] < 5)

    assert sorted(searched(strategy, identity)) == [0, 1, 2, 3, 4]


def test_grid_search_takes_its_only_argument_by_position() -> None:
    assert searched(legacy.GridSearch(False), identity, 5) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("mode", ["maximize", "minimize"])
def test_evolution_takes_the_best_of_a_tournament_as_parent(mode: Any) -> None:
    strategy = legacy.RegularizedEvolution(
        mode, population_size=10, sample_size=9, mutation_prob=0.0, cycles=10
    )
    searched(strategy, identity)
    members = list(strategy._population)

    # Nine of ten members take part: the second best at least.
    winner = strategy._tournament(members).sample["a"]
    assert winner in sorted((one.sample["a"] for one in members), reverse=mode == "maximize")[:2]


def test_evolution_ends_after_its_cycles() -> None:
    strategy = legacy.RegularizedEvolution(population_size=4, sample_size=2, cycles=7)

    assert len(searched(strategy, identity)) == 7


@pytest.mark.parametrize(("on_failure", "members"), [("ignore", 3), ("worst", 6)])
def test_failed_models_of_evolution_are_ignored_or_the_worst(on_failure: Any, members: int) -> None:
    strategy = legacy.RegularizedEvolution(
        population_size=6, sample_size=2, cycles=6, on_failure=on_failure
    )
    searched(strategy, lambda sample: sample["a"] if sample["a"] % 2 else None, 6)

    metrics = [one.metric for one in strategy._population]

    assert len(metrics) == members
    assert metrics.count(-math.inf) == members - 3


def test_failed_models_of_a_minimized_metric_have_the_largest() -> None:
    strategy = legacy.RegularizedEvolution(
        "minimize", population_size=2, sample_size=1, cycles=2, on_failure="worst"
    )
    searched(strategy, lambda _: None)

    assert [one.metric for one in strategy._population] == [math.inf, math.inf]


@pytest.mark.claim("nas", 44)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sample_size": 20, "population_size": 20}, "sample_size must be < population_size"),
        ({"optimize_mode": "max"}, "optimize_mode must be"),
        ({"on_failure": "stop"}, "on_failure must be"),
        ({"cycles": 0}, "number of models must be >= 1"),
    ],
)
def test_argument_of_evolution_outside_its_range_is_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        legacy.RegularizedEvolution(**arguments)


def test_reinforcement_learning_ends_after_all_its_collections() -> None:
    strategy = legacy.PolicyBasedRL(max_collect=2, trial_per_collect=3)

    assert len(searched(strategy, identity)) == 6


def test_budget_of_the_engine_below_counts_too() -> None:
    limit = SubmissionLimit(5)
    limit.set_engine(SimulatedEngine(identity, max_model_count=0))

    assert not limit.budget_available()


@pytest.mark.parametrize("name", ["GridSearch", "PolicyBasedRL", "Random", "RegularizedEvolution"])
def test_strategy_warns_of_its_newer_name_once(name: str) -> None:
    warn_once.cache_clear()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            getattr(legacy, name)()

    assert [str(one.message).rpartition(" ")[2] for one in caught] == [f"nni.nas.strategy.{name}"]
