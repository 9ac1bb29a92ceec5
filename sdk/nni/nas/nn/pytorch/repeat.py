"""Repetition of a block, a searched number of times: `Repeat`."""

import copy
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Final, SupportsIndex

import torch
from torch import nn

from nni.mutable import (
    Categorical,
    LabeledMutable,
    Mutable,
    MutableExpression,
    Sample,
    SampleValidationError,
    ensure_frozen,
    label_scope,
)
from nni.nas.nn.pytorch.base import (
    MutableModule,
    check_module,
    default_value,
    dry_run,
    module_label,
    recursive_freeze,
)
from nni.nas.space.context import current_model, unfixed_constructors
from nni.nas.space.graph_forms import RepetitionForm
from nni.nas.utils.original_names import record_place

__all__ = ["Repeat"]

Factory = Callable[[int], nn.Module]
Blocks = nn.Module | Factory | Sequence[nn.Module] | Sequence[Factory]
Depth = int | tuple[int, int] | MutableExpression

_PAIR: Final = 2
_GRANULARITY: Final = 6
"""Of the grid whose largest value is the greatest depth: 63 quantiles of a continuous leaf."""


class Repeat(MutableModule):
    """Sequence of blocks whose length is searched.

    In a sample it is the depth. An unfrozen repetition computes its default: the least depth, or
    the default of the expression.

    Args:
        blocks: a module, which is copied, so that the copies share the choices inside; a function
            from the position to a module; or a list of modules, or of such functions, of the
            greatest depth.
        depth: number of blocks; `(least, greatest)`, both included; or a mutable number.
        label: name of the choice of the depth; ignored if `depth` is a number or mutable.

    Raises:
        ValueError: the depth is negative, its greatest value is not positive, the bounds are not
            in order, or the list of blocks has another length.
        TypeError: `depth` or `blocks` is none of these.

    Examples:
        >>> blocks = Repeat(lambda index: nn.Linear(4, 4), (1, 3), label="depth")
        >>> [len(frozen) for frozen in blocks.grid()]
        [1, 2, 3]
    """

    __jit_unused_properties__: ClassVar = ["label", "mutables"]

    def __init__(self, blocks: Blocks, depth: Depth, *, label: str | None = None) -> None:
        super().__init__()
        chosen = _depth_choice(depth, label)
        self.min_depth, self.max_depth = _bounds(chosen)
        _check_length(blocks, self.max_depth)
        self.depth_choice: int | MutableExpression = chosen
        if isinstance(chosen, Mutable):
            self.add_mutable(chosen)
        self.blocks = nn.ModuleList(_built(blocks, range(self.max_depth)))
        self._default = _default_depth(chosen)

    @classmethod
    def create_fixed_module(
        cls, sample: Sample, blocks: Blocks, depth: Depth, *, label: str | None = None
    ) -> nn.Module:
        """Return the blocks of a sample as a sequence; those beyond its depth are not built.

        Args:
            sample: value of each label.
            blocks: as for the constructor, and so the following.
            depth: number of blocks.
            label: name of the choice of the depth.

        Returns:
            The blocks, frozen.
        """
        chosen = _depth_choice(depth, label)
        greatest = _bounds(chosen)[1]
        _check_length(blocks, greatest)
        length = int(chosen.freeze(sample)) if isinstance(chosen, Mutable) else chosen
        scope = label_scope.current()
        before = 0 if scope is None else scope.count
        built = [recursive_freeze(one, sample)[0] for one in _built(blocks, range(length))]
        if scope is not None and _is_factory(blocks) and length < greatest:
            _skip_labels(blocks, range(length, greatest), scope, before)
        return _sequence(built)

    @property
    def label(self) -> str | None:
        """Label of the depth; None if it is a number or an expression of several labels."""
        return getattr(self.depth_choice, "label", None)

    def check_contains(self, sample: Sample) -> SampleValidationError | None:
        """Return why the depth, or a block that it uses, does not fit a sample; None if all fit."""
        depth = self.depth_choice
        if isinstance(depth, Mutable):
            error = depth.check_contains(sample)
            if error is not None:
                return error
        for index, block in enumerate(self.blocks[: self._length(sample)]):
            error = check_module(block, sample)
            if error is not None:
                return error.inside(str(index))
        return None

    def graph_form(self) -> RepetitionForm:
        """Return the choice of the depth and all blocks, for the graph format."""
        return RepetitionForm(self.depth_choice, list(self.blocks))

    def freeze(self, sample: Sample) -> nn.Sequential:
        """Return the first blocks, as many as a sample says, each frozen."""
        self.validate(sample)
        blocks = self.blocks[: self._length(sample)]
        frozen = _sequence([recursive_freeze(block, sample)[0] for block in blocks])
        frozen.training = self.training
        return frozen

    def forward(self, inputs: Any) -> Any:  # noqa: ANN401 - what blocks take
        """Return the output of the first blocks, as many as the default depth.

        Args:
            inputs: the one input.

        Returns:
            The output of the last one.
        """
        for block in self.blocks[: self._default]:
            inputs = block(inputs)
        return inputs

    def _length(self, sample: Sample) -> int:
        depth = self.depth_choice
        return int(depth.freeze(sample)) if isinstance(depth, Mutable) else depth

    def extra_repr(self) -> str:
        """Return the depth, for the text of the module.

        Returns:
            Part of the text.
        """
        return f"depth={self.depth_choice!r}"


