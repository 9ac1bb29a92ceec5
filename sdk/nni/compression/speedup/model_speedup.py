"""`ModelSpeedup`: from masks to a smaller model."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from nni.compression.speedup.constants import Probe, probe_constants
from nni.compression.speedup.deadline import Deadline
from nni.compression.speedup.graph import Inputs
from nni.compression.speedup.groups import Dependencies, find_dependencies
from nni.compression.speedup.liveness import absorb, absorptions, dead_units
from nni.compression.speedup.removal import EmptyLayerError
from nni.compression.speedup.report import KeptChannels, SpeedupReport
from nni.compression.speedup.running import tensors_in
from nni.compression.speedup.shrinking import shrink
from nni.compression.speedup.slots import Flags

Masks = Mapping[str, Mapping[str, Tensor | None]]
"""Masks of 0 and 1 by path of the module and name of its parameter."""


def load_masks(masks: Masks | str | Path, map_location: object = None) -> Masks:
    """Return masks as they are, or from a file, as tensors only; raise if it is missing.

    Args:
        masks: The masks, or the path of a file that `torch.save` wrote. Only tensors are read from
            a file; it cannot run code.
        map_location: Device for tensors from a file.

    Returns:
        Masks by module and parameter.

    Raises:
        FileNotFoundError: the file does not exist.
    """
    if isinstance(masks, Mapping):
        return masks
    path = Path(masks)
    if not path.is_file():
        raise FileNotFoundError(f"masks_file {path} does not exist; pass masks or a file of them")
    loaded: Masks = torch.load(path, map_location=map_location, weights_only=True)  # type: ignore[arg-type]
    return loaded


def refuse_wrapped(model: nn.Module) -> None:
    """Raise ValueError if a pruner has wrapped modules of a model.

    Args:
        model: The model.

    Raises:
        ValueError: a module is wrapped.
    """
    for name, module in model.named_modules():
        wrapped = [one for one, _ in module.named_buffers(recurse=False) if one.endswith("_mask")]
        if wrapped and isinstance(getattr(module, "module", None), nn.Module):
            raise ValueError(f"module {name} is wrapped by a pruner; call unwrap_model() before")


def apply_masks(model: nn.Module, masks: Masks) -> None:
    """Multiply parameters by their masks in place; raise ValueError unless all masks fit.

    Args:
        model: The model, without wrappers of a pruner.
        masks: Masks by module and parameter; None means no mask.

    Raises:
        ValueError: a module, a parameter or a shape does not fit, or the model is wrapped.
    """
    refuse_wrapped(model)
    modules = dict(model.named_modules())
    for name, own in masks.items():
        if name not in modules:
            raise ValueError(f"masks name the module {name!r}, which the model does not have")
        for target, mask in own.items():
            tensor = getattr(modules[name], target, None)
            if mask is None:
                continue
            if not isinstance(tensor, Tensor) or tensor.shape != mask.shape:
                shape = tuple(tensor.shape) if isinstance(tensor, Tensor) else None
                raise ValueError(
                    f"mask of {name}.{target} has the shape {tuple(mask.shape)}, but the parameter "
                    f"has {shape}"
                )
            with torch.no_grad():
                tensor.mul_(mask.to(tensor.device, tensor.dtype))


class ModelSpeedup:
    """Removal of masked channels from a model, in place; what cannot go stays masked.

    The model is changed in place: parameters become smaller, modules stay. What cannot be removed
    stays masked and is listed in `report`. Outputs keep their sizes. The result computes the same
    function as the masked model: weights and biases times their masks, and batch norms silent
    on channels that arrive masked.

    Args:
        model: The model, without wrappers of a pruner.
        dummy_input: A tensor, a list or tuple of inputs, or a dict by name.
        masks_or_file: Masks by module and parameter, or the path of a file that `torch.save` wrote.
        map_location: Device for masks from a file.
        batch_dim: Axis of the batch; only 0 is accepted.
        batch_size: Kept for NNI 3.0, where it sized a probe; must be above 1. Here the batch of
            `dummy_input` is used.
        masks_file: Name of `masks_or_file` in NNI 2.x.
        confidence: Name of `batch_size` in NNI 2.x.
        allow_norm_change: Whether to shrink axes that a LayerNorm or GroupNorm normalises.
        time_limit_s: Limit in seconds for planning; None means no limit. What was not planned by
            then stays masked, and the report lists it.

    Raises:
        ValueError: an argument is out of range, or masks do not fit the model.
        TypeError: no masks are given.
        FileNotFoundError: the file of masks does not exist.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.speedup import ModelSpeedup
        >>> model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 1))
        >>> mask = torch.ones_like(model[0].weight)
        >>> mask[:2] = 0
        >>> masks = {"0": {"weight": mask, "bias": mask[:, 0, 0, 0]}}
        >>> speedup = ModelSpeedup(model, torch.zeros(1, 1, 8, 8), masks)
        >>> speedup.speedup_model()[0]
        Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1))
        >>> speedup.report.error < 1e-4
        True
    """

    def __init__(  # noqa: PLR0913 - the signatures of NNI 2.x and 3.0
        self,
        model: nn.Module,
        dummy_input: Inputs,
        masks_or_file: Masks | str | Path | None = None,
        map_location: object = None,
        batch_dim: int = 0,
        batch_size: int = 8,
        *,
        masks_file: Masks | str | Path | None = None,
        confidence: int | None = None,
        allow_norm_change: bool = False,
        time_limit_s: float | None = 300.0,
    ) -> None:
        masks = masks_or_file if masks_or_file is not None else masks_file
        if masks is None:
            raise TypeError("ModelSpeedup needs masks_or_file: masks or the path of their file")
        probe = batch_size if confidence is None else confidence
        if probe <= 1:
            raise ValueError(f"batch_size (confidence) must be above 1, but is {probe}")
        if batch_dim != 0:
            raise ValueError(f"batch_dim must be 0, but is {batch_dim}; transpose the inputs")
        self._masks = load_masks(masks, map_location)
        self._model = model
        self._inputs = dummy_input
        self._allow_norm_change = allow_norm_change
        Deadline(time_limit_s)  # raises for a wrong limit
        self._time_limit_s = time_limit_s
        self.report: SpeedupReport | None = None
        """Result of `speedup_model`, None before."""

    def speedup_model(self) -> nn.Module:
        """Apply masks, remove what no output needs, in place; set the report; return the model.

        Returns:
            The given model, which is smaller now.

        Raises:
            EmptyLayerError: all channels of a layer are masked.
            ValueError: masks do not fit the model, or it is wrapped by a pruner.
        """
        model, inputs = self._model, self._inputs
        if not tensors_in(inputs):
            raise ValueError("dummy_input holds no tensor; pass the inputs of model.forward")
        deadline = Deadline(self._time_limit_s)
        start = time.process_time()
        self._refuse_empty_layers()
        apply_masks(model, self._masks)
        before = {name: tuple(one.shape) for name, one in model.state_dict().items()}
        count = sum(one.numel() for one in model.parameters())
        dependencies = find_dependencies(
            model,
            inputs,
            allow_norm_change=self._allow_norm_change,
            deadline=deadline,
        )
        probe = self._probe(dependencies)
        dead = dead_units(model, dependencies, probe)
        planned = time.process_time() - start
        result = shrink(
            model,
            inputs,
            dependencies,
            dead,
            lambda _: nullcontext(),
            lambda removed, undo: absorb(
                model, dependencies, absorptions(model, dependencies, probe, removed), undo
            ),
            deadline,
        )
        after = {name: tuple(one.shape) for name, one in model.state_dict().items()}
        self.report = SpeedupReport(
            error=result.error,
            parameters_before=count,
            parameters_after=sum(one.numel() for one in model.parameters()),
            shapes={name: (old, after[name]) for name, old in before.items() if old != after[name]},
            kept=self._kept(dependencies, dead, result.removed),
            changed_norms=dependencies.changed_norms,
            changes=result.changes,
            planning_s=planned,
        )
        return model

    def _probe(self, dependencies: Dependencies) -> Probe:
        """Return the constants of the masked model; freeze all units if it cannot be probed."""
        wanted = {sink.node for sink in dependencies.sinks}
        try:
            return probe_constants(self._model, self._inputs, dependencies.graph, wanted)
        except Exception as error:  # noqa: BLE001 - code of users raises anything, here for NaN
            reason = f"the model does not run with unknown inputs: {error}"
            dependencies.freeze(dependencies.free(), reason)
            return Probe()

    def _refuse_empty_layers(self) -> None:
        for name, own in self._masks.items():
            mask = own.get("weight")
            if mask is not None and not mask.any():
                raise EmptyLayerError(f"{name}: its whole weight is masked; keep one channel")

    def _kept(
        self, dependencies: Dependencies, dead: Flags, removed: Flags
    ) -> tuple[KeptChannels, ...]:
        """Return number and reason of the masked output channels that stay, for each layer."""
        found = []
        for name, own in self._masks.items():
            mask = own.get("weight")
            block = next(
                (one for one in dependencies.blocks.get(f"{name}.weight", []) if one.axis == 0),
                None,
            )
            if mask is None or block is None:
                continue
            empty = ~mask.reshape(len(mask), -1).any(dim=1).numpy(force=True)
            roots = dependencies.roots[block.ids.ravel()]
            stays = empty & ~removed[roots]
            if stays.any():
                first = int(roots[np.flatnonzero(stays)[0]])
                reason = _reason(dependencies, dead, first)
                found.append(KeptChannels(name, int(stays.sum()), reason))
        return tuple(found)


def _reason(dependencies: Dependencies, dead: Flags, unit: int) -> str:
    """Return the reason why a masked coupled-channel unit was not removed."""
    if dependencies.frozen[unit]:
        return dependencies.causes[unit]
    if dead[unit]:
        return "groups of channels would become unequal"
    for sink in dependencies.sinks:
        if unit in dependencies.roots[sink.ids]:
            node = dependencies.graph.nodes[sink.node]
            return f"it is still read, masked or not ({node.describe()})"
    return "no later layer reads it"
