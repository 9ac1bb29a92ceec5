"""Pruning of depth: the blocks of a network that change their input least are removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from torch import nn

from nni.compression.speedup.caches import independent_copy
from nni.compression.speedup.graph import Inputs
from nni.compression.speedup.running import run, tensors_in, unchanged

_COUNTS: Final = frozenset({"num_hidden_layers", "n_layer", "num_layers", "n_layers"})
"""Names under which models and their configurations count blocks."""
_INDEX: Final = "layer_idx"
"""Attribute in which modules of the package transformers keep the index of their block."""


@dataclass(frozen=True, slots=True)
class DepthReport:
    """Result of `drop_blocks`: influences, removed indices, parameters, and scores if requested.

    Examples:
        >>> from nni.compression.speedup import DepthReport
        >>> DepthReport("layers", (0.5, 0.1), (1,), 200, 100).removed
        (1,)
    """

    blocks: str
    """Path of the list of blocks."""
    influences: tuple[float, ...]
    """Change of direction of the input by each block, in [0, 2]; 0 for the identity."""
    removed: tuple[int, ...]
    """Indices of the removed blocks, in ascending order."""
    parameters_before: int
    """Number of elements of all parameters."""
    parameters_after: int
    """The same after the removal."""
    scores: tuple[float, float] | None = None
    """Results of `score` before and after; None without it."""


def find_blocks(model: nn.Module) -> str:
    """Return the path of the longest list of modules of one class; raise if there is none.

    Args:
        model: The model.

    Raises:
        ValueError: there is no list of two or more modules of one class.

    Examples:
        >>> from torch import nn
        >>> from nni.compression.speedup.depth import find_blocks
        >>> find_blocks(nn.ModuleDict({"h": nn.ModuleList(nn.Linear(2, 2) for _ in range(3))}))
        'h'
    """
    found = {
        name: len(module)
        for name, module in model.named_modules()
        if isinstance(module, nn.ModuleList | nn.Sequential)
        and len(module) > 1
        and len({type(one) for one in module}) == 1
    }
    if not found:
        raise ValueError("the model has no list of blocks of one class; name one in blocks")
    longest: str = max(found, key=lambda name: found[name])
    return longest


def block_influences(
    model: nn.Module, batches: Iterable[Inputs], blocks: str | None = None
) -> list[float]:
    """Return for each block 1 - the mean cosine similarity of its input and output.

    Args:
        model: The model; it runs in eval mode without gradients and is the same afterwards.
        batches: Inputs of some runs.
        blocks: Path of the list of blocks; None for `find_blocks`.

    Returns:
        A number in [0, 2] for each block: 0 for a block that changes only the length of vectors.

    Raises:
        ValueError: a block did not run, or has no input of the shape of its output.

    Source: Men et al., ShortGPT: Layers in Large Language Models are More Redundant Than You
        Expect, 2024, section 2.3.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.speedup.depth import block_influences
        >>> model = nn.Sequential(nn.Identity(), nn.Identity())
        >>> [round(one, 6) for one in block_influences(model, [torch.ones(1, 4)])]
        [0.0, 0.0]
    """
    listed = model.get_submodule(find_blocks(model) if blocks is None else blocks)
    members = list(listed.children())
    cosines: list[list[float]] = [[] for _ in members]
    handles = [
        block.register_forward_hook(_observer(seen), with_kwargs=True)
        for block, seen in zip(members, cosines, strict=True)
    ]
    try:
        with unchanged(model):
            for batch in batches:
                run(model, batch)
    finally:
        for handle in handles:
            handle.remove()
    idle = [index for index, seen in enumerate(cosines) if not seen]
    if idle:
        raise ValueError(f"block {idle[0]} did not run on the batches")
    return [1 - sum(seen) / len(seen) for seen in cosines]


def _observer(seen: list[float]) -> Callable[..., None]:
    def hook(
        _module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: object
    ) -> None:
        after = tensors_in(output)[0]
        before = next(
            (one for one in tensors_in([args, kwargs]) if one.shape == after.shape),
            None,
        )
        if before is None:
            raise ValueError(
                f"a block returns {tuple(after.shape)} and has no input of that shape; only blocks "
                "that keep the shape can be removed"
            )
        cosine = nn.functional.cosine_similarity(before.double(), after.double(), dim=-1)
        seen.append(float(cosine.mean()))

    return hook


def drop_blocks(
    model: nn.Module,
    batches: Sequence[Inputs],
    count: int,
    *,
    blocks: str | None = None,
    score: Callable[[nn.Module], float] | None = None,
) -> tuple[nn.Module, DepthReport]:
    """Return a copy of a model without the blocks that change their input least; and a report.

    Attributes that count the blocks, in the modules around them and their `config`, are adapted,
    and so are indices that blocks hold as `layer_idx`.

    Args:
        model: The model, such as a decoder; it is not changed.
        batches: Inputs of some runs, by which blocks are ranked.
        count: Number of blocks to remove, >= 1; at least one block stays.
        blocks: Path of the list of blocks; None for the longest list of modules of one class.
        score: Function of a model, such as its perplexity, called before and after.

    Returns:
        The smaller model, and a report.

    Raises:
        ValueError: `count` is out of range, or a block has no input of the shape of its output.

    Source: as `block_influences`.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.speedup import drop_blocks
        >>> model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4))
        >>> smaller, report = drop_blocks(model, [torch.randn(2, 4)], 1)
        >>> len(smaller), len(report.removed)
        (2, 1)
    """
    path = find_blocks(model) if blocks is None else blocks
    total = len(list(model.get_submodule(path).children()))
    if not 1 <= count < total:
        raise ValueError(f"count must be at least 1 and below the {total} blocks, got {count}")
    influences = block_influences(model, batches, path)
    removed = sorted(sorted(range(total), key=influences.__getitem__)[:count])
    before = None if score is None else score(model)
    smaller = independent_copy(model)
    keep_blocks(smaller, path, [index for index in range(total) if index not in removed])
    report = DepthReport(
        path,
        tuple(influences),
        tuple(removed),
        parameter_count(model),
        parameter_count(smaller),
        None if score is None or before is None else (before, score(smaller)),
    )
    return smaller, report


def parameter_count(model: nn.Module) -> int:
    """Return the number of elements of all parameters of a model.

    Args:
        model: The model.
    """
    return sum(one.numel() for one in model.parameters())


def keep_blocks(model: nn.Module, path: str, indices: Sequence[int]) -> None:
    """Keep only some blocks of a model, in place; renumber them and adapt counts and configs.

    Args:
        model: The model.
        path: Path of the list of blocks.
        indices: Indices of the blocks that stay, in ascending order.
    """
    listed = model.get_submodule(path)
    members = list(listed.children())
    listed._modules.clear()  # noqa: SLF001 - lists and sequences have no common method for it
    for number, index in enumerate(indices):
        listed.add_module(str(number), members[index])
        for module in members[index].modules():
            if isinstance(getattr(module, _INDEX, None), int):
                setattr(module, _INDEX, number)
    parts = path.split(".")
    around = [model.get_submodule(".".join(parts[:length])) for length in range(len(parts))]
    configs = [one.config for one in around if hasattr(one, "config")]
    for owner in {id(one): one for one in [*around, *configs[-1:]]}.values():
        _recount(owner, len(members), indices)


def _recount(owner: object, total: int, indices: Sequence[int]) -> None:
    """Reduce counts of the blocks, and lists with a value for each block, to those that stay."""
    for name, value in list(vars(owner).items()):
        if name in _COUNTS and value == total:
            setattr(owner, name, len(indices))
        elif "layer" in name and isinstance(value, list) and len(value) == total:
            setattr(owner, name, [value[index] for index in indices])
