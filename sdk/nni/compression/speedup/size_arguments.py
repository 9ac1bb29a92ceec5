"""Sizes in calls such as `view` and `split`: recorded, and replaced when a model has shrunk.

Some modules compute sizes from numbers that no attribute holds, such as `C // num_heads`.
`SizeAdapter` replaces the sizes in single calls of a forward, while the forward itself stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from torch import nn
from torch.overrides import TorchFunctionMode

SIZED_CALLS: Final = frozenset({
    "view", "reshape", "expand", "unflatten", "split", "split_with_sizes", "zeros", "ones", "full",
    "empty", "new_zeros", "new_ones", "new_full", "new_empty", "broadcast_to", "__getitem__",
})  # fmt: skip
"""Functions and methods of torch that take sizes, or bounds of slices."""
Change = int | Sequence[int]
"""New size of an axis, or new first index and end of a slice."""
_CREATING: Final = frozenset({"zeros", "ones", "full", "empty"})
_DIM_PLACE: Final = 2


@dataclass(frozen=True, slots=True)
class SizedCall:
    """Recorded call that takes sizes: name, running modules, outputs, source and slices."""

    name: str
    """Name of the function or method, such as `view`."""
    modules: tuple[str, ...]
    """Paths of the running modules, outermost first."""
    outputs: tuple[int, ...]
    """Values of the graph that it returned."""
    source: int | None = None
    """Value of which slices are taken."""
    slices: tuple[slice, ...] = ()
    """Slice of each axis of `source`; empty if the call takes other indices too."""


def plain_slices(index: object, rank: int) -> tuple[slice, ...]:
    """Return the slice of each axis that an index takes; empty if it holds anything else.

    Args:
        index: Argument of `tensor[...]`.
        rank: Rank of the tensor.

    Returns:
        One slice for each axis; empty if the index holds anything but slices.

    Examples:
        >>> from nni.compression.speedup.size_arguments import plain_slices
        >>> plain_slices((..., slice(2)), 2)
        (slice(None, None, None), slice(None, 2, None))
    """
    parts: list[Any] = list(index) if isinstance(index, tuple) else [index]
    dots = [place for place, one in enumerate(parts) if one is Ellipsis]
    if len(dots) > 1 or any(not isinstance(one, slice) for one in parts if one is not Ellipsis):
        return ()
    missing = [slice(None)] * (rank - len(parts) + len(dots))
    place = dots[0] if dots else len(parts)
    return (*parts[:place], *missing, *parts[place + 1 :])


def is_sized(func: Any) -> bool:  # noqa: ANN401 - functions and methods of torch
    """Return whether a function of torch takes sizes or slices, by its name."""
    return getattr(func, "__name__", "") in SIZED_CALLS


def with_sizes(
    func: Any,  # noqa: ANN401 - functions and methods of torch
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    shapes: Sequence[Mapping[int, Change]],
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a call with new sizes; unchanged if its sizes are not plain.

    Args:
        func: Function or method of torch.
        args: Its arguments.
        kwargs: Its arguments by name.
        shapes: New size by axis, for each output; new bounds by axis for slices.

    Returns:
        Arguments, and arguments by name.
    """
    name = func.__name__
    found, named = list(args), dict(kwargs)
    if name == "__getitem__":
        return [found[0], _new_slices(found[1], found[0].dim(), shapes[0])], {}
    if name in {"split", "split_with_sizes"}:
        dim = named.get("dim", found[_DIM_PLACE] if len(found) > _DIM_PLACE else 0)
        axis = dim % found[0].dim()
        before = _split_sizes(found[1] if len(found) > 1 else named, len(shapes))
        if before is None:
            return found, named
        sizes = [one.get(axis, size) for one, size in zip(shapes, before, strict=True)]
        return [found[0], sizes, dim], {}
    first = 0 if name in _CREATING else 1
    offset = 0
    if name == "unflatten":
        offset, first = found[1] % found[0].dim(), 2
    key = next((one for one in ("size", "shape", "sizes") if one in named), None)
    own = named.pop(key) if key else found[first:]
    plain = key is not None or (bool(own) and isinstance(own[0], list | tuple))
    rest = [] if key or not plain else list(own[1:])
    sizes = list(own if key else own[0] if plain and own else own)
    if any(not isinstance(one, int) for one in sizes):
        return list(args), dict(kwargs)
    for axis, size in shapes[0].items():
        if 0 <= axis - offset < len(sizes) and sizes[axis - offset] != -1:
            sizes[axis - offset] = size
    return [*found[:first], tuple(sizes), *rest], named


def _new_slices(index: object, rank: int, bounds: Mapping[int, Change]) -> object:
    """Return an index with new bounds; the given one if it holds anything but slices."""
    slices = list(plain_slices(index, rank))
    for axis, bound in bounds.items() if slices else ():
        assert not isinstance(bound, int)
        slices[axis] = slice(*bound)
    return tuple(slices) or index


def _split_sizes(given: Any, count: int) -> list[Any] | None:  # noqa: ANN401 - sizes of any form
    """Return the sizes that a split was called with; None if their number differs."""
    if isinstance(given, Mapping):
        keys = ("split_size_or_sections", "split_size", "split_sizes")
        given = next(given[one] for one in keys if one in given)
    sizes = [given] * count if isinstance(given, int) else list(given)
    return sizes if len(sizes) == count else None


class _Rewriting(TorchFunctionMode):
    """Function mode that replaces sizes in the calls of one forward, by their order."""

    def __init__(self, changes: Mapping[int, Sequence[Mapping[int, Change]]]) -> None:
        super().__init__()
        self._changes = changes
        self._count = 0

    def __torch_function__(
        self,
        func: Any,  # noqa: ANN401 - the signature of torch
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        del types
        named = kwargs or {}
        if is_sized(func):
            shapes = self._changes.get(self._count)
            self._count += 1
            if shapes is not None:
                changed, named = with_sizes(func, args, named, shapes)
                args = tuple(changed)
        return func(*args, **named)


class SizeAdapter:
    """Pair of forward hooks that replaces sizes in the calls of a module.

    The hooks pickle with the module, and hold nothing but numbers.

    Args:
        changes: By place among the sized calls of one forward: new size by axis, for each output.
    """

    def __init__(self, changes: Mapping[int, Sequence[Mapping[int, Change]]]) -> None:
        self.changes = changes
        self._active: list[_Rewriting] = []

    def attach(self, module: nn.Module) -> list[Any]:
        """Add the hooks to a module; return their handles."""
        return [
            module.register_forward_pre_hook(self.enter),
            module.register_forward_hook(self.leave, always_call=True),
        ]

    def enter(self, module: nn.Module, inputs: object) -> None:
        """Start to replace sizes in the calls of the module that runs now."""
        del module, inputs
        mode = _Rewriting(self.changes)
        mode.__enter__()  # type: ignore[no-untyped-call]
        self._active.append(mode)

    def leave(self, module: nn.Module, inputs: object, output: object) -> None:
        """Stop replacing sizes for the call that ends now."""
        del module, inputs, output
        self._active.pop().__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def __getstate__(self) -> dict[str, Any]:
        """Return the changes for pickle, without the calls that run now."""
        return {"changes": self.changes, "_active": []}
