"""Physical removal of coupled-channel units from the parameters and buffers of a model.

Parameters stay the same objects, so weights that modules share stay shared. The sizes that modules
of `torch.nn` store beside their parameters follow the new shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

from nni.compression.speedup.attention import PrunedMultiheadAttention
from nni.compression.speedup.groups import Dependencies
from nni.compression.speedup.slots import Block, Flags, Ids


class EmptyLayerError(ValueError):
    """Error: a layer would lose all of its channels.

    Examples:
        >>> from nni.compression.speedup import EmptyLayerError
        >>> print(EmptyLayerError("conv1.weight"))
        conv1.weight
    """


@dataclass
class Undo:
    """Log of replaced data and attributes of a model; `restore` reverts all, newest first."""

    tensors: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    attributes: list[tuple[nn.Module, str, Any]] = field(default_factory=list)

    def replace(self, tensor: Tensor, data: Tensor) -> None:
        """Replace the data of a parameter or buffer; record the old data."""
        self.tensors.append((tensor, tensor.data))
        tensor.data = data

    def assign(self, module: nn.Module, name: str, value: object) -> None:
        """Set an attribute that a module has; record the old value."""
        self.attributes.append((module, name, getattr(module, name)))
        setattr(module, name, value)

    def restore(self) -> None:
        """Reverse everything, newest first."""
        for tensor, data in reversed(self.tensors):
            tensor.data = data
        for module, name, value in reversed(self.attributes):
            setattr(module, name, value)
        self.tensors.clear()
        self.attributes.clear()


def keep_indices(block: Block, kept: Flags) -> Ids:
    """Return the indices of an axis that stay, by row; raise unless each row keeps as many.

    Args:
        block: Slots of the axis.
        kept: Whether each slot of the block stays; the shape of `block.ids`.

    Returns:
        Indices with the shape of the block, except for the smaller axis.

    Raises:
        ValueError: the rows would keep different numbers.
    """
    counts = kept.sum(axis=block.axis)
    if counts.size and counts.min() != counts.max():
        raise ValueError(f"rows of axis {block.axis} would keep {counts.min()} to {counts.max()}")
    order = np.argsort(~kept, axis=block.axis, kind="stable")
    return np.take(order, range(int(counts.max())), axis=block.axis)


def shrunk(tensor: Tensor, blocks: list[Block], dead: Mapping[int, Flags]) -> Tensor:
    """Return a copy of a tensor without the dead indices of its axes.

    Args:
        tensor: Parameter or buffer.
        blocks: Slots of its axes.
        dead: By axis, whether each slot of its block goes.

    Returns:
        A new contiguous tensor in the memory format of the old one.
    """
    found = tensor.detach()
    for block in sorted(blocks, key=lambda one: -len(one.rows())):  # rows first: they span axes
        if not dead[block.axis].any():
            continue
        index = torch.from_numpy(keep_indices(block, ~dead[block.axis])).to(tensor.device)
        if block.rows():
            size = [
                index.shape[axis] if axis == block.axis else width
                for axis, width in enumerate(found.shape)
            ]
            found = found.gather(block.axis, index.expand(size))
        else:
            found = found.index_select(block.axis, index.ravel())
    return found.clone()


def remove(model: nn.Module, dependencies: Dependencies, removed: Flags, undo: Undo) -> None:
    """Remove units from a model in place; raise EmptyLayerError if an axis would lose all.

    Args:
        model: The model whose dependencies were found.
        dependencies: Units of the model.
        removed: By representative: whether the unit goes.
        undo: Record that restores the model.

    Raises:
        EmptyLayerError: an axis would have no index left.
    """
    tensors: dict[str, Tensor] = dict(model.named_buffers(remove_duplicate=False))
    tensors |= dict(model.named_parameters(remove_duplicate=False))
    shapes = {id(tensor): tuple(tensor.shape) for tensor in tensors.values()}
    planned = []
    for name, blocks in dependencies.blocks.items():
        dead = {block.axis: removed[dependencies.roots[block.ids]] for block in blocks}
        for block in blocks:
            if dead[block.axis].all():
                raise EmptyLayerError(f"{name}: all {block.ids.shape[block.axis]} indices of axis "
                                      f"{block.axis} are masked; keep at least one")  # fmt: skip
        if any(flags.any() for flags in dead.values()):
            planned.append((tensors[name], blocks, dead))
    for tensor, blocks, dead in planned:
        undo.replace(tensor, shrunk(tensor, blocks, dead))
        tensor.grad = None
    for module in model.modules():
        update_sizes(module, shapes, undo)


def update_sizes(module: nn.Module, shapes: Mapping[int, tuple[int, ...]], undo: Undo) -> None:
    """Set the sizes that a module stores beside its parameters, if those have changed.

    Args:
        module: A module of the model.
        shapes: Shapes before the removal by id of the tensor.
        undo: Record of the changes.
    """
    changed = any(
        tuple(tensor.shape) != shapes.get(id(tensor), tuple(tensor.shape))
        for tensor in [*module.parameters(recurse=False), *module.buffers(recurse=False)]
    )
    if not changed:
        return
    if isinstance(module, nn.MultiheadAttention):
        _prune_heads(module, undo)
    for name, value in _sizes(module, shapes).items():
        if getattr(module, name, value) != value:
            undo.assign(module, name, value)


def _prune_heads(module: nn.MultiheadAttention, undo: Undo) -> None:
    """Set class and number of heads of an attention whose projections have shrunk."""
    fused = module.in_proj_weight is not None
    width = len(module.in_proj_weight) // 3 if fused else len(module.q_proj_weight)
    heads = width // module.head_dim
    if heads != module.num_heads:
        undo.assign(module, "__class__", PrunedMultiheadAttention)
        undo.assign(module, "num_heads", heads)
        # keeps torch from fused kernels
        undo.assign(module, "_qkv_same_embed_dim", value=False)


def _sizes(module: nn.Module, shapes: Mapping[int, tuple[int, ...]]) -> dict[str, object]:
    """Return the attributes that follow from the shapes of the parameters."""
    if isinstance(module, _ConvNd):
        return _convolution_sizes(module, shapes)
    if isinstance(module, nn.Linear):
        return {"out_features": module.weight.shape[0], "in_features": module.weight.shape[1]}
    if isinstance(module, _NormBase):
        vectors = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
        return {"num_features": vectors[0].shape[0]}
    if isinstance(module, nn.LayerNorm | nn.RMSNorm):
        return {"normalized_shape": tuple(module.weight.shape)}
    if isinstance(module, nn.GroupNorm):
        return {"num_channels": module.weight.shape[0]}
    if isinstance(module, nn.Embedding | nn.EmbeddingBag):
        return {"embedding_dim": module.weight.shape[1]}
    if isinstance(module, nn.PReLU):
        return {"num_parameters": module.weight.shape[0]}
    if isinstance(module, nn.RNNBase):
        gates = {"LSTM": 4, "GRU": 3}.get(module.mode, 1)
        width = module.get_parameter("weight_ih_l0").shape
        sizes: dict[str, object] = {"hidden_size": width[0] // gates, "input_size": width[1]}
        if module.proj_size:
            sizes["proj_size"] = module.get_parameter("weight_hh_l0").shape[1]
        return sizes
    return {}


def _convolution_sizes(module: _ConvNd, shapes: Mapping[int, tuple[int, ...]]) -> dict[str, object]:
    before, after = shapes[id(module.weight)], module.weight.shape
    groups = module.groups
    if isinstance(module, _ConvTransposeNd):
        if groups > 1 and before[0] == groups:  # depthwise: one input channel a group
            groups = after[0]
        sizes = {"in_channels": after[0], "out_channels": after[1] * groups}
    else:
        if groups > 1 and before[1] == 1:
            groups = after[0] // (before[0] // groups)
        sizes = {"in_channels": after[1] * groups, "out_channels": after[0]}
    return {**sizes, "groups": groups}
