"""Shapes of tensors without data, compared with torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

import nni
from nni.nas.profiler.pytorch.cases import CannotProfileError
from nni.nas.profiler.pytorch.shapes import (
    ShapeTensor,
    from_tensors,
    frozen_shapes,
    merged,
    shapes_in,
)

WIDTH = nni.choice("width", [4, 6])
FUNCTIONS: list[Callable[[Any], Any]] = [
    lambda x: torch.relu(x) + 1,
    lambda x: (2 * x - x) / 3,
    lambda x: functional.gelu(x).mean((2, 3)),
    lambda x: x.mean((2, 3), keepdim=True) * x,
    lambda x: x.sum(1),
    lambda x: x.view(x.size(0), -1),
    lambda x: x.view(x.shape[0], x.shape[1] // 2, -1),
    lambda x: x.reshape(x.size(0), -1, 5),
    lambda x: x.flatten(1),
    lambda x: torch.flatten(x, 2),
    lambda x: x.permute(0, 2, 3, 1),
    lambda x: x.transpose(1, 2),
    lambda x: torch.cat([x, x], 1),
    lambda x: torch.stack([x, x], 1),
    lambda x: x.unsqueeze(1).squeeze(1),
    lambda x: x[:, 1:],
    lambda x: x[:, :-1, ..., None],
    lambda x: x[:, :, 0],
    lambda x: x.chunk(2, 1)[1],
    lambda x: x.flatten(2) @ x.flatten(2).transpose(1, 2),
    lambda x: torch.softmax(x, 1).expand(3, -1, -1, -1),
    lambda x: functional.adaptive_avg_pool2d(x, 2),
    lambda x: functional.dropout(x, 0.1, training=True).contiguous(),
    lambda x: -x,
    lambda x: functional.scaled_dot_product_attention(x, x, x[..., :2]),
    lambda x: x.unflatten(1, (2, -1)),
    lambda x: x[:, :, :1].masked_fill(x > 0, 0.0),
    lambda x: x[:, :, :1].pow(x),
    lambda x: torch.pow(2.0, x),
    lambda x: torch.where(x[:, :, :1] > 0, x, 0.0),
    lambda x: torch.var(x, 1, True),
    lambda x: x.var(1, unbiased=False, keepdim=True),
    lambda x: x.std((2, 3)),
    lambda x: x.std(unbiased=False),
    lambda x: x.norm(2),
    lambda x: x.norm(2, dim=1, keepdim=True),
    lambda x: functional.adaptive_avg_pool2d(x, (None, 1)),
    lambda x: x.chunk(2, 2)[1],
    lambda x: x[..., :1, :1].squeeze((2, 3)),
    lambda x: torch.stack(list(x)),
    lambda x: functional.pad(x, (0, 1, 2, 0)),
    lambda x: torch.cat([x[:, : x.shape[1] // 2], x[:, x.shape[1] // 2 :]], 1),
    lambda x: functional.pad(x, (0, 0, 0, 0, 1, -1), value=1.0),
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=range(len(FUNCTIONS)))
@pytest.mark.parametrize("width", [4, 6])
def test_shape_is_that_of_torch(function: Callable[[Any], Any], width: int) -> None:
    real = function(torch.zeros(1, width, 5, 5))

    symbolic = function(ShapeTensor((1, WIDTH, 5, 5)))

    assert frozen_shapes(symbolic, {"width": width}).shape == tuple(real.shape)


def test_function_without_a_rule_runs_without_data() -> None:
    assert torch.fft.fft(ShapeTensor((2, 8))).shape == (2, 8)
    images: Any = ShapeTensor((1, 3, 8, 8))
    assert functional.max_pool2d(images, 2).shape == (1, 3, 4, 4)


def test_function_without_a_rule_on_mutable_sizes_is_refused_by_name() -> None:
    images: Any = ShapeTensor((1, WIDTH, 8, 8))

    with pytest.raises(CannotProfileError, match="max_pool2d has no shape formula"):
        functional.max_pool2d(images, 2)


@pytest.mark.parametrize("chunks", [1, 3, 5, 9])
def test_chunks_of_a_number_are_those_of_torch(chunks: int) -> None:
    tensor = torch.zeros(2, 8)

    found = ShapeTensor((2, 8)).chunk(chunks, 1)

    assert [one.shape for one in found] == [tuple(one.shape) for one in tensor.chunk(chunks, 1)]


def test_length_is_that_of_the_batch() -> None:
    assert len(ShapeTensor((3, WIDTH))) == 3
    with pytest.raises(CannotProfileError, match="length of a tensor must be a number"):
        len(ShapeTensor((WIDTH,)))


def test_data_is_not_there() -> None:
    with pytest.raises(CannotProfileError, match="depends on the data of a tensor"):
        bool(ShapeTensor((1,)) > 0)
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        _ = ShapeTensor((1,)).missing


def test_alternatives_of_different_structure_are_refused() -> None:
    with pytest.raises(CannotProfileError, match="one number of dimensions"):
        merged([ShapeTensor((1, 2)), ShapeTensor((1, 2, 3))], max)


def test_nested_tensors_become_nested_shapes() -> None:
    nested = from_tensors({"images": torch.zeros(2, 3), "more": (torch.ones(4), None)})

    assert [one.shape for one in shapes_in(nested)] == [(2, 3), (4,)]
    assert nested["more"][1] is None
