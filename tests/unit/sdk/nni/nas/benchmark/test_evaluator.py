"""Evaluators of benchmarks, on databases of cells that were trained for this test."""

from __future__ import annotations

import random
from typing import Any

import pytest

import nni
from nni.mutable import Sample
from nni.nas.benchmark import (
    BenchmarkModelSpace,
    NasBench101Benchmark,
    NasBench201Benchmark,
    SlimBenchmarkSpace,
    load_benchmark,
)
from nni.nas.evaluator.trial_reports import reports_to
from nni.nas.execution import SequentialExecutionEngine
from nni.nas.strategy import Random
from tests.unit.sdk.nni.nas.benchmark.conftest import NB101_ARCHS, NB201_ARCHS


def reported(evaluator: Any, model: Any) -> tuple[list[object], list[object]]:
    """Return the intermediate and the final metrics of an evaluation."""
    intermediates: list[object] = []
    finals: list[object] = []
    with reports_to(None, intermediates.append, finals.append):
        evaluator.evaluate(model)
    return intermediates, finals


def nb201(**options: Any) -> NasBench201Benchmark:
    return NasBench201Benchmark(num_epochs=2, **options)


@pytest.mark.usefixtures("databases")
def test_one_recorded_training_is_reported_as_a_fraction() -> None:
    sample = {f"nasbench201/cell/{edge}": op for edge, op in NB201_ARCHS[0].items()}
    rows = load_benchmark("nasbench201").query({"arch": NB201_ARCHS[0], "dataset": "cifar100"})
    recorded = [row["valid_acc"] / 100 for row in rows]

    intermediates, (final,) = reported(nb201(), sample)

    assert intermediates == []
    assert any(final == pytest.approx(one) for one in recorded)


@pytest.mark.usefixtures("databases")
def test_all_recorded_trainings_are_drawn() -> None:
    evaluator = nb201(metric="valid_loss", seed=1)

    found = {reported(evaluator, NB201_ARCHS[1])[1][0] for _ in range(30)}

    # Each of three is missed with a probability of (2 / 3) ** 30 < 1e-5, and the seed is fixed.
    assert len(found) == 3


@pytest.mark.usefixtures("databases")
def test_course_of_the_training_is_reported_before_the_result() -> None:
    intermediates, (final,) = reported(nb201(include_intermediates=True), NB201_ARCHS[0])

    assert len(intermediates) == 2
    assert intermediates[-1] == final


@pytest.mark.usefixtures("databases")
def test_cell_of_nasbench101_is_pruned_and_matched_by_its_graph() -> None:
    arch = NB101_ARCHS[1]
    sample: Sample = {
        "num_nodes": 4,
        "op1": "maxpool3x3",
        "op2": arch["op1"],
        "op3": "maxpool3x3",
        "input1": [0],
        "input2": [0],
        "input3": [0, 2],
    }
    evaluator = NasBench101Benchmark(num_epochs=2, metric="test_acc")
    rows = load_benchmark("nasbench101").query({"arch": arch, "num_epochs": 2})
    recorded = [row["test_acc"] / 100 for row in rows]

    _, (final,) = reported(evaluator, sample)

    assert any(final == pytest.approx(one) for one in recorded)


def test_samples_of_nasbench101_are_valid_cells() -> None:
    space = NasBench101Benchmark().default_space()
    valid = 0
    for seed in range(50):
        sample: Sample = {}
        try:
            space.random(sample, random_state=random.Random(seed))
        except ValueError:  # it breaks the rule, so that strategies draw again
            continue
        edges = [sample[f"input{at}"] for at in range(1, sample["num_nodes"])]
        valid += sum(map(len, edges)) <= 9

    assert valid > 0
    space.validate(space.default_sample() | {"input1": [0], "num_nodes": 2})


@pytest.mark.usefixtures("databases")
def test_architecture_that_was_not_trained_is_an_error() -> None:
    with pytest.raises(LookupError, match="has no training of"):
        reported(nb201(), dict.fromkeys(NB201_ARCHS[0], "none"))


def test_network_in_place_of_a_sample_is_refused() -> None:
    with pytest.raises(TypeError, match="model must be a sample or have one"):
        reported(nb201(), object())


@pytest.mark.usefixtures("databases")
def test_a_strategy_searches_a_benchmark() -> None:
    evaluator = nb201()
    models = BenchmarkModelSpace(
        SlimBenchmarkSpace(
            {edge: nni.choice(edge, [NB201_ARCHS[0][edge]]) for edge in evaluator.names()}
        ),
        evaluator,
    )
    engine = SequentialExecutionEngine(max_model_count=1)

    strategy = Random()
    strategy(models, engine)

    (model,) = strategy.list_models()
    assert 0 <= model.metric <= 1
