"""Tests of runs in which an index out of bounds raises an error on every device."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from nni.compression.speedup.index_bounds import CheckedIndices, checked_indices

TABLE = torch.arange(12.0).reshape(4, 3)


def index(*values: int) -> Tensor:
    return torch.tensor(values, dtype=torch.long)


OPERATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "index": lambda one: TABLE[one],
    "index of the second axis": lambda one: TABLE[:, one - 1],
    "index_select": lambda one: TABLE.index_select(0, one),
    "gather": lambda one: TABLE.gather(0, one[:, None]),
    "embedding": lambda one: nn.functional.embedding(one, TABLE),
    "index_put": lambda one: TABLE.index_put((one,), torch.zeros(3)),
    "scatter": lambda one: TABLE.scatter(0, one[:, None], 1.0),
}


def in_the_mode(operation: Callable[[Tensor], Tensor], one: Tensor) -> Tensor:
    """Run an operation in the mode; the mode has to raise before the kernel does."""
    with CheckedIndices():  # type: ignore[no-untyped-call]
        return operation(one)


@pytest.mark.parametrize("name", OPERATIONS)
def test_index_out_of_bounds_raises(name: str) -> None:
    with pytest.raises(IndexError, match="are not within"):
        in_the_mode(OPERATIONS[name], index(1, 4))


@pytest.mark.parametrize("name", OPERATIONS)
def test_index_within_bounds_passes(name: str) -> None:
    found = in_the_mode(OPERATIONS[name], index(1, 3))

    assert torch.equal(found, OPERATIONS[name](index(1, 3)))


def test_mask_selects_as_without_the_mode() -> None:
    mask = torch.tensor([True, False, True, False])

    with CheckedIndices():  # type: ignore[no-untyped-call]
        found = TABLE[mask, index(0, 2)]

    assert found.tolist() == [0.0, 8.0]


def test_empty_index_passes() -> None:
    with CheckedIndices():  # type: ignore[no-untyped-call]
        assert TABLE[index()].shape == (0, 3)


def test_model_on_the_cpu_needs_no_mode() -> None:
    with checked_indices(nn.Linear(2, 2)) as mode:
        assert mode is None


def test_model_elsewhere_gets_the_mode() -> None:
    with checked_indices(nn.Linear(2, 2, device="meta")) as mode:
        assert isinstance(mode, CheckedIndices)
