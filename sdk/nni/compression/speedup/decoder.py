"""Structured pruning of decoders: heads, widths of feed-forward layers, and whole blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import nn

from nni.compression.evaluators.perplexity import Tokens, perplexity
from nni.compression.speedup.deadline import Deadline
from nni.compression.speedup.depth import DepthReport, drop_blocks, find_blocks, parameter_count
from nni.compression.speedup.groups import ChannelGroup, Dependencies
from nni.compression.speedup.pruning import choose_units, l1_scores, remove_units, unit_width
from nni.compression.speedup.report import SpeedupReport
from nni.compression.speedup.slots import Flags


@dataclass(frozen=True, slots=True)
class DecoderReport:
    """Result of `prune_decoder`: perplexity and parameters before and after, and what is gone.

    Examples:
        >>> from nni.compression.speedup.decoder import DecoderReport
        >>> print(DecoderReport((10.0, 12.5), (200, 100), None, None))
        parameters 200 -> 100, perplexity 10 -> 12.5
    """

    perplexity: tuple[float, float]
    """Perplexity on the batches before and after."""
    parameters: tuple[int, int]
    """Number of elements of all parameters before and after."""
    depth: DepthReport | None
    """Removed blocks; None if none was to go."""
    removal: SpeedupReport | None
    """Removed heads and widths, with the error against the masked model; None if none was to go."""

    def __str__(self) -> str:
        """Return parameters and perplexity as a line, with one for the removed blocks."""
        before, after = self.perplexity
        line = (
            f"parameters {self.parameters[0]} -> {self.parameters[1]}, "
            f"perplexity {before:.4g} -> {after:.4g}"
        )
        if self.depth is None:
            return line
        return f"{line}\nremoved from {self.depth.blocks}: {list(self.depth.removed)}"


def prune_decoder(
    model: nn.Module,
    batches: Sequence[Tokens],
    *,
    heads: float = 0.0,
    width: float = 0.0,
    depth: int = 0,
    round_to: int = 1,
    blocks: str | None = None,
    time_limit_s: float | None = 300.0,
) -> tuple[nn.Module, DecoderReport]:
    """Return a copy of a language model with fewer blocks, heads and channels, and a report.

    Blocks that change their input least go first. Then each block loses the heads and the
    feed-forward channels of smallest L1 norm. A head goes with its query, key, value and output
    weights; heads of queries that share a key and value head go together with it. Heads and
    channels are found from a recorded run, not from the names of classes. The width of the
    residual stream stays.

    Args:
        model: Returns logits, as `perplexity` describes; it is not changed.
        batches: Token ids, `(batch, length)` each, or inputs by name. They rank the blocks, and
            give the perplexity.
        heads: Part of the heads of each block to remove, in [0, 1); the number is rounded down,
            in units of heads that go together.
        width: Part of the feed-forward channels of each block to remove, in [0, 1).
        depth: Number of blocks to remove, >= 0.
        round_to: Multiple to which the number of feed-forward channels is rounded up.
        blocks: Path of the list of blocks; None for the longest list of modules of one class.
        time_limit_s: Limit in seconds for planning; see `nni.compression.prune`.

    Returns:
        The smaller model in the train / eval mode of the given one, and a report.

    Raises:
        ValueError: an argument is out of range, nothing is to be removed, or the blocks have no
            heads or channels that can be removed.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression import prune_decoder
        >>> class Block(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.up, self.down = nn.Linear(8, 32), nn.Linear(32, 8)
        ...     def forward(self, value):
        ...         return value + self.down(self.up(value).relu())
        >>> embedding = nn.Embedding(16, 8)
        >>> model = nn.Sequential(embedding, nn.Sequential(Block(), Block()), nn.Linear(8, 16))
        >>> smaller, report = prune_decoder(model, [torch.zeros(1, 4, dtype=torch.long)], width=0.5)
        >>> smaller[1][0].up
        Linear(in_features=8, out_features=16, bias=True)
    """
    _check(batches, heads, width, depth, round_to)
    path = find_blocks(model) if blocks is None else blocks
    before = perplexity(model, batches)
    smaller, dropped, removal = model, None, None
    if depth:
        smaller, dropped = drop_blocks(model, batches, depth, blocks=path)
    if heads or width:
        smaller, removal = remove_units(
            smaller,
            batches[0],
            lambda copied, found: _chosen(copied, found, path, heads, width, round_to),
            deadline=Deadline(time_limit_s),
        )
    counts = parameter_count(model), parameter_count(smaller)
    report = DecoderReport((before, perplexity(smaller, batches)), counts, dropped, removal)
    return smaller, report


def _check(
    batches: Sequence[Tokens], heads: float, width: float, depth: int, round_to: int
) -> None:
    for name, value in (("heads", heads), ("width", width)):
        if not 0 <= value < 1:
            raise ValueError(f"{name} must be at least 0 and below 1, but is {value}")
    if depth < 0:
        raise ValueError(f"depth must be at least 0, but is {depth}")
    if round_to < 1:
        raise ValueError(f"round_to must be at least 1, but is {round_to}")
    if not (heads or width or depth):
        raise ValueError("nothing is to be removed; set heads, width or depth above 0")
    if not batches:
        raise ValueError("batches must hold at least one batch of tokens, got none")


def _chosen(
    model: nn.Module,
    dependencies: Dependencies,
    path: str,
    heads: float,
    width: float,
    round_to: int,
) -> Flags:
    """Return flags of the units of the blocks that go; raise if there are none to remove."""
    scores = l1_scores(model, dependencies)
    members = {True: np.zeros(len(scores), dtype=bool), False: np.zeros(len(scores), dtype=bool)}
    for group in dependencies.groups():
        if all(name.startswith(f"{path}.") for name, _ in group.axes):
            members[_is_heads(dependencies, group)][group.units] = True
    for name, ratio, found in (("heads", heads, members[True]), ("width", width, members[False])):
        if ratio and not found.any():
            reasons = [
                f"{one}: {why}"
                for one, why in dependencies.reasons().items()
                if one.startswith(f"{path}.")
            ]
            raise ValueError(
                f"{path} has nothing to remove by {name}; set it to 0. Reasons: "
                f"{'; '.join(reasons) or 'no such channels were found'}"
            )
    by_heads = choose_units(dependencies, scores, heads)
    by_width = choose_units(dependencies, scores, width, round_to)
    chosen: Flags = (by_heads & members[True]) | (by_width & members[False])
    return chosen


def _is_heads(dependencies: Dependencies, group: ChannelGroup) -> bool:
    """Return whether the units of a group are heads: several channels of a weight go with each."""
    return unit_width(dependencies, group) > 1
