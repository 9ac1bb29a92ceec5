"""Evaluator whose function takes a class of networks."""

from collections.abc import Callable

import pytest

import nni
from nni.retiarii.deprecation import warn_once
from nni.retiarii.evaluator import FunctionalEvaluator

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def fit(model_cls: Callable[[], str], suffix: str) -> str:
    return model_cls() + suffix


def test_function_gets_what_returns_the_network() -> None:
    assert FunctionalEvaluator(fit, suffix="!").evaluate("network") == "network!"


def test_evaluator_of_another_process_is_of_the_same_kind() -> None:
    loaded = nni.load(nni.dump(FunctionalEvaluator(fit, suffix="!")))

    assert loaded.evaluate("network") == "network!"


def test_evaluator_warns_of_the_newer_name_once() -> None:
    warn_once.cache_clear()

    with pytest.warns(DeprecationWarning, match=r"nni\.nas\.evaluator") as caught:
        _ = [FunctionalEvaluator(fit) for _ in range(2)]

    assert len(caught) == 1
