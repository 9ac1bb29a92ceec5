"""Contract of profilers."""

import pytest

import nni
from nni.mutable import SampleMissingError
from nni.nas.profiler import ExpressionProfiler, Profiler


def test_expression_is_computed_for_each_sample() -> None:
    width, depth = nni.choice("width", [4, 8]), nni.choice("depth", [1, 2])
    profiler = ExpressionProfiler(width, width * depth + 1)

    assert [profiler.profile({"width": one, "depth": 2}) for one in (4, 8)] == [9, 17]


def test_constant_cost_needs_no_sample() -> None:
    assert ExpressionProfiler(nni.choice("width", [4, 8]), 5).profile({}) == 5


def test_incomplete_sample_is_refused_by_its_label() -> None:
    width = nni.choice("width", [4, 8])

    with pytest.raises(SampleMissingError, match="width"):
        ExpressionProfiler(width, width * 2).profile({})


def test_profiler_without_a_profile_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="profile"):
        Profiler(nni.choice("width", [4, 8]))  # type: ignore[abstract]
