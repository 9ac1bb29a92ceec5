"""Pruners with the same arguments in NNI 1.x, where `compress` returned the model only."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.base.pruner import Pruner
from nni.compression.pruning.amc_pruner import AMCPruner
from nni.compression.pruning.legacy.arguments import warn_once
from nni.compression.pruning.net_adapt_pruner import NetAdaptPruner
from nni.compression.pruning.sensitivity_pruner import SensitivityPruner
from nni.compression.pruning.transformer_head_pruner import TransformerHeadPruner


class _ReturnsModel(Pruner):
    """Deprecated pruner of NNI 1.x: `compress` returns the model only; the class warns once."""

    def compress(self, *args: Any, **kwargs: Any) -> nn.Module:  # type: ignore[override]  # noqa: ANN401 - as in NNI 1.x
        """Prune the model; return it, wrapped.

        Args:
            args: those of the newer class.
            kwargs: likewise.

        Returns:
            The model, wrapped.
        """
        super().compress(*args, **kwargs)
        return self.bound_model

    def _make_wrappers(
        self, model: nn.Module, config_list: Sequence[Mapping[str, object]]
    ) -> Mapping[str, ModuleWrapper]:
        name = type(self).__name__.removeprefix("Legacy")
        warn_once(name, f"nni.compression.pruning.{name}")
        return super()._make_wrappers(model, config_list)


class LegacyAMCPruner(_ReturnsModel, AMCPruner):
    """`AMCPruner` whose `compress` returns the model."""


class LegacyNetAdaptPruner(_ReturnsModel, NetAdaptPruner):
    """`NetAdaptPruner` whose `compress` returns the model."""


class LegacySensitivityPruner(_ReturnsModel, SensitivityPruner):  # type: ignore[misc]  # as above
    """`SensitivityPruner` whose `compress` returns the model."""


class LegacyTransformerHeadPruner(_ReturnsModel, TransformerHeadPruner):  # type: ignore[misc]  # as above
    """`TransformerHeadPruner` whose `compress` returns the model."""
