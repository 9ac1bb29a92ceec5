"""Dependency groups in a configuration list of NNI 3.0, found from one run of the model."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np
from torch import nn

from nni.compression.base.inspection import module_infos
from nni.compression.config.plan import Plan, pruning_plan
from nni.compression.config.settings import ConfigListError, PruningSettings
from nni.compression.speedup.dependency import (
    LayerChannels,
    group_counts,
    layer_channels,
    parts_of,
    shared_sets,
)
from nni.compression.speedup.graph import Inputs
from nni.compression.speedup.groups import find_dependencies
from nni.compression.speedup.model_speedup import refuse_wrapped

_logger = logging.getLogger(__name__)


def auto_set_dependency_group_ids(
    model: nn.Module, config_list: Sequence[Mapping[str, object]], dummy_input: Inputs
) -> list[dict[str, object]]:
    """Return new entries, one per module, in which layers that share channels share a mask.

    Layers whose outputs are added, or pass the same depthwise convolution, get one
    `dependency_group_id`; layers whose channels fall into groups of a convolution get
    `internal_metric_block`. Other targets keep their settings.

    Args:
        model: the model, without wrappers of a pruner; it runs once and is the same afterwards.
        config_list: entries of NNI 3.0 or 2.x; not changed.
        dummy_input: a tensor, a list or tuple of inputs, or a dict by name.

    Returns:
        Entries of NNI 3.0, one for each module, which `json.dumps` takes.

    Raises:
        ConfigListError: the configuration breaks a rule, or dependent layers have different
            settings.
        ValueError: `model` is wrapped by a pruner.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.utils import auto_set_dependency_group_ids
        >>> class Sum(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.one, self.other = nn.Linear(3, 4), nn.Linear(3, 4)
        ...     def forward(self, features):
        ...         return self.one(features) + self.other(features)
        >>> entries = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]
        >>> found = auto_set_dependency_group_ids(Sum(), entries, torch.zeros(1, 3))
        >>> [one["target_settings"]["weight"]["dependency_group_id"] for one in found]
        ['channels of one', 'channels of one']
    """
    refuse_wrapped(model)
    plan = pruning_plan(config_list, module_infos(model))
    layers = {one.name: one for one in layer_channels(model, find_dependencies(model, dummy_input))}
    counts = group_counts(list(layers.values()))
    for names in shared_sets({name: one.units for name, one in layers.items()}):
        chosen = [name for name in names if name in plan and _is_grouped(plan[name].get("weight"))]
        _warn_missing([layers[name] for name in names if name not in chosen], chosen)
        parts = parts_of(counts, names)
        if _is_shared([layers[name] for name in chosen]):
            _set(plan, chosen, f"channels of {chosen[0]}", parts)
        elif chosen and parts > 1:
            _set(plan, chosen, None, parts)
    return [_entry(name, targets) for name, targets in plan.items()]


auto_set_denpendency_group_ids = auto_set_dependency_group_ids
"""The name in NNI 3.0."""


def _is_grouped(settings: PruningSettings | None) -> bool:
    """Return whether a target loses output channels by its own ratio."""
    return (
        settings is not None
        and settings.align is None
        and settings.granularity in {"default", "out_channel"}
    )


def _is_shared(layers: Sequence[LayerChannels]) -> bool:
    """Return whether two or more layers share all output channels; warn if only some are shared."""
    if len(layers) <= 1:
        return False
    if all(np.array_equal(one.units, layers[0].units) for one in layers):
        return True
    names = ", ".join(one.name for one in layers)
    _logger.warning("%s share some channels only and get no dependency_group_id", names)
    return False


def _warn_missing(missing: Sequence[LayerChannels], chosen: Sequence[str]) -> None:
    names = ", ".join(one.name for one in missing if not one.depthwise)
    if chosen and names:
        _logger.warning(
            "channels of %s stay for %s, which config_list does not prune", ", ".join(chosen), names
        )


def _set(plan: Plan, names: Sequence[str], group: str | None, parts: int) -> None:
    """Set group and blocks of weights in a plan where not given; raise if settings differ."""
    first = plan[names[0]]["weight"]
    for name in names:
        settings = plan[name]["weight"]
        if group is not None and settings != first:
            raise ConfigListError(
                "config_list",
                f"has different settings for {names[0]} and {name}, whose outputs have the same "
                "channels; give them the same, or use mode='dependency_aware'",
            )
        plan[name]["weight"] = replace(
            settings,
            dependency_group_id=settings.dependency_group_id or group,
            internal_metric_block=settings.internal_metric_block or (parts if parts > 1 else None),
        )


def _entry(name: str, targets: Mapping[str, PruningSettings]) -> dict[str, object]:
    return {
        "op_names": [name],
        "target_names": list(targets),
        "target_settings": {target: _listed(one) for target, one in targets.items()},
    }


def _listed(settings: PruningSettings) -> dict[str, object]:
    """Return settings as an entry has them, without those that are None."""
    found = {key: value for key, value in asdict(settings).items() if value is not None}
    if isinstance(settings.granularity, tuple):
        found["granularity"] = list(settings.granularity)
    if settings.align is not None:
        align = {**found["align"], "dims": list(settings.align.dims)}
        found["align"] = {key: value for key, value in align.items() if value is not None}
    return found
