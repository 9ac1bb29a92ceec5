from typing import Any

import pytest

from nni.compression.config.distillation_settings import (
    DistillationSettings,
    check_distillation_settings,
    distillation_settings,
)
from nni.compression.config.settings import ConfigListError


def test_settings_have_defaults() -> None:
    assert distillation_settings({"lambda": None}) == DistillationSettings(1.0, ("auto",), "mse")


def test_given_settings_are_kept() -> None:
    values = {"lambda": 0, "link": ["a", "b"], "apply_method": "kl"}

    check_distillation_settings(values, "entry")

    assert distillation_settings(values) == DistillationSettings(0.0, ("a", "b"), "kl")


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"lambda": -1}, r"entry.lambda must be a number that is finite and >= 0, got -1"),
        ({"lambda": float("inf")}, r"entry.lambda must be a number .*, got inf"),
        ({"lambda": "1"}, r"entry.lambda must be a number .*, got '1'"),
        ({"link": []}, r"entry.link must be 'auto', a module of the teacher or a list"),
        ({"link": [1]}, r"entry.link must be 'auto', .* got \[1\]"),
        ({"apply_method": "l1"}, r"entry.apply_method must be one of mse, kl, got 'l1'"),
        ({"lambdas": 1}, r"entry has an unknown key 'lambdas'; did you mean 'lambda'\?"),
    ],
)
def test_wrong_settings_name_key_rule_and_value(values: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigListError, match=problem):
        check_distillation_settings(values, "entry")
