from collections import OrderedDict, namedtuple

import pytest
import torch
from torch import Tensor, nn

from nni.compression.base.target_space import (
    changed_inputs,
    changed_outputs,
    first_output,
    is_mask,
    is_parameter,
    masked,
)

MASK = torch.tensor([0.0, 1.0])
Pair = namedtuple("Pair", "left right")


def zero_first(value: Tensor) -> Tensor:
    return masked(value, MASK, "mul")


class Sum(nn.Module):
    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return left + right


def test_methods_of_applying_a_mask() -> None:
    value = torch.tensor([2.0, 3.0])

    assert masked(value, MASK, "mul").tolist() == [0, 3]
    assert masked(value, MASK, "add").tolist() == [-998, 3]
    assert masked(value, MASK, "bypass") is value


@pytest.mark.parametrize("key", ["", "0", "left"])
def test_a_positional_input_is_changed_by_place_or_name(key: str) -> None:
    one = torch.ones(2)

    args, kwargs = changed_inputs(Sum(), {key: zero_first}, (one,), {"right": one})

    assert args[0].tolist() == [0, 1]
    assert kwargs["right"].tolist() == [1, 1]


def test_a_named_input_is_changed_and_a_missing_one_refused() -> None:
    one = torch.ones(2)

    _, kwargs = changed_inputs(Sum(), {"right": zero_first}, (one,), {"right": one})

    assert kwargs["right"].tolist() == [0, 1]
    with pytest.raises(ValueError, match="_input_5 is no argument of the call of Sum"):
        changed_inputs(Sum(), {"5": zero_first}, (one,), {})
    with pytest.raises(TypeError, match="_input_ must be a tensor, got int"):
        changed_inputs(Sum(), {"": zero_first}, (3,), {})


def test_parts_of_an_output_are_changed_in_its_type() -> None:
    one = torch.ones(2)

    assert changed_outputs(one, {"": zero_first}).tolist() == [0, 1]
    pair = changed_outputs(Pair(one, one), {"1": zero_first})
    assert isinstance(pair, Pair)
    assert (pair.left.tolist(), pair.right.tolist()) == ([1, 1], [0, 1])
    assert changed_outputs([one], {"0": zero_first})[0].tolist() == [0, 1]
    logits = OrderedDict(logits=one)
    for key in ("logits", "0"):
        found = changed_outputs(logits, {key: zero_first})
        assert (type(found), found["logits"].tolist()) == (OrderedDict, [0, 1])
    assert logits["logits"] is one


def test_missing_parts_of_an_output_are_refused() -> None:
    with pytest.raises(ValueError, match="the output is one tensor"):
        changed_outputs(MASK, {"1": zero_first})
    with pytest.raises(ValueError, match="the output has 1 parts"):
        changed_outputs((MASK,), {"1": zero_first})
    with pytest.raises(TypeError, match="_output_0"):
        changed_outputs(3, {"0": zero_first})


def test_the_first_output_is_found() -> None:
    assert first_output((MASK, 3)) is MASK
    assert first_output({"a": MASK}) is MASK
    with pytest.raises(TypeError, match="must be a tensor, got int"):
        first_output(3)


def test_kinds_of_targets_and_masks() -> None:
    assert is_parameter("weight")
    assert not is_parameter("_output_")
    assert is_mask(MASK)
    assert not is_mask(MASK / 2)
