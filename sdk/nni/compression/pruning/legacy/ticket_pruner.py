"""Lottery tickets as NNI 1.x finds them: the user trains, the pruner masks and resets."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.config.settings import ConfigListError, PruningSettings
from nni.compression.pruning.legacy.arguments import check_ratios, warn_once
from nni.compression.pruning.level_pruner import LevelPruner
from nni.compression.scheduling.growth import lottery_ratio

Entry = Mapping[str, object]


class TicketPruner(LevelPruner):
    """Pruner of the smallest weights, stepwise between trainings that the user runs anew.

    `compress` returns the model without masks. For each of `get_prune_iterations()` call
    `prune_iteration_start()` and train: the first training has no masks, each further one masks
    the same part of the weights that are left.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules, ratios in (0, 1), and `prune_iterations`, equal in all entries.
        optimizer: its state is reset with the weights; None if there is none to reset.
        lr_scheduler: likewise.
        reset_weights: whether weights start again from their values now.

    Raises:
        ConfigListError: the configuration breaks a rule.

    Source: Frankle and Carbin, The Lottery Ticket Hypothesis, 2019.

    Examples:
        >>> import warnings
        >>> from torch import nn
        >>> from nni.algorithms.compression.pytorch.pruning import LotteryTicketPruner
        >>> config_list = [{"op_types": ["Linear"], "sparsity": 0.75, "prune_iterations": 2}]
        >>> with warnings.catch_warnings(action="ignore"):
        ...     pruner = LotteryTicketPruner(nn.Sequential(nn.Linear(4, 4)), config_list)
        >>> model = pruner.compress()
        >>> for _ in pruner.get_prune_iterations():
        ...     pruner.prune_iteration_start()  # train after it
        ...     print(int(model[0].weight_mask.sum()))
        16
        8
        4
    """

    def __init__(
        self,
        model: nn.Module,
        config_list: Sequence[Entry],
        optimizer: Optimizer | None = None,
        lr_scheduler: LRScheduler | None = None,
        reset_weights: bool = True,  # noqa: FBT001, FBT002 - the documented signature
    ) -> None:
        warn_once("LotteryTicketPruner", "nni.compression.pruning.LotteryTicketPruner")
        self.prune_iterations = _common_iterations(config_list)
        self.reset_weights = reset_weights
        self._started = 0
        self._initial = copy.deepcopy(model.state_dict())
        self._trained: list[tuple[Any, Any]] = [
            (one, copy.deepcopy(one.state_dict()))
            for one in (optimizer, lr_scheduler)
            if one is not None
        ]
        super().__init__(model, config_list)

    def compress(self) -> nn.Module:  # type: ignore[override]  # NNI 1.x returns the model
        """Return the model, wrapped and without masks.

        Returns:
            The model.
        """
        return self.wrap_model()

    def get_prune_iterations(self) -> range:
        """Return the numbers of all trainings; the first one is without masks."""
        return range(self.prune_iterations + 1)

    def prune_iteration_start(self) -> None:
        """Prepare the next training: after the first, mask more and reset weights, optimizer.

        Raises:
            RuntimeError: all trainings were started before.
        """
        if self._started > self.prune_iterations:
            raise RuntimeError(
                f"prune_iteration_start was called {self._started} times, prune_iterations + 1; "
                "build a new pruner to prune more"
            )
        if self._started > 0:
            self.update_masks(self.generate_masks())
            if self.reset_weights:
                self._reset()
        self._started += 1

    def _reset(self) -> None:
        self.load_model_state_dict(self._initial)
        for one, state in self._trained:
            one.load_state_dict(copy.deepcopy(state))

    def _settings(self, settings: PruningSettings) -> PruningSettings:
        if settings.sparse_ratio is None:
            return settings
        ratio = lottery_ratio(settings.sparse_ratio, self._started, self.prune_iterations)
        return replace(settings, sparse_ratio=ratio)

    def _make_wrappers(
        self, model: nn.Module, config_list: Sequence[Entry]
    ) -> Mapping[str, ModuleWrapper]:
        check_ratios(config_list)
        known = [
            {key: value for key, value in entry.items() if key != "prune_iterations"}
            for entry in config_list
        ]
        return super()._make_wrappers(model, known)


def _common_iterations(config_list: Sequence[Entry]) -> int:
    """Return `prune_iterations`; raise ConfigListError unless all entries share it."""
    found = [entry.get("prune_iterations") for entry in config_list if not entry.get("exclude")]
    wrong = [one for one in found if isinstance(one, bool) or not isinstance(one, int) or one < 1]
    if wrong or len(set(found)) != 1:
        raise ConfigListError(
            "config_list", f"needs one prune_iterations >= 1 for all entries, got {found}"
        )
    number = found[0]
    assert isinstance(number, int)  # others are refused above
    return number
