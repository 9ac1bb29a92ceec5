"""Search for coupled-channel units that contribute nothing to the outputs of a masked model.

A unit is dead if every contraction that reads it has either weights of zero for it, or activations
that are zero, or activations that are a constant which the bias of the layer can absorb.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

from nni.compression.speedup.constants import Arrivals, Probe
from nni.compression.speedup.groups import Dependencies
from nni.compression.speedup.propagation import Sink
from nni.compression.speedup.removal import Undo
from nni.compression.speedup.slots import Block, Flags

Floats = npt.NDArray[np.float64]
_MAX_ROUNDS = 32


@dataclass(frozen=True, slots=True)
class Absorption:
    """Constants, one for each contracted index (0 for none), that a layer's bias takes over."""

    module: str
    sink: Sink
    values: Floats
    """Constant of each contracted index, 0 where there is none to absorb."""


def dead_units(model: nn.Module, dependencies: Dependencies, probe: Probe) -> Flags:
    """Return flags of the coupled-channel units that no output of a masked model depends on.

    Args:
        model: The model with its masks applied.
        dependencies: Its units.
        probe: Constants that reach the contractions.

    Returns:
        Flags by representative. Units that no contraction reads count as live.
    """
    count = len(dependencies.roots)
    read = np.zeros(count, dtype=bool)
    for sink in dependencies.sinks:
        read[dependencies.roots[sink.ids]] = True
    dead = np.zeros(count, dtype=bool)
    for _ in range(_MAX_ROUNDS):
        live = np.zeros(count, dtype=bool)
        for sink in dependencies.sinks:
            roots = dependencies.roots[sink.ids]
            arrivals = probe.arrivals.get(sink.node)
            if arrivals is None:
                live[roots] = True
                continue
            needed = ~_harmless(model, dependencies, sink, arrivals)
            live[roots[needed & _reaching(dependencies, sink, arrivals, dead)]] = True
        found = read & ~live & ~dependencies.frozen
        if np.array_equal(found, dead):
            break
        dead = found
    return dead


def _reaching(dependencies: Dependencies, sink: Sink, arrivals: Arrivals, dead: Flags) -> Flags:
    """Return which indices have a weight that is not zero towards a live output."""
    if sink.row_ids.shape[1] != arrivals.weights.shape[1]:
        found: Flags = np.logical_or.reduce(arrivals.weights, axis=1)
        return found
    alive = ~dead[dependencies.roots[sink.row_ids]]
    reaching: Flags = np.logical_or.reduce(arrivals.weights & alive, axis=1)
    return reaching


def _harmless(
    model: nn.Module, dependencies: Dependencies, sink: Sink, arrivals: Arrivals
) -> Flags:
    """Return which indices bring zero or a constant that can be absorbed."""
    if absorbing_layer(model, dependencies, sink, arrivals) is None:
        return np.equal(arrivals.constants, 0)
    return np.isfinite(arrivals.constants)


def absorbing_layer(
    model: nn.Module, dependencies: Dependencies, sink: Sink, arrivals: Arrivals
) -> nn.Linear | _ConvNd | None:
    """Return the layer of a contraction if its bias can absorb constants exactly; else None.

    That is a Linear, or a convolution without padding and groups, that runs once.
    """
    node = dependencies.graph.nodes[sink.node]
    module = model.get_submodule(node.module)
    same = [
        one for one in dependencies.sinks
        if dependencies.graph.nodes[one.node].module == node.module
    ]  # fmt: skip
    plain = isinstance(module, nn.Linear) or (
        isinstance(module, _ConvNd)
        and not isinstance(module, _ConvTransposeNd)
        and module.groups == 1
        and not arrivals.padded
    )
    owned = plain and isinstance(module.weight, nn.Parameter)
    return module if owned and len(same) == 1 else None  # type: ignore[return-value]


def absorptions(
    model: nn.Module, dependencies: Dependencies, probe: Probe, removed: Flags
) -> list[Absorption]:
    """Return the constants that removed units leave to the layers after them.

    Args:
        model: The masked model.
        dependencies: Its units.
        probe: Constants that reach the contractions.
        removed: By representative: whether the unit goes.

    Returns:
        One entry for each layer that must absorb something.
    """
    found = []
    for sink in dependencies.sinks:
        arrivals = probe.arrivals.get(sink.node)
        if arrivals is None:
            continue
        gone = removed[dependencies.roots[sink.ids]] & np.isfinite(arrivals.constants)
        values = np.where(gone, arrivals.constants, 0.0)
        values[~arrivals.weights.any(axis=1)] = 0.0
        if values.any() and absorbing_layer(model, dependencies, sink, arrivals) is not None:
            found.append(Absorption(dependencies.graph.nodes[sink.node].module, sink, values))
    return found


def absorb(
    model: nn.Module,
    dependencies: Dependencies,
    found: list[Absorption],
    undo: Undo,
) -> None:
    """Add to the layers' biases, made if missing, what constants contribute before the removal.

    Args:
        model: The masked model with its original sizes.
        dependencies: Its units; a new bias is added to the table of its parameters.
        found: What `absorptions` returned.
        undo: Record of the changes.
    """
    for one in found:
        module = model.get_submodule(one.module)
        assert isinstance(module, nn.Linear | _ConvNd)
        weight = module.weight.detach()
        matrix = weight.reshape(*weight.shape[:2], -1).sum(dim=2)
        values = torch.from_numpy(one.values).to(weight.device, weight.dtype)
        added = matrix @ values
        if module.bias is None:
            undo.assign(module, "bias", nn.Parameter(added))
            if one.sink.row_ids.shape[1]:
                dependencies.blocks[f"{one.module}.bias"] = [Block(0, one.sink.row_ids[0])]
        else:
            undo.replace(module.bias, module.bias.detach() + added)
