"""Environment of the agent: one step decides how many input channels of a set stay."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import nn

from nni.compression.pruning.amc.channels import ChannelSet, LayerCost, total_flops
from nni.compression.speedup.slots import Flags

State = npt.NDArray[np.float64]
"""What an agent sees of a step: `(10,)`."""

STATE_SIZE = 10
"""Index, type, inputs, outputs, stride, kernel, weights, removed and coming operations, action."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of what an agent may decide: FLOPs ratio, bounds of each part, and a multiple."""

    flops_ratio: float
    """Part of the operations that stays at most."""
    lower: float
    """Smallest part of the channels of a set that stays."""
    upper: float
    """Largest part of the channels of a set that stays."""
    multiple: int
    """Numbers of channels are rounded up to multiples of it."""


class Environment:
    """Environment: a model whose sets of channels are pruned in sequence.

    Args:
        modules: modules of the model by name.
        layers: all layers.
        sets: what is decided about, in order.
        unit_count: number of units.
        limits: what may be decided.

    Raises:
        ValueError: there is nothing to prune, or the limits exclude the ratio of operations.
    """

    def __init__(
        self,
        modules: Mapping[str, nn.Module],
        layers: Sequence[LayerCost],
        sets: Sequence[ChannelSet],
        unit_count: int,
        limits: Limits,
    ) -> None:
        if not sets:
            raise ValueError(
                "config_list must select layers whose input channels can be pruned; the input of "
                "the first layer cannot"
            )
        self.sets = tuple(sets)
        self._layers = layers
        self._limits = limits
        self._unit_count = unit_count
        self._whole = total_flops(layers, self._all())
        least = total_flops(layers, self._with_least([]))
        if least > limits.flops_ratio * self._whole:
            raise ValueError(
                f"flops_ratio must be >= {least / self._whole:.3f}, what is left with lbound "
                f"{limits.lower} and channel_round {limits.multiple}, got {limits.flops_ratio}"
            )
        self._features = _features(modules, [one.layers[0] for one in sets])
        self._counts: list[int] = []

    @property
    def actions(self) -> list[float]:
        """Return the part of each set that stays, as far as it is decided."""
        return [count / len(one.units) for count, one in zip(self._counts, self.sets, strict=False)]

    def reset(self) -> State:
        """Forget all decisions and return the first state."""
        self._counts = []
        return self.state()

    def state(self) -> State:
        """Return the state of the next set; of the last one after all are decided."""
        place = min(len(self._counts), len(self.sets) - 1)
        kept = self._flags([*self._counts, *(len(one.units) for one in self._undecided())])
        reduced = 1 - total_flops(self._layers, kept) / self._whole
        rest = sum(self._flops_of(one) for one in self.sets[place + 1 :]) / self._whole
        previous = self.actions[-1] if self._counts else 1.0
        return np.array([*self._features[place], reduced, rest, previous])

    def step(self, action: float) -> tuple[State, float, bool]:
        """Bound an action, apply it to the next set; return next state, kept share, whether last.

        Args:
            action: part of its channels that stays; changed so that the ratio of operations can
                be reached.

        Returns:
            Next state, the part that does stay, and whether all sets are decided.
        """
        one = self.sets[len(self._counts)]
        limits = self._limits
        bounded = min(max(action, limits.lower), limits.upper)
        count = one.kept_count(bounded, limits.multiple)
        least = one.kept_count(limits.lower, limits.multiple)
        budget = limits.flops_ratio * self._whole
        while (
            count > least
            and total_flops(self._layers, self._with_least([*self._counts, count])) > budget
        ):
            count = max((count - 1) // limits.multiple * limits.multiple, least)
        self._counts.append(count)
        return self.state(), count / len(one.units), len(self._counts) == len(self.sets)

    def kept(self) -> Flags:
        """Return by unit whether it stays; undecided sets keep as few as allowed."""
        return self._with_least(self._counts)

    def flops(self) -> float:
        """Return the FLOPs with the units that stay; undecided sets keep as few as allowed."""
        return total_flops(self._layers, self.kept())

    def _flops_of(self, one: ChannelSet) -> float:
        return sum(own.flops for own in self._layers if own.channels.name in one.layers)

    def flops_ratio(self) -> float:
        """Return the part of all FLOPs that stays; undecided sets keep as few as allowed."""
        return self.flops() / self._whole

    def _undecided(self) -> tuple[ChannelSet, ...]:
        return self.sets[len(self._counts) :]

    def _with_least(self, counts: Sequence[int]) -> Flags:
        """Return by unit whether it stays: counts for the first sets, the least for the rest."""
        limits = self._limits
        least = [one.kept_count(limits.lower, limits.multiple) for one in self.sets[len(counts) :]]
        return self._flags([*counts, *least])

    def _flags(self, counts: Sequence[int]) -> Flags:
        """Return by unit whether it stays, if each set keeps the first of its units."""
        kept = self._all()
        for count, one in zip(counts, self.sets, strict=True):
            kept[one.units[count:]] = False
        return kept

    def _all(self) -> Flags:
        return np.ones(self._unit_count, dtype=bool)


def _features(modules: Mapping[str, nn.Module], names: Sequence[str]) -> list[list[float]]:
    """Return the constant features of each layer, scaled by column to [0, 1]: `(layers, 7)`."""
    table = np.array([_raw(index, modules[name]) for index, name in enumerate(names)])
    span = table.max(0) - table.min(0)
    scaled = (table - table.min(0)) / np.where(span == 0, 1, span)
    rows: list[list[float]] = scaled.tolist()
    return rows


def _raw(index: int, module: nn.Module) -> list[float]:
    if isinstance(module, nn.Conv2d):
        stride, kernel = module.stride[0], module.kernel_size[0]
        inputs, outputs, linear = module.in_channels, module.out_channels, 0
    else:
        assert isinstance(module, nn.Linear)  # the pruner accepts no other type
        stride, kernel = 0, 1
        inputs, outputs, linear = module.in_features, module.out_features, 1
    return [index, linear, inputs, outputs, stride, kernel, module.weight.numel()]
