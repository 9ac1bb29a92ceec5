"""Pruner of NNI 2.x that is put together from tools: collector, calculator and allocator."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from nni.compression.base.pruner import Masks, Pruner, TargetKey
from nni.compression.pruning.legacy.data_collectors import DataCollector
from nni.compression.pruning.legacy.metrics_calculators import MetricsCalculator
from nni.compression.pruning.legacy.sparsity_allocators import SparsityAllocator


class ToolPruner(Pruner):
    """Base of the pruners that `reset_tools` puts together: `BasicPruner` of NNI 2.x.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 2.x or 3.0; not changed.

    Attributes:
        data_collector: set by `reset_tools`.
        metrics_calculator: set by `reset_tools`.
        sparsity_allocator: set by `reset_tools`.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.

    Examples:
        >>> from torch import nn
        >>> from nni.compression.pruning.tools import (
        ...     BasicPruner, NormalSparsityAllocator, NormMetricsCalculator, WeightDataCollector
        ... )
        >>> class L1Pruner(BasicPruner):
        ...     def reset_tools(self):
        ...         self.data_collector = WeightDataCollector(self)
        ...         self.metrics_calculator = NormMetricsCalculator(dim=0, p=1)
        ...         self.sparsity_allocator = NormalSparsityAllocator(self, dim=0)
        >>> config_list = [{"op_types": ["Linear"], "sparsity": 0.5}]
        >>> _, masks = L1Pruner(nn.Sequential(nn.Linear(3, 4)), config_list).compress()
        >>> int(masks["0"]["bias"].sum())
        2
    """

    data_collector: DataCollector
    metrics_calculator: MetricsCalculator
    sparsity_allocator: SparsityAllocator

    def __init__(
        self,
        model: nn.Module | None,
        config_list: Sequence[Mapping[str, object]] | None,
    ) -> None:
        self._data: Mapping[str, Any] = {}
        super().__init__(model, config_list)

    @abstractmethod
    def reset_tools(self) -> None:
        """Set the three tools for the model that is wrapped now."""

    def reset(  # noqa: D102 - see the base
        self,
        model: nn.Module | None,
        config_list: Sequence[Mapping[str, object]] | None,
    ) -> None:
        super().reset(model, config_list)
        self.reset_tools()

    def collect_data(self) -> None:
        """Collect the data that the metrics are calculated from."""
        self.data_collector.reset()
        self._data = self.data_collector.collect()

    def calculate_metrics(self) -> dict[TargetKey, Tensor]:
        """Return the metrics of the weights, by module and target name."""
        found = self.metrics_calculator.calculate_metrics(self._data)
        return {(name, "weight"): metric for name, metric in found.items()}

    def generate_masks(self) -> Masks:
        """Return the masks that the allocator chooses; others stay as they are.

        Returns:
            Masks by module and target name.
        """
        metrics = {name: metric for (name, _), metric in self.calculate_metrics().items()}
        masks = self.get_masks()
        for name, targets in self.sparsity_allocator.generate_sparsity(metrics).items():
            masks[name] |= {key: mask for key, mask in targets.items() if key in masks[name]}
        return masks
