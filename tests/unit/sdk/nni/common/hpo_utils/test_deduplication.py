"""Telling points apart."""

from typing import Any

import pytest

from nni.common.hpo_utils import (
    Deduplicator,
    FormattedParameters,
    deformat_parameters,
    format_parameters,
    format_search_space,
)
from nni.errors import NoMoreTrialError
from nni.hpo.space.domains import canonical_json

FINITE: dict[str, Any] = {
    "a": {"_type": "choice", "_value": [1, 2]},
    "b": {"_type": "quniform", "_value": [0, 1, 0.5]},
    "m": {
        "_type": "choice",
        "_value": [{"_name": "x", "n": {"_type": "randint", "_value": [0, 2]}}, "y"],
    },
}


def test_a_finite_space_is_gone_through_once() -> None:
    space = format_search_space(FINITE)
    deduplicator = Deduplicator(space)
    first = format_parameters({"a": 1, "b": 0.0, "m": "y"}, space)

    points = [deduplicator(first) for _ in range(18)]

    texts = {canonical_json(deformat_parameters(point, space)) for point in points}
    assert points[0] == first
    assert len(texts) == 18  # 2 * 3 * (2 + 1)
    with pytest.raises(NoMoreTrialError):
        deduplicator(first)


def test_a_new_point_is_returned_as_it_is() -> None:
    deduplicator = Deduplicator(format_search_space({"x": {"_type": "uniform", "_value": [0, 1]}}))
    points: list[FormattedParameters] = [{("x",): 0.25}, {("x",): 0.5}]

    assert [deduplicator(point) for point in points] == points
    assert deduplicator(points[0]) not in points


def test_what_is_equal_after_rounding_is_the_same_point() -> None:
    deduplicator = Deduplicator(
        format_search_space({"x": {"_type": "quniform", "_value": [0, 1, 0.5]}})
    )

    deduplicator({("x",): 0.49})

    assert deduplicator({("x",): 0.51})[("x",)] not in {0.49, 0.51}


def test_history_counts_as_seen() -> None:
    space = format_search_space({"x": {"_type": "randint", "_value": [0, 2]}})
    deduplicator = Deduplicator(space)
    deduplicator.add_history({("x",): 0})

    assert deduplicator({("x",): 0}) == {("x",): 1}


def test_two_deduplicators_answer_alike() -> None:
    space = format_search_space(FINITE)
    first = format_parameters({"a": 1, "b": 0.0, "m": "y"}, space)
    one, other = Deduplicator(space), Deduplicator(space)

    assert [one(first) for _ in range(9)] == [other(first) for _ in range(9)]
