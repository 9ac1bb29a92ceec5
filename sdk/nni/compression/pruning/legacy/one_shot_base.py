"""Base of the pruners of NNI 1.x that prune once: `compress` returns the model."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from torch import nn

from nni.compression.base.inspection import module_infos
from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.base.pruner import Pruner
from nni.compression.pruning.channel_pruner import Mode
from nni.compression.pruning.legacy.arguments import check_ratios, shared_total, warn_once

ConfigList = Sequence[Mapping[str, object]]

CONVOLUTIONS: Final = frozenset({"Conv2d"})
"""Types that the pruners of filters take in NNI 1.x."""


class OneShotBase(Pruner):
    """Pruner whose `compress` returns the model only, and whose ratios are in (0, 1)."""

    documented: ClassVar[str]
    """Name in NNI 1.x."""
    newer: ClassVar[str]
    """Name in `nni.compression.pruning`."""

    def compress(  # type: ignore[override]  # NNI 1.x returns the model
        self, max_steps: int | None = None, max_epochs: int | None = None
    ) -> nn.Module:
        """Compute and apply the masks, fine-tune within the limits; return the wrapped model.

        Args:
            max_steps: optimizer steps of fine-tuning afterwards, if there is an evaluator.
            max_epochs: epochs of fine-tuning afterwards; none if both are None.

        Returns:
            The model, wrapped.
        """
        super().compress(max_steps, max_epochs)
        return self.bound_model

    def update_mask(self) -> None:
        """Compute and apply the masks from the data that were collected."""
        self.update_masks(self.generate_masks())

    def get_modules_wrapper(self) -> list[ModuleWrapper]:  # type: ignore[override]  # as in NNI 1.x
        """Return the wrappers as a list in model order, not by name.

        Returns:
            A list in the order of the model.
        """
        return list(self._wrappers.values())

    def _make_wrappers(
        self, model: nn.Module, config_list: ConfigList
    ) -> Mapping[str, ModuleWrapper]:
        warn_once(self.documented, f"nni.compression.pruning.{self.newer}")
        check_ratios(config_list)
        return super()._make_wrappers(model, config_list)


class SharedTotalBase(OneShotBase):
    """Pruner whose layers reach the first entry's sparsity together if `per_entry` is set."""

    per_entry: bool

    def _make_wrappers(
        self, model: nn.Module, config_list: ConfigList
    ) -> Mapping[str, ModuleWrapper]:
        if self.per_entry:
            config_list = shared_total(config_list, module_infos(model))
        return super()._make_wrappers(model, config_list)


def mode_of(dependency_aware: bool) -> Mode:  # noqa: FBT001 - the documented flag
    """Return mode `dependency_aware` if the flag of NNI 1.x is set, else `normal`.

    Args:
        dependency_aware: whether layers that depend on each other lose the same filters.
    """
    return "dependency_aware" if dependency_aware else "normal"
