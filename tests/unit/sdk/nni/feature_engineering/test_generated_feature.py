"""Candidates that a specification describes."""

from __future__ import annotations

from typing import Any

import pytest

from nni.feature_engineering import (
    GeneratedFeature,
    candidate_features,
    candidate_space,
    chosen_features,
)


def names(specification: Any) -> list[str]:
    return [feature.name for feature in candidate_features(specification)]


def test_operations_on_one_column_have_one_list() -> None:
    assert names({"count": ["C1", "C2"], "target": ["C1"]}) == ["count_C1", "count_C2", "target_C1"]


def test_a_column_is_crossed_with_each_other_once() -> None:
    columns = ["C1", "C2", "C3"]

    assert names({"crosscount": [columns, columns]}) == [
        "crosscount_C1_C2",
        "crosscount_C1_C3",
        "crosscount_C2_C3",
    ]


def test_distinct_values_are_counted_in_both_directions() -> None:
    assert names({"nunique": [["C1", "C2"], ["C1", "C2"]]}) == ["nunique_C1_C2", "nunique_C2_C1"]


def test_aggregates_have_each_statistic() -> None:
    assert names({"aggregate": [["I1"], ["C1"]]}) == [
        f"aggregate_{statistic}_I1_C1" for statistic in ("min", "max", "mean", "var", "median")
    ]
    assert len(names({"histstat": ["I1"]})) == 5


def test_the_space_lets_a_trial_choose_each_candidate() -> None:
    specification = {"count": ["C1", "C2"]}

    space = candidate_space(specification)
    chosen = chosen_features(specification, {"count_C1": False, "count_C2": True, "depth": 3})

    used_or_not = {"_type": "choice", "_value": [False, True]}
    assert space == {"count_C1": used_or_not, "count_C2": used_or_not}
    assert [feature.name for feature in chosen] == ["count_C2"]


@pytest.mark.parametrize(
    ("specification", "message"),
    [
        ({"word2vec": ["C1"]}, "operation must be one of count, target"),
        ({"count": "C1"}, "count takes a list of names"),
        ({"count": [1]}, "count takes a list of names"),
        ({"crosscount": [["C1"]]}, "crosscount takes two lists"),
        ({"crosscount": ["C1", "C2"]}, "crosscount takes a list of names"),
    ],
)
def test_a_wrong_specification_is_refused(specification: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        candidate_features(specification)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sum", ("C1",)), "operation must be one of"),
        (("count", ("C1", "C2")), "count takes 1 columns"),
        (("aggregate", ("I1", "C1"), "mode"), "statistic must be one of min, max"),
        (("count", ("C1",), "mean"), "count has no statistic"),
    ],
)
def test_a_wrong_feature_is_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GeneratedFeature(*arguments)
