"""Base of the pruners of output channels, which know what channels depend on each other."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from nni.compression.base.arguments import check_evaluator
from nni.compression.base.evaluator import Evaluator
from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.base.pruner import Pruner, TargetKey
from nni.compression.config.settings import ConfigListError, Granularity
from nni.compression.masking.allocation import Scores, allocate
from nni.compression.masking.shared_channels import ChannelScores, shared_channels
from nni.compression.speedup.dependency import (
    LayerChannels,
    group_counts,
    layer_channels,
    parts_of,
    shared_sets,
)
from nni.compression.speedup.graph import Inputs
from nni.compression.speedup.groups import find_dependencies
from nni.compression.speedup.slots import Ids

Mode = Literal["normal", "global", "dependency_aware"]

_logger = logging.getLogger(__name__)

_SINGLE = frozenset({"sparsity", "sparsity_per_layer"})
"""Keys of NNI 2.x that mean a sparsity of each layer."""
_MODES = ("normal", "global", "dependency_aware")


@dataclass(frozen=True, slots=True)
class DependentLayers:
    """Layers that can lose a channel only together."""

    layers: tuple[LayerChannels, ...]
    """The layers, in the order in which they ran."""
    parts: int
    """Number of parts of the channels that must lose equally many."""


class ChannelPruner(Pruner):
    """Base of the pruners that mask output channels, by layer, by entry or by dependent layers.

    A pruner of one's own implements `calculate_metrics`, and maybe `collect_data`.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 3.0 or 2.x; not changed.
        evaluator: what trains the model; None if the algorithm needs no data.
        mode: `normal`: each weight reaches its ratio; `global`: the weights of an entry reach it
            together; `dependency_aware`: layers whose outputs are added, or pass the same depthwise
            convolution, lose the same channels as far as their smallest ratio goes, and groups of
            convolutions equally many. If such a layer is not in `config_list`, the others lose
            channels of their own only.
        dummy_input: inputs of one run of the model, for `dependency_aware` only: a tensor, a list
            or tuple, or a dict by name; None for that of the evaluator.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.
        ValueError: `mode` is unknown, or there is no `dummy_input`.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.pruning import L1NormPruner
        >>> class Sum(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.one, self.other = nn.Linear(3, 4), nn.Linear(3, 4)
        ...     def forward(self, features):
        ...         return self.one(features) + self.other(features)
        >>> config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]
        >>> inputs = torch.zeros(1, 3)
        >>> pruner = L1NormPruner(Sum(), config_list, mode="dependency_aware", dummy_input=inputs)
        >>> _, masks = pruner.compress()
        >>> torch.equal(masks["one"]["bias"], masks["other"]["bias"])
        True
    """

    default_granularity: Granularity = "out_channel"

    def __init__(
        self,
        model: nn.Module | None,
        config_list: Sequence[Mapping[str, object]] | None,
        evaluator: Evaluator | None = None,
        mode: Mode = "normal",
        dummy_input: Inputs | None = None,
    ) -> None:
        if mode not in _MODES:
            raise ValueError(f"mode must be one of {', '.join(_MODES)}, got {mode!r}")
        if evaluator is not None:
            check_evaluator(evaluator)
        if dummy_input is None and evaluator is not None:
            dummy_input = evaluator.get_dummy_input()  # type: ignore[assignment]  # of the user
        aware = mode == "dependency_aware"
        if aware and dummy_input is None:
            raise ValueError("mode 'dependency_aware' needs dummy_input, inputs of the model")
        self.mode: Mode = mode
        self.per_entry = mode == "global"
        self._dummy_input = dummy_input if aware else None
        self._dependent: list[DependentLayers] = []
        super().__init__(model, config_list, evaluator)

    def reset(  # noqa: D102 - see the base
        self, model: nn.Module | None, config_list: Sequence[Mapping[str, object]] | None
    ) -> None:
        super().reset(model, config_list)
        if self._dummy_input is not None:
            self._dependent = dependent_layers(self.unwrap_model(), self._dummy_input)
            self.wrap_model()

    def _make_wrappers(
        self, model: nn.Module, config_list: Sequence[Mapping[str, object]]
    ) -> Mapping[str, ModuleWrapper]:
        wrappers = super()._make_wrappers(model, config_list)
        if self.per_entry and any(_SINGLE & entry.keys() for entry in config_list):
            _logger.warning(
                "mode 'global': sparsity of an entry is that of all its layers together"
            )
        return wrappers

    def _check_targets(self) -> None:
        super()._check_targets()
        if self.mode != "dependency_aware":
            return
        for name, target in self.own_targets():
            settings = self._wrappers[name].targets[target]
            where = f"config_list target {target} of {name}:"
            if settings.granularity not in {"default", "out_channel"} or target != "weight":
                raise ConfigListError(
                    where, "is not the channels of a weight, as mode 'dependency_aware' needs"
                )
            for key in ("sparse_threshold", "global_group_id", "dependency_group_id"):
                if getattr(settings, key) is not None:
                    raise ConfigListError(
                        where, f"has {key}; mode 'dependency_aware' needs a sparse_ratio alone"
                    )

    def _allocate(self, scores: Mapping[TargetKey, Scores]) -> dict[TargetKey, Tensor]:
        found: dict[TargetKey, Tensor] = {}
        for one in self._dependent:
            found |= _allocated(one, scores)
        return found | allocate({key: one for key, one in scores.items() if key not in found})


def dependent_layers(model: nn.Module, dummy_input: Inputs) -> list[DependentLayers]:
    """Return all convolutions and Linear layers of a model by sets that share channels.

    Args:
        model: an unwrapped model; it runs once in eval mode and is the same afterwards.
        dummy_input: inputs of this run.
    """
    layers = {one.name: one for one in layer_channels(model, find_dependencies(model, dummy_input))}
    counts = group_counts(list(layers.values()))
    return [
        DependentLayers(tuple(layers[name] for name in names), parts_of(counts, names))
        for names in shared_sets({name: one.units for name, one in layers.items()})
    ]


def _allocated(
    dependent: DependentLayers, scores: Mapping[TargetKey, Scores]
) -> dict[TargetKey, Tensor]:
    """Return which channels of the dependent layers stay; nothing of layers without scores."""
    keys, members = [], []
    for key, own, units in _pruned(dependent, scores):
        settings = own.settings
        ratio = min(settings.sparse_ratio or 0.0, settings.max_sparse_ratio or 1.0)
        ratio = max(ratio, settings.min_sparse_ratio or 0.0)
        keys.append(key)
        members.append(ChannelScores(own.metric.flatten(), own.kept.flatten(), units, ratio))
    if not keys:
        return {}
    # A depthwise convolution has no channels of its own: without a mask it follows the others.
    whole = all((one.name, "weight") in keys for one in dependent.layers if not one.depthwise)
    kept = shared_channels(members, dependent.parts, None if whole else 0.0)
    return {key: one.reshape(scores[key].metric.shape) for key, one in zip(keys, kept, strict=True)}


def _pruned(
    dependent: DependentLayers, scores: Mapping[TargetKey, Scores]
) -> Iterator[tuple[TargetKey, Scores, Ids]]:
    """Yield key, scores and units of a set's layers that have a metric for each output channel."""
    for one in dependent.layers:
        own = scores.get((one.name, "weight"))
        if own is not None and own.metric.numel() == len(one.units):
            yield (one.name, "weight"), own, one.units
