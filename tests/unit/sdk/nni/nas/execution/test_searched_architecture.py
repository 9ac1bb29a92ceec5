"""Architectures in the results of trials that are whole searches."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nni.mutable import Categorical, CategoricalMultiple, Numerical
from nni.nas.execution.searched_architecture import (
    ARCHITECTURE,
    architecture_of,
    architecture_result,
)

LEAVES = {
    "kernel": Categorical([(1, 2), (3, 4)], label="kernel"),
    "norm": Categorical([int, float], label="norm"),
    "inputs": CategoricalMultiple([0, 1, 2], n_chosen=2, label="inputs"),
    "rate": Numerical(0, 1, label="rate"),
}
SAMPLE = {"kernel": (3, 4), "norm": float, "inputs": [0, 2], "rate": 0.25}


def sent(result: dict[str, Any]) -> Any:
    return json.loads(json.dumps(result))


def test_architecture_survives_the_way_through_json() -> None:
    found = architecture_of(sent(architecture_result(0.5, SAMPLE)), LEAVES)

    assert found == SAMPLE


def test_result_has_all_objectives_beside_the_architecture() -> None:
    result = architecture_result({"default": 0.5, "size": 3}, {"width": 8})

    assert result == {"default": 0.5, "size": 3, ARCHITECTURE: {"width": 8}}


@pytest.mark.parametrize("metric", [None, {"size": 3}])
def test_result_without_a_metric_can_be_counted(metric: object) -> None:
    assert architecture_result(metric, {})["default"] == 0.0


@pytest.mark.parametrize("result", [0.5, {"default": 0.5}, {ARCHITECTURE: 3}])
def test_results_of_other_trials_have_none(result: object) -> None:
    assert architecture_of(result, LEAVES) is None


@pytest.mark.parametrize(
    ("changed", "rule"),
    [({"depth": 1}, "differs in 'depth'"), ({"kernel": [5, 6]}, "choose one of 'kernel'")],
)
def test_architecture_of_another_space_is_refused(changed: dict[str, Any], rule: str) -> None:
    result = sent(architecture_result(0.5, {**SAMPLE, **changed}))

    with pytest.raises(ValueError, match=rule):
        architecture_of(result, LEAVES)
