"""Torch module of an architecture."""

import torch
from torch import Tensor, nn

from nni.hpo.tuners.network_morphism import layers as kinds
from nni.hpo.tuners.network_morphism.layers import Layer, Shape

_CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
_NORMS = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
_POOLINGS = {1: nn.MaxPool1d, 2: nn.MaxPool2d, 3: nn.MaxPool3d}
_DROPOUTS = {1: nn.Dropout1d, 2: nn.Dropout2d, 3: nn.Dropout3d}


class GraphModule(nn.Module):
    """Untrained network of a graph.

    Args:
        layers: of the graph, in its order.
        shapes: of its nodes, see `Graph`.
    """

    def __init__(self, layers: tuple[Layer, ...], shapes: tuple[Shape, ...]) -> None:
        super().__init__()
        self._inputs = tuple(layer.inputs for layer in layers)
        self._kinds = tuple(layer.kind for layer in layers)
        self.layers = nn.ModuleList(
            _module(layer, len(shapes[layer.inputs[0]]) - 1) for layer in layers
        )

    def forward(self, batch: Tensor) -> Tensor:
        """Return `(N, classes)` for a batch `(N, channels, *spatial)`."""
        nodes = [batch]
        for module, kind, inputs in zip(self.layers, self._kinds, self._inputs, strict=True):
            tensors = [nodes[node] for node in inputs]
            if kind == kinds.CONCATENATE:
                nodes.append(torch.cat(tensors, dim=1))
            elif kind == kinds.ADD:
                nodes.append(torch.stack(tensors).sum(dim=0))
            else:
                nodes.append(module(tensors[0]))
        return nodes[-1]


class _GlobalAverage(nn.Module):
    """Global average pooling."""

    def forward(self, batch: Tensor) -> Tensor:
        """Return `(N, channels)` for a batch `(N, channels, *spatial)`."""
        return batch.flatten(2).mean(dim=2)


def _module(layer: Layer, axes: int) -> nn.Module:
    """Return the module of a layer whose input has a number of spatial axes; 0 if it is flat."""
    kind = layer.kind
    if kind == kinds.CONV:
        kernel, stride, padding = layer.window()
        channels, filters = int(layer.args[0]), layer.width
        return _CONVOLUTIONS[axes](channels, filters, kernel, stride=stride, padding=padding)
    if kind == kinds.NORM:
        return _NORMS[max(axes, 1)](int(layer.args[0]))
    if kind == kinds.POOLING:
        kernel, stride, padding = layer.window()
        return _POOLINGS[axes](kernel, stride=stride, padding=padding)
    if kind == kinds.DROPOUT:
        rate = float(layer.args[0])
        return _DROPOUTS[axes](rate) if axes else nn.Dropout(rate)
    if kind == kinds.DENSE:
        return nn.Linear(int(layer.args[0]), layer.width)
    if kind == kinds.GLOBAL_POOLING:
        return _GlobalAverage()
    plain = {kinds.RELU: nn.ReLU(), kinds.SOFTMAX: nn.Softmax(dim=1), kinds.FLATTEN: nn.Flatten()}
    return plain.get(kind, nn.Identity())
