"""Spaces without networks."""

from __future__ import annotations

import pytest

import nni
from nni.mutable import Categorical, SampleValidationError
from nni.nas.benchmark import BenchmarkModelSpace, NasBench201Benchmark, SlimBenchmarkSpace
from nni.nas.benchmark.spaces import BenchmarkSample, labels_by_name
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.space import ModelStatus


def space() -> SlimBenchmarkSpace:
    return SlimBenchmarkSpace({"a": nni.choice("a", [1, 2]), "b": nni.choice("b", [3, 4])})


def test_slim_space_is_sampled_like_any_other() -> None:
    assert list(space().simplify()) == ["a", "b"]
    assert [dict(one) for one in space().grid()] == [
        {"a": a, "b": b} for a in (1, 2) for b in (3, 4)
    ]


def test_slim_space_checks_samples() -> None:
    with pytest.raises(SampleValidationError):
        space().freeze({"a": 5, "b": 3})


def test_model_of_a_benchmark_is_its_sample() -> None:
    evaluator = NasBench201Benchmark()
    models = BenchmarkModelSpace.from_model(evaluator.default_space(), evaluator)
    sample = models.default_sample()

    model = models.freeze(sample)

    assert model.executable_model() == sample
    assert isinstance(model.executable_model(), BenchmarkSample)
    assert model.status is ModelStatus.Frozen
    assert models.executable_model() is models.model_space


def test_space_of_the_evaluator_is_the_default() -> None:
    assert len(BenchmarkModelSpace(evaluator=NasBench201Benchmark()).simplify()) == 6


def test_evaluator_without_a_space_needs_one() -> None:
    with pytest.raises(TypeError, match="model_space must be given"):
        BenchmarkModelSpace(evaluator=FunctionalEvaluator(print))


def test_space_without_the_labels_of_the_benchmark_is_refused() -> None:
    with pytest.raises(ValueError, match="must have labels that end in 0_1, 0_2"):
        BenchmarkModelSpace(space(), NasBench201Benchmark())


def test_format_has_no_options() -> None:
    with pytest.raises(TypeError, match="has no options, got depth"):
        BenchmarkModelSpace.from_model(space(), depth=3)


def test_labels_of_two_cells_are_refused() -> None:
    leaves = [Categorical([1], label=label) for label in ("0_1", "other")]

    assert labels_by_name([one.label for one in leaves], ["0_1"]) == {"0_1": "0_1"}
    with pytest.raises(ValueError, match="must have one cell"):
        labels_by_name(["normal/0_1", "reduce/0_1"], ["0_1"])
