"""Metrics calculators of NNI 2.x, which turn data of layers into metrics of their parts."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch import Tensor

from nni.compression.masking.metrics import channel_means, distance_sums, nonzero_shares

_EUCLIDEAN: Final = 2

Metrics = dict[str, Tensor]
"""One value for each part that is masked as one, by name of the layer."""


def rows_of(tensor: Tensor, dim: Sequence[int]) -> Tensor:
    """Return the elements of a tensor as rows, one for each index of some dimensions.

    Args:
        tensor: such as a weight.
        dim: the dimensions.

    Returns:
        Tensor of the sizes of `dim`, and one dimension of elements more.

    Examples:
        >>> import torch
        >>> rows_of(torch.arange(4.0).reshape(2, 2), [1])
        tensor([[0., 2.],
                [1., 3.]])
    """
    others = [axis for axis in range(tensor.dim()) if axis not in dim]
    return tensor.permute(*dim, *others).reshape(*(tensor.shape[axis] for axis in dim), -1)


class MetricsCalculator(ABC):
    """Base of calculators of metrics from the data of layers, by index of `dim`.

    Args:
        dim: dimensions whose indices are masked, such as 0 for output channels; None for single
            elements.

    Examples:
        >>> from nni.compression.pruning.tools import MetricsCalculator
        >>> class MaximumCalculator(MetricsCalculator):
        ...     def calculate_metrics(self, data):
        ...         return {name: one.abs().flatten(1).amax(1) for name, one in data.items()}
    """

    def __init__(self, dim: int | Sequence[int] | None = None) -> None:
        self.dim = None if dim is None else [dim] if isinstance(dim, int) else list(dim)

    @abstractmethod
    def calculate_metrics(self, data: Mapping[str, Any]) -> Metrics:
        """Return each layer's metric by name; parts with the smallest are masked first.

        Args:
            data: what a data collector returned.

        Returns:
            A tensor for each layer: of the sizes of `dim`, or of the shape of the weight.
        """

    def _as_rows(self, tensor: Tensor) -> Tensor:
        """Return the elements of each part in a last dimension, after the sizes of `dim`."""
        if self.dim is None:
            return tensor.unsqueeze(-1)
        return rows_of(tensor, self.dim)


class NormMetricsCalculator(MetricsCalculator):
    """Calculator of p-norms, by default of Euclidean norms, of the parts of tensors.

    Args:
        dim: dimensions whose indices are masked; None for single elements.
        p: order of the norm; None for 2.

    Examples:
        >>> import torch
        >>> from nni.compression.pruning.tools import NormMetricsCalculator
        >>> calculator = NormMetricsCalculator(dim=0, p=1)
        >>> calculator.calculate_metrics({"fc": torch.tensor([[1.0, -2.0], [0.0, 1.0]])})["fc"]
        tensor([3., 1.])
    """

    def __init__(self, dim: int | Sequence[int] | None = None, p: float | None = None) -> None:
        super().__init__(dim)
        self.p = 2 if p is None else p

    def calculate_metrics(self, data: Mapping[str, Any]) -> Metrics:  # noqa: D102 - see the base
        return {name: self._norm(tensor) for name, tensor in data.items()}

    def _norm(self, tensor: Tensor) -> Tensor:
        norm: Tensor = torch.linalg.vector_norm(self._as_rows(tensor), ord=self.p, dim=-1)
        return norm


class MultiDataNormMetricsCalculator(NormMetricsCalculator):
    """Calculator of p-norms, by default Euclidean ones, of the sum of each layer's tensors.

    Args:
        dim: dimensions whose indices are masked; None for single elements.
        p: order of the norm; None for 2.

    Examples:
        >>> import torch
        >>> from nni.compression.pruning.tools import MultiDataNormMetricsCalculator
        >>> calculator = MultiDataNormMetricsCalculator(dim=0, p=1)
        >>> calculator.calculate_metrics({"fc": [torch.ones(2, 3), torch.ones(2, 3)]})["fc"]
        tensor([6., 6.])
    """

    def calculate_metrics(self, data: Mapping[str, Any]) -> Metrics:  # noqa: D102 - see the base
        return super().calculate_metrics({name: sum(own) for name, own in data.items()})


class DistMetricsCalculator(MetricsCalculator):
    """Calculator of the sum of the distances of each part to all others.

    Args:
        p: order of the distance, > 0.
        dim: dimension whose indices are masked, or several.

    Raises:
        ValueError: `p` is not positive.

    Examples:
        >>> import torch
        >>> from nni.compression.pruning.tools import DistMetricsCalculator
        >>> filters = torch.tensor([[0.0], [1.0], [10.0], [0.5]])
        >>> DistMetricsCalculator(2, dim=0).calculate_metrics({"conv": filters})["conv"]
        tensor([11.5000, 10.5000, 28.5000, 10.5000])
    """

    def __init__(self, p: float, dim: int | Sequence[int]) -> None:
        if not p > 0:
            raise ValueError(f"p must be > 0, got {p}")
        super().__init__(dim)
        self.p = p

    def calculate_metrics(self, data: Mapping[str, Any]) -> Metrics:  # noqa: D102 - see the base
        return {name: self._sums(self._as_rows(tensor)) for name, tensor in data.items()}

    def _sums(self, rows: Tensor) -> Tensor:
        parts = rows.flatten(0, -2)
        if self.p == _EUCLIDEAN:
            return distance_sums(parts).reshape(rows.shape[:-1])
        return torch.cdist(parts, parts, p=self.p).sum(1).reshape(rows.shape[:-1])


class _ChannelMetricsCalculator(MetricsCalculator):
    """Base of calculators of metrics per channel, dimension 1 of activations, the only `dim`.

    Raises:
        ValueError: `dim` is another one.
    """

    def __init__(self, dim: int = 1) -> None:
        if dim != 1:
            raise ValueError(f"dim must be 1, the channels of activations, got {dim}")
        super().__init__(dim)


class APoZRankMetricsCalculator(_ChannelMetricsCalculator):
    """Calculator of each channel's share of activations that are not zero.

    Args:
        dim: dimension of the channels; 1 only.

    Raises:
        ValueError: `dim` is another one.

    Examples:
        >>> import torch
        >>> from nni.compression.pruning.tools import APoZRankMetricsCalculator
        >>> outputs = [torch.tensor([[0.0, 1.0]]), torch.tensor([[0.0, 0.0]])]
        >>> APoZRankMetricsCalculator().calculate_metrics({"fc": outputs})["fc"]
        tensor([0.0000, 0.5000])
    """

    def calculate_metrics(self, data: Mapping[str, Any]) -> Metrics:
        """Return by module the share of nonzero activations of each channel: 1 - APoZ.

        Args:
            data: lists of `(samples, channels, ...)`.
        """
        return {name: nonzero_shares(torch.cat(own)) for name, own in data.items()}


class MeanRankMetricsCalculator(_ChannelMetricsCalculator):
    """Calculator of each channel's mean activation.

    Args:
        dim: dimension of the channels; 1 only.

    Raises:
        ValueError: `dim` is another one.

    Examples:
        >>> import torch
        >>> from nni.compression.pruning.tools import MeanRankMetricsCalculator
        >>> outputs = [torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 2.0]])]
        >>> MeanRankMetricsCalculator().calculate_metrics({"fc": outputs})["fc"]
        tensor([2., 2.])
    """

    def calculate_metrics(self, data: Mapping[str, Any]) -> Metrics:
        """Return by module the mean activation of each channel.

        Args:
            data: lists of `(samples, channels, ...)`.
        """
        return {name: channel_means(torch.cat(own)) for name, own in data.items()}