def _depth_choice(depth: Depth, label: str | None) -> int | MutableExpression:
    """Return a depth as a number or a mutable, for a pair a choice; raise if it is invalid."""
    if isinstance(depth, MutableExpression):
        if label is not None and current_model() is None:
            warnings.warn(
                f"label {label!r} of Repeat is ignored: the mutable depth {depth!r} has its own",
                RuntimeWarning,
                stacklevel=3,
            )
        return depth
    if isinstance(depth, tuple):
        least, greatest = _checked_pair(depth)
        return Categorical(range(least, greatest + 1), label=module_label(label, "Repeat"))
    if isinstance(depth, bool) or not isinstance(depth, int):
        raise TypeError(
            f"depth must be a number, a pair of numbers or a mutable number, got {depth!r}"
        )
    if depth < 1:
        raise ValueError(f"depth must be >= 1, got {depth}")
    return depth


def _checked_pair(depth: tuple[Any, ...]) -> tuple[int, int]:
    """Return a pair of depths unchanged; raise unless it is two integers in order."""
    if len(depth) != _PAIR or not all(map(_is_integer, depth)):
        raise TypeError(f"depth must be a pair of integers, (least, greatest), got {depth}")
    least, greatest = depth
    if not 0 <= least <= greatest or greatest < 1:
        raise ValueError(
            f"depth must be (least, greatest) with 0 <= least <= greatest and greatest >= 1, "
            f"got {depth}"
        )
    return least, greatest


def _is_integer(value: object) -> bool:
    return isinstance(value, SupportsIndex) and not isinstance(value, bool)


def _sequence(blocks: list[nn.Module]) -> nn.Sequential:
    sequence = nn.Sequential(*blocks)
    record_place(sequence, "blocks")
    return sequence


def _default_depth(depth: int | MutableExpression) -> int:
    if isinstance(depth, LabeledMutable):
        return int(default_value(depth))
    return int(ensure_frozen(depth, strict=False))


def _bounds(depth: int | MutableExpression) -> tuple[int, int]:
    """Return the least and the greatest depth; raise ValueError for other than integers >= 0."""
    if isinstance(depth, int):
        return depth, depth
    values = list(depth.values) if isinstance(depth, Categorical) else list(_grid(depth))
    if not all(isinstance(one, int) for one in values):
        raise ValueError(
            f"depth must be an expression of integers, got {depth!r} with the value "
            f"{next(one for one in values if not isinstance(one, int))!r}; use its method int()"
        )
    if min(values) < 0 or max(values) < 1:
        raise ValueError(f"depth must be >= 0, and >= 1 for a sample, got {sorted(set(values))}")
    return min(values), max(values)


def _grid(depth: MutableExpression) -> Iterator[Any]:
    finite = all(isinstance(leaf, Categorical) for leaf in depth.simplify().values())
    return depth.grid(granularity=1 if finite else _GRANULARITY)


def _is_factory(blocks: Blocks) -> bool:
    """Return whether blocks are, or contain, functions that build them."""
    if isinstance(blocks, Sequence | nn.ModuleList):
        return any(_is_factory(one) for one in blocks)
    return not isinstance(blocks, nn.Module)


def _check_length(blocks: Blocks, greatest: int) -> None:
    if isinstance(blocks, Sequence | nn.ModuleList):
        if len(blocks) != greatest:
            raise ValueError(
                f"blocks must have the length of the greatest depth, {greatest}, got {len(blocks)}"
            )
    elif not callable(blocks):
        raise TypeError(f"blocks must be a module, a function or a list of these, got {blocks!r}")


def _built(blocks: Blocks, positions: range) -> Iterator[nn.Module]:
    """Yield each position's block: of a list, built by a function, or a module, then its copies."""
    for position in positions:
        if isinstance(blocks, Sequence | nn.ModuleList):
            yield from _built_one(blocks[position], position, copied=False)
        else:
            yield from _built_one(blocks, position, copied=position > 0)


def _built_one(block: nn.Module | Factory, position: int, *, copied: bool) -> Iterator[nn.Module]:
    if isinstance(block, nn.Module):
        yield copy.deepcopy(block) if copied else block
        return
    made = block(position)
    if not isinstance(made, nn.Module):
        raise TypeError(f"blocks must return a torch.nn.Module, got {made!r} at {position}")
    yield made


def _skip_labels(blocks: Blocks, positions: range, scope: label_scope, before: int) -> None:
    """Count the automatic labels of blocks that are not built, as the whole space does.

    Otherwise all automatic labels after a shortened repetition would be others than in the space.
    The blocks are built without memory, and without labels in the sample, to count theirs; one
    block, if there is any, shows whether they have such labels at all.
    """
    with torch.device("meta"), unfixed_constructors(), dry_run(Repeat.__name__):
        for position in positions:
            if position > 0 and scope.count == before:
                return
            deque(_built(blocks, range(position, position + 1)), maxlen=0)
