import io
from typing import NamedTuple

import numpy as np
import pytest

from nni.common.serializer.traced_results import (
    TracedNone,
    check_result,
    restored_value,
    wrapped_value,
)


class Slotted:
    __slots__ = ("one",)


class Pair(NamedTuple):
    one: int


def test_objects_with_attributes_stay() -> None:
    value = io.StringIO()

    assert wrapped_value(value) is value


def test_none_becomes_a_true_object() -> None:
    made = wrapped_value(None)

    assert bool(made)
    assert isinstance(made, TracedNone)
    assert repr(made) == "None"


def test_an_array_becomes_a_view_that_takes_attributes() -> None:
    made = wrapped_value(np.arange(3))

    made.mark = 1

    assert made.tolist() == [0, 1, 2]
    assert isinstance(made, np.ndarray)


@pytest.mark.parametrize("value", [Slotted(), Pair(1)])
def test_objects_that_take_no_attributes_are_refused(value: object) -> None:
    with pytest.raises(TypeError, match="takes no attributes"):
        wrapped_value(value)


def test_a_restored_value_has_its_attributes() -> None:
    assert vars(restored_value([1], {"mark": 2})) == {"mark": 2}


def test_a_file_is_refused_with_the_name_of_the_function() -> None:
    def opened() -> None: ...

    with pytest.raises(TypeError, match="opened returned the open file"):
        check_result(io.StringIO(), opened)
