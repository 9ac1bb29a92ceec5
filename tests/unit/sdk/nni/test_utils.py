from __future__ import annotations

from argparse import Namespace

import pytest

import nni
from nni.utils import (
    ClassArgsValidator,
    OptimizeMode,
    extract_scalar_history,
    extract_scalar_reward,
    merge_parameter,
)


@pytest.mark.claim("hpo", 6)
def test_overrides_are_written_into_the_same_namespace() -> None:
    base = Namespace(lr=0.5, epochs=3)

    merged = merge_parameter(base, {"lr": 0.1})

    assert merged is base
    assert vars(base) == {"lr": 0.1, "epochs": 3}


@pytest.mark.claim("hpo", 6)
def test_overrides_are_written_into_the_same_dict() -> None:
    base = {"lr": 0.5, "name": "a"}

    assert merge_parameter(base, {"name": "b"}) is base
    assert base == {"lr": 0.5, "name": "b"}


@pytest.mark.claim("hpo", 6)
def test_none_changes_nothing() -> None:
    base = Namespace(lr=0.5)

    assert merge_parameter(base, None) is base
    assert vars(base) == {"lr": 0.5}


@pytest.mark.parametrize(("default", "value"), [(0.5, 1), (None, "x"), (None, 3), (1, 2)])
def test_value_may_stand_for_its_default(default: object, value: object) -> None:
    assert merge_parameter({"a": default}, {"a": value}) == {"a": value}


@pytest.mark.parametrize(("default", "value"), [(1, 0.5), ("x", 1), (1, True), (0.5, "0.5")])
def test_value_of_another_type_is_refused(default: object, value: object) -> None:
    with pytest.raises(ValueError, match=r"parameter 'a' must be .* like its default"):
        merge_parameter({"a": default}, {"a": value})


def test_unknown_key_is_refused_and_nothing_is_changed() -> None:
    base = {"lr": 0.5}

    with pytest.raises(ValueError, match=r"'momentum' must be one of the arguments \['lr'\]"):
        merge_parameter(base, {"lr": 0.1, "momentum": 0.9})

    assert base == {"lr": 0.5}


@pytest.mark.parametrize(
    ("value", "number"), [(3, 3), (0.5, 0.5), ({"default": 0.5, "other": 1}, 0.5)]
)
def test_the_number_of_a_result_is_the_result_or_its_default(value: object, number: float) -> None:
    assert extract_scalar_reward(value) == number


def test_the_number_of_a_result_may_stand_at_another_key() -> None:
    assert extract_scalar_reward({"default": 1, "latency": 2.5}, "latency") == 2.5


@pytest.mark.parametrize("value", ["0.5", None, True, {"other": 1}, {"default": {"default": 1}}])
def test_a_result_without_a_number_is_refused_with_what_it_was(value: object) -> None:
    with pytest.raises(RuntimeError, match="number at 'default'; got") as refused:
        extract_scalar_reward(value)
    assert repr(value) in str(refused.value)


def test_the_numbers_of_a_history_keep_their_order() -> None:
    assert extract_scalar_history([2, {"default": 1.5}, 0.5]) == [2, 1.5, 0.5]


def test_the_modes_have_the_values_of_the_argument() -> None:
    assert {mode.name: mode.value for mode in OptimizeMode} == {
        "Minimize": "minimize",
        "Maximize": "maximize",
    }


def test_validator_of_arguments_has_the_path_of_nni_3() -> None:
    assert ClassArgsValidator is nni.ClassArgsValidator


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"'nni\.utils' has no attribute 'nothing'"):
        nni.utils.nothing  # noqa: B018 - the access is the test
