import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import nni
from nni.common.serializer import is_traceable


class Rate:
    def __init__(self, value: float, *, decay: float = 1.0) -> None:
        self.value = value * decay


def make_list(*values: int) -> list[int]:
    return list(values)


def test_an_instance_of_a_traced_class_knows_its_arguments() -> None:
    rate = nni.trace(Rate)(2.0, decay=0.5)

    assert isinstance(rate, Rate)
    assert (rate.value, type(rate).__name__) == (1.0, "Rate")
    assert vars(rate)["trace_symbol"] is Rate
    assert vars(rate)["trace_args"] == (2.0,)
    assert vars(rate)["trace_kwargs"] == {"decay": 0.5}
    assert is_traceable(rate)
    assert not is_traceable(Rate(1.0))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_traced_instance_copies_and_pickles(copied: Callable[..., Any]) -> None:
    rate = copied(nni.trace(Rate)(2.0))

    assert isinstance(rate, Rate)
    assert (rate.value, vars(rate)["trace_args"]) == (2.0, (2.0,))


def test_a_traced_function_records_if_its_result_takes_attributes() -> None:
    assert nni.trace(make_list)(1, 2) == [1, 2]
    assert is_traceable(nni.trace(lambda: Rate(1.0))())


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="needs a class or function, got 3"):
        nni.trace(3)  # type: ignore[arg-type]
