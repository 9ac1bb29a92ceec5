"""Sizes in calls, and the hooks that replace them."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.compression.speedup.size_arguments import SizeAdapter, is_sized, plain_slices, with_sizes

ROW = torch.zeros(2, 6)


@pytest.mark.parametrize(
    ("func", "args", "kwargs", "shapes", "expected"),
    [
        (Tensor.view, (ROW, 2, 3, 2), {}, [{1: 2}], (ROW, (2, 2, 2))),
        (Tensor.view, (ROW, 2, -1, 2), {}, [{1: 2}], (ROW, (2, -1, 2))),
        (Tensor.reshape, (ROW, (2, 6)), {}, [{1: 4}], (ROW, (2, 4))),
        (torch.reshape, (ROW,), {"shape": (2, 6)}, [{1: 4}], (ROW, (2, 4))),
        (Tensor.unflatten, (ROW, -1, (3, 2)), {}, [{1: 2}], (ROW, -1, (2, 2))),
        (torch.split, (ROW, 3, 1), {}, [{1: 2}, {1: 1}], (ROW, [2, 1], 1)),
        (torch.split, (ROW, 3), {"dim": 1}, [{1: 2}, {1: 1}], (ROW, [2, 1], 1)),
        (torch.zeros, (2, 6), {}, [{1: 4}], ((2, 4),)),
        (
            Tensor.__getitem__,
            (ROW, (..., slice(2, 6))),
            {},
            [{1: [1, 3]}],
            (ROW, (slice(None), slice(1, 3))),
        ),
        (Tensor.__getitem__, (ROW, (0, slice(3))), {}, [{1: [1, 3]}], (ROW, (0, slice(3)))),
        (torch.full, ((2, 6), 1.0), {}, [{1: 4}], ((2, 4), 1.0)),
        (Tensor.new_zeros, (ROW, 2, 6), {}, [{1: 4}], (ROW, (2, 4))),
        (Tensor.view, (ROW, torch.int32), {}, [{1: 4}], (ROW, torch.int32)),
    ],
)
def test_sizes_are_replaced_by_axis(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    shapes: list[dict[int, int]],
    expected: tuple[Any, ...],
) -> None:
    found, named = with_sizes(func, args, kwargs, shapes)

    assert is_sized(func)
    assert named == {}
    assert all(one is other or one == other for one, other in zip(found, expected, strict=True))


class Fixed(nn.Module):
    def forward(self, rows: Tensor) -> Tensor:
        return rows.reshape(2, 6).reshape(12)


def test_an_adapted_module_pickles_and_replaces_only_its_calls() -> None:
    model = Fixed()
    SizeAdapter({0: [{1: 4}], 1: [{0: 8}]}).attach(model)

    copied = pickle.loads(pickle.dumps(model))

    assert copied(torch.zeros(2, 4)).shape == (8,)
    assert torch.zeros(2, 4).reshape(8).shape == (8,)


def test_sizes_are_not_replaced_after_an_error() -> None:
    model = Fixed()
    SizeAdapter({0: [{1: 4}], 1: [{0: 8}]}).attach(model)

    with pytest.raises(RuntimeError, match="invalid"):
        model(torch.zeros(5))

    assert model(torch.zeros(2, 4)).shape == (8,)
    assert torch.zeros(2, 6).reshape(12).shape == (12,)


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (slice(1, 2), (slice(1, 2), slice(None), slice(None))),
        ((..., slice(2)), (slice(None), slice(None), slice(2))),
        ((slice(1), ..., slice(2)), (slice(1), slice(None), slice(2))),
        ((0, slice(2)), ()),
        ((None, slice(2)), ()),
        (torch.zeros(2), ()),
    ],
)
def test_slices_are_found_for_each_axis(index: object, expected: tuple[slice, ...]) -> None:
    assert plain_slices(index, 3) == expected
