"""Runs in which an index out of bounds raises an error on every device.

A smaller model is run to see whether it works. On the CPU an index out of bounds raises IndexError.
A CUDA kernel asserts instead, and no operation of the process runs on the device afterwards.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

Pairs = list[tuple[Tensor, int]]
"""Tensors of indices, and the number of elements that each can name."""


def _of_index(args: tuple[Any, ...]) -> Pairs:
    tensor, indices = args[0], args[1]
    found: Pairs = []
    axis = 0
    for one in indices:
        if one is not None and one.dtype.is_floating_point is False and one.dtype.itemsize > 1:
            found.append((one, tensor.shape[axis]))
        # A mask of bytes or truth values covers as many axes as it has; its shape is checked.
        axis += one.dim() if one is not None and one.dtype.itemsize == 1 else 1
    return found


def _of_axis(args: tuple[Any, ...]) -> Pairs:
    tensor, axis, index = args[:3]
    return [(index, tensor.shape[axis] if tensor.dim() else 1)]


def _of_embedding(args: tuple[Any, ...]) -> Pairs:
    return [(args[1], args[0].shape[0])]


_INDICES: Mapping[str, Callable[[tuple[Any, ...]], Pairs]] = {
    "aten.index": _of_index,
    "aten.index_put": _of_index,
    "aten.index_put_": _of_index,
    "aten._unsafe_index": _of_index,
    "aten.index_select": _of_axis,
    "aten.gather": _of_axis,
    "aten.scatter": _of_axis,
    "aten.scatter_": _of_axis,
    "aten.scatter_add": _of_axis,
    "aten.embedding": _of_embedding,
}
"""Indices of an operation by its name."""


class CheckedIndices(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Dispatch mode that raises IndexError for an index out of bounds of what it indexes.

    Raises:
        IndexError: an index is out of bounds.
    """

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - the signature of torch
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        del types
        find = _INDICES.get(str(func.overloadpacket))
        for index, size in find(args) if find else ():
            if index.numel():
                low, high = int(index.min()), int(index.max())
                if low < -size or high >= size:
                    raise IndexError(f"indices {low} to {high} are not within {size} elements")
        return func(*args, **(kwargs or {}))


def checked_indices(model: nn.Module) -> AbstractContextManager[object]:
    """Return a context in which an index out of bounds raises IndexError, on any device.

    Args:
        model: The model that is to run; nothing is needed for one on the CPU.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.speedup.index_bounds import checked_indices
        >>> with checked_indices(nn.Linear(2, 2)) as mode:
        ...     mode is None
        True
    """
    if all(one.device.type == "cpu" for one in (*model.parameters(), *model.buffers())):
        return nullcontext()
    return CheckedIndices()  # type: ignore[no-untyped-call]
