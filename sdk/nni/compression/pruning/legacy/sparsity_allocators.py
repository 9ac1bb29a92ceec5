"""Sparsity allocators of NNI 2.x, which turn metrics into masks."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace

from torch import Tensor, nn

from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.base.pruner import Masks, Pruner
from nni.compression.config.settings import ConfigListError
from nni.compression.masking.allocation import Scores, allocate
from nni.compression.masking.shared_channels import ChannelScores, shared_channels
from nni.compression.pruning.channel_pruner import dependent_layers
from nni.compression.pruning.legacy.metrics_calculators import rows_of
from nni.compression.speedup.graph import Inputs


class SparsityAllocator(ABC):
    """Base of allocators, which choose the masks of layers by their metrics.

    Args:
        pruner: the pruner, whose wrappers have ratios and present masks.
        dim: dimensions whose indices are masked, such as 0 for output channels; None for single
            elements.

    Examples:
        >>> import torch
        >>> from nni.compression.pruning.tools import SparsityAllocator
        >>> class AllAllocator(SparsityAllocator):
        ...     def generate_sparsity(self, metrics):
        ...         kept = {name: torch.zeros_like(one) for name, one in metrics.items()}
        ...         return self.expanded(kept)
    """

    def __init__(self, pruner: Pruner, dim: int | Sequence[int] | None = None) -> None:
        self.pruner = pruner
        self.dim = None if dim is None else [dim] if isinstance(dim, int) else list(dim)

    @abstractmethod
    def generate_sparsity(self, metrics: Mapping[str, Tensor]) -> Masks:
        """Return masks of weights and biases by layer, chosen by their metrics.

        Args:
            metrics: what a metrics calculator returned.

        Returns:
            Masks by module and target name.
        """

    def expanded(self, kept: Mapping[str, Tensor]) -> Masks:
        """Return masks of weights, and of the biases whose shape is that of the metric.

        Args:
            kept: 0 and 1, of the shapes of the metrics, by name of the layer.

        Returns:
            Masks by module and target name.
        """
        found: Masks = {}
        for name, one in kept.items():
            weight = self._wrapper(name).parameter("weight")
            found[name] = {"weight": self._wide(one, weight).to(weight.dtype)}
            bias = getattr(self._wrapper(name).module, "bias", None)
            if isinstance(bias, Tensor) and bias.shape == one.shape:
                found[name]["bias"] = one.to(bias.dtype)
        return found

    def scores(self, name: str, metric: Tensor) -> Scores:
        """Return a layer's metric with its kept parts, number of elements and settings.

        Args:
            name: name of the layer.
            metric: its metric.
        """
        mask = self._wrapper(name).mask("weight")
        assert mask is not None  # weights have a mask from the start
        settings = self._wrapper(name).targets["weight"]
        return Scores(metric, self._narrow(mask), mask.numel(), settings)

    def _wrapper(self, name: str) -> ModuleWrapper:
        found: ModuleWrapper = self.pruner.get_modules_wrapper()[name]
        return found

    def _narrow(self, mask: Tensor) -> Tensor:
        """Return a bool tensor of the parts of a mask that are not zero as a whole."""
        if self.dim is None:
            return mask.bool()
        return rows_of(mask, self.dim).bool().any(-1)

    def _wide(self, reduced: Tensor, weight: nn.Parameter) -> Tensor:
        """Expand a mask of the parts along `dim` to the shape of a weight."""
        if self.dim is None:
            return reduced
        shape = [size if axis in self.dim else 1 for axis, size in enumerate(weight.shape)]
        ordered = reduced.permute([self.dim.index(axis) for axis in sorted(self.dim)])
        return ordered.reshape(shape).expand_as(weight).clone()


class NormalSparsityAllocator(SparsityAllocator):
    """Allocator that gives each layer its own ratio.

    Args:
        pruner: the pruner, whose wrappers have ratios and present masks.
        dim: dimensions whose indices are masked; None for single elements.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.pruning import LevelPruner
        >>> from nni.compression.pruning.tools import NormalSparsityAllocator
        >>> config_list = [{"op_types": ["Linear"], "sparsity": 0.5}]
        >>> pruner = LevelPruner(nn.Sequential(nn.Linear(1, 2)), config_list)
        >>> metrics = {"0": torch.tensor([2.0, 1.0])}
        >>> NormalSparsityAllocator(pruner, dim=0).generate_sparsity(metrics)["0"]["bias"]
        tensor([1., 0.])
    """

    def generate_sparsity(self, metrics: Mapping[str, Tensor]) -> Masks:  # noqa: D102 - see the base
        scores = {name: self._alone(self.scores(name, one)) for name, one in metrics.items()}
        return self.expanded(allocate(scores))

    @staticmethod
    def _alone(scores: Scores) -> Scores:
        settings = replace(scores.settings, global_group_id=None, dependency_group_id=None)
        return replace(scores, settings=settings)


class GlobalSparsityAllocator(SparsityAllocator):
    """Allocator that ranks the layers of an entry together, to its `total_sparsity`.

    Args:
        pruner: the pruner, whose wrappers have ratios and present masks.
        dim: dimensions whose indices are masked; None for single elements.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.pruning import LevelPruner
        >>> from nni.compression.pruning.tools import GlobalSparsityAllocator
        >>> config_list = [{"op_types": ["Linear"], "total_sparsity": 0.5}]
        >>> model = nn.Sequential(nn.Linear(1, 2), nn.Linear(1, 2))
        >>> allocator = GlobalSparsityAllocator(LevelPruner(model, config_list), dim=0)
        >>> metrics = {"0": torch.tensor([1.0, 4.0]), "1": torch.tensor([2.0, 3.0])}
        >>> allocator.generate_sparsity(metrics)["0"]["bias"]
        tensor([0., 1.])
    """

    def generate_sparsity(self, metrics: Mapping[str, Tensor]) -> Masks:
        """Return masks of all layers; raise ConfigListError without total_sparsity.

        Args:
            metrics: what a metrics calculator returned.

        Returns:
            Masks by module and target name.

        Raises:
            ConfigListError: the entry of a layer has no `total_sparsity`.
        """
        scores = {name: self.scores(name, one) for name, one in metrics.items()}
        for name, one in scores.items():
            if one.settings.global_group_id is None:
                raise ConfigListError(
                    f"config_list: entry of {name}",
                    "has no total_sparsity, which its layers reach together; give it instead of "
                    "sparsity",
                )
        return self.expanded(allocate(scores))


class Conv2dDependencyAwareAllocator(SparsityAllocator):
    """Allocator that masks the same channels in layers that depend on each other.

    Args:
        pruner: the pruner, whose wrappers have ratios and present masks.
        dim: dimension of the output channels; 0 only.
        dummy_input: inputs of one run of the model.

    Raises:
        ValueError: `dim` is another one, or there is no `dummy_input`.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.pruning import LevelPruner
        >>> from nni.compression.pruning.tools import Conv2dDependencyAwareAllocator
        >>> config_list = [{"op_types": ["Conv2d"], "sparsity": 0.5}]
        >>> pruner = LevelPruner(nn.Sequential(nn.Conv2d(1, 2, 1)), config_list)
        >>> allocator = Conv2dDependencyAwareAllocator(pruner, 0, torch.ones(1, 1, 2, 2))
        >>> allocator.generate_sparsity({"0": torch.tensor([2.0, 1.0])})["0"]["bias"]
        tensor([1., 0.])
    """

    def __init__(self, pruner: Pruner, dim: int = 0, dummy_input: Inputs | None = None) -> None:
        if dim != 0:
            raise ValueError(f"dim must be 0, got {dim}")
        if dummy_input is None:
            raise ValueError("dummy_input must be inputs of the model, got None")
        super().__init__(pruner, dim)
        was_wrapped = pruner.is_wrapped
        self._sets = dependent_layers(pruner.unwrap_model(), dummy_input)
        if was_wrapped:
            pruner.wrap_model()

    def generate_sparsity(self, metrics: Mapping[str, Tensor]) -> Masks:  # noqa: D102 - see the base
        kept: dict[str, Tensor] = {}
        for one in self._sets:
            members = [layer for layer in one.layers if layer.name in metrics]
            if not members:
                continue
            scores = [self.scores(layer.name, metrics[layer.name]) for layer in members]
            channels = [
                ChannelScores(own.metric, own.kept, layer.units, own.settings.sparse_ratio or 0.0)
                for own, layer in zip(scores, members, strict=True)
            ]
            whole = len(members) == len([layer for layer in one.layers if not layer.depthwise])
            found = shared_channels(channels, one.parts, None if whole else 0.0)
            kept |= {layer.name: own for layer, own in zip(members, found, strict=True)}
        return self.expanded(kept)
