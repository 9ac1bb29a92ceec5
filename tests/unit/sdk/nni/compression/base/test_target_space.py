from collections import namedtuple

import pytest
import torch
from torch import Tensor, nn

from nni.compression.base.target_space import (
    first_output,
    is_mask,
    is_parameter,
    masked,
    masked_inputs,
    masked_outputs,
)

MASK = torch.tensor([0.0, 1.0])
Pair = namedtuple("Pair", "left right")


class Sum(nn.Module):
    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return left + right


def test_methods_of_applying_a_mask() -> None:
    value = torch.tensor([2.0, 3.0])

    assert masked(value, MASK, "mul").tolist() == [0, 3]
    assert masked(value, MASK, "add").tolist() == [-998, 3]
    assert masked(value, MASK, "bypass") is value


@pytest.mark.parametrize("key", ["", "0", "left"])
def test_a_positional_input_is_masked_by_place_or_name(key: str) -> None:
    one = torch.ones(2)

    args, kwargs = masked_inputs(Sum(), {key: (MASK, "mul")}, (one,), {"right": one})

    assert args[0].tolist() == [0, 1]
    assert kwargs["right"].tolist() == [1, 1]


def test_a_named_input_is_masked_and_a_missing_one_refused() -> None:
    one = torch.ones(2)

    _, kwargs = masked_inputs(Sum(), {"right": (MASK, "mul")}, (one,), {"right": one})

    assert kwargs["right"].tolist() == [0, 1]
    with pytest.raises(ValueError, match="_input_5 is no argument of the call of Sum"):
        masked_inputs(Sum(), {"5": (MASK, "mul")}, (one,), {})
    with pytest.raises(TypeError, match="_input_ must be a tensor, got int"):
        masked_inputs(Sum(), {"": (MASK, "mul")}, (3,), {})


def test_parts_of_an_output_are_masked_in_its_type() -> None:
    one = torch.ones(2)

    assert masked_outputs(one, {"": (MASK, "mul")}).tolist() == [0, 1]
    pair = masked_outputs(Pair(one, one), {"1": (MASK, "mul")})
    assert isinstance(pair, Pair)
    assert (pair.left.tolist(), pair.right.tolist()) == ([1, 1], [0, 1])
    assert masked_outputs([one], {"0": (MASK, "mul")})[0].tolist() == [0, 1]
    assert masked_outputs({"logits": one}, {"logits": (MASK, "mul")})["logits"].tolist() == [0, 1]


def test_missing_parts_of_an_output_are_refused() -> None:
    with pytest.raises(ValueError, match="the output is one tensor"):
        masked_outputs(MASK, {"1": (MASK, "mul")})
    with pytest.raises(ValueError, match="the output has 1 parts"):
        masked_outputs((MASK,), {"1": (MASK, "mul")})
    with pytest.raises(TypeError, match="_output_0"):
        masked_outputs(3, {"0": (MASK, "mul")})


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
