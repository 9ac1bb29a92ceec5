"""Maskers of NNI 2.x: objects that compute the masks of a layer for a `LegacyPruner`."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nni.compression.base.arguments import check_count
from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.base.pruner import Pruner
from nni.compression.masking.shared_channels import ChannelScores, shared_channels

LayerMasks = dict[str, Tensor | None]
"""`weight_mask` and `bias_mask`; None for a layer without bias."""


class WeightMasker(ABC):
    """Base of maskers, whose `calc_mask` returns the masks of a layer for a sparsity.

    Args:
        model: the model.
        pruner: the pruner that asks for masks.
        kwargs: for subclasses.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.algorithms.compression.pytorch.pruning.weight_masker import WeightMasker
        >>> class SignMasker(WeightMasker):
        ...     def calc_mask(self, sparsity, wrapper, wrapper_idx=None):
        ...         return {"weight_mask": (wrapper.module.weight > 0).float()}
    """

    def __init__(self, model: nn.Module, pruner: Pruner | None, **kwargs: Any) -> None:  # noqa: ANN401
        del kwargs
        self.model = model
        self.pruner = pruner

    @abstractmethod
    def calc_mask(
        self,
        sparsity: float,
        wrapper: ModuleWrapper,
        wrapper_idx: int | None = None,
    ) -> Mapping[str, Tensor | None] | None:
        """Return a layer's `weight_mask` and maybe `bias_mask` for a sparsity; None to leave them.

        Args:
            sparsity: part to mask.
            wrapper: wrapper of the layer.
            wrapper_idx: place of the wrapper among all of the pruner.

        Returns:
            `weight_mask` and maybe `bias_mask`; None to leave the masks as they are.
        """


class StructuredWeightMasker(WeightMasker):
    """Base of the maskers of output channels.

    A subclass implements `get_channel_sum`, or `get_mask`, or both.

    Args:
        model: the model.
        pruner: the pruner that asks for masks.
        preserve_round: number of channels that stay is rounded up to a multiple of this, >= 1.
        dependency_aware: kept for subclasses; `calc_mask` does with lists what it says.
        global_sort: kept for subclasses.

    Raises:
        ValueError: `preserve_round` is below 1.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.pruning.legacy.weight_masker import StructuredWeightMasker
        >>> class NormMasker(StructuredWeightMasker):
        ...     def get_channel_sum(self, wrapper, wrapper_idx):
        ...         return wrapper.module.weight.detach().abs().flatten(1).sum(1)
    """

    def __init__(
        self,
        model: nn.Module,
        pruner: Pruner | None,
        preserve_round: int = 1,
        dependency_aware: bool = False,  # noqa: FBT001, FBT002 - the documented signature
        global_sort: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        check_count("preserve_round", preserve_round)
        super().__init__(model, pruner)
        self.preserve_round = preserve_round
        self.dependency_aware = dependency_aware
        self.global_sort = global_sort

    def calc_mask(
        self,
        sparsity: float | Sequence[float],
        wrapper: ModuleWrapper | Sequence[ModuleWrapper],
        wrapper_idx: int | Sequence[int] | None = None,
        **depen_kwargs: Any,  # noqa: ANN401 - as documented
    ) -> Any:  # noqa: ANN401 - one layer's masks, or those of several by name
        """Return the masks of a layer; of several dependent layers by module name.

        Args:
            sparsity: part of the channels to mask; a list for several layers.
            wrapper: wrapper of the layer; a list for several layers.
            wrapper_idx: place of the wrapper; a list for several layers.
            depen_kwargs: for several layers: `groups`, the number of groups of each.

        Returns:
            `weight_mask` and `bias_mask`; for several layers these by name of the layer.
        """
        if isinstance(wrapper, ModuleWrapper):
            assert isinstance(sparsity, float | int)  # a list goes with a list of wrappers
            return self._masks(sparsity, wrapper, _first(wrapper_idx))
        assert isinstance(sparsity, Sequence)
        places = list(wrapper_idx) if isinstance(wrapper_idx, Sequence) else [None] * len(wrapper)
        common = self._common(sparsity, wrapper, places, depen_kwargs.get("groups"))
        return {
            one.module_name: self._masks(ratio, one, place, common)
            for one, ratio, place in zip(wrapper, sparsity, places, strict=True)
        }

    def get_channel_sum(self, wrapper: ModuleWrapper, wrapper_idx: int | None) -> Tensor:
        """Return the importance of each channel; the base raises TypeError.

        Args:
            wrapper: wrapper of the layer.
            wrapper_idx: place of the wrapper.

        Returns:
            `(channels,)`; the smallest are masked first.

        Raises:
            TypeError: the subclass does not implement it.
        """
        raise TypeError(
            f"{type(self).__name__} has no get_channel_sum for {wrapper.module_name} (place "
            f"{wrapper_idx}): implement it, or get_mask; dependent layers need it"
        )

    def get_mask(
        self,
        base_mask: LayerMasks,
        weight: Tensor,
        num_prune: int,
        wrapper: ModuleWrapper,
        wrapper_idx: int | None,
        channel_masks: Tensor | None = None,
    ) -> LayerMasks:
        """Return the base masks without the `num_prune` least important channels.

        Args:
            base_mask: masks of ones.
            weight: weight of the layer.
            num_prune: number of channels to mask.
            wrapper: wrapper of the layer.
            wrapper_idx: place of the wrapper.
            channel_masks: bool `(channels,)`, false for channels that are masked whatever their
                importance; None for none.

        Returns:
            `weight_mask` and `bias_mask`.
        """
        scores = self.get_channel_sum(wrapper, wrapper_idx).double().clone()
        if channel_masks is not None:
            scores[~channel_masks.to(scores.device)] = -math.inf
        kept = torch.ones(len(scores), dtype=torch.bool, device=weight.device)
        kept[torch.argsort(scores, stable=True)[:num_prune].to(weight.device)] = False
        weight_mask, bias_mask = base_mask["weight_mask"], base_mask["bias_mask"]
        assert weight_mask is not None  # every layer has a weight
        rows = kept.to(weight_mask.dtype).reshape(-1, *[1] * (weight.dim() - 1))
        return {
            "weight_mask": weight_mask * rows,
            "bias_mask": None if bias_mask is None else bias_mask * kept.to(bias_mask.dtype),
        }

    def number_to_prune(self, channels: int, sparsity: float) -> int:
        """Return how many channels to mask; the kept are a multiple of `preserve_round`.

        Args:
            channels: number of channels.
            sparsity: part to mask.

        Returns:
            The product rounded down, and further until what stays is a multiple of
            `preserve_round`.

        Examples:
            >>> from torch import nn
            >>> from nni.compression.pruning.legacy.weight_masker import StructuredWeightMasker
            >>> StructuredWeightMasker(nn.ReLU(), None, preserve_round=4).number_to_prune(32, 0.2)
            4
        """
        kept = channels - int(channels * sparsity)
        return max(channels - math.ceil(kept / self.preserve_round) * self.preserve_round, 0)

    def _masks(
        self,
        sparsity: float,
        wrapper: ModuleWrapper,
        wrapper_idx: int | None,
        common: Tensor | None = None,
    ) -> LayerMasks:
        weight = wrapper.parameter("weight").detach()
        bias = getattr(wrapper.module, "bias", None)
        base: LayerMasks = {
            "weight_mask": torch.ones_like(weight),
            "bias_mask": torch.ones_like(bias.detach()) if isinstance(bias, Tensor) else None,
        }
        count = self.number_to_prune(len(weight), sparsity)
        if count == 0:
            return base
        return self.get_mask(base, weight, count, wrapper, wrapper_idx, common)

    def _common(
        self,
        sparsities: Sequence[float],
        wrappers: Sequence[ModuleWrapper],
        places: Sequence[int | None],
        groups: Sequence[int] | None,
    ) -> Tensor:
        """Return a bool tensor, false for the channels that all layers lose."""
        smallest = min(sparsities)
        layers = []
        for wrapper, place in zip(wrappers, places, strict=True):
            scores = self.get_channel_sum(wrapper, place)
            alive = torch.ones(len(scores), dtype=torch.bool)
            layers.append(ChannelScores(scores, alive, np.arange(len(scores)), smallest))
        parts = math.lcm(*groups) if groups else 1
        return torch.stack(shared_channels(layers, parts)).any(0)


def _first(place: int | Sequence[int] | None) -> int | None:
    return place if isinstance(place, int) or place is None else place[0]
