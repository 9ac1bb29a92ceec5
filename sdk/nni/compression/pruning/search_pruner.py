"""Base of the pruners that search the sparsity of each layer by evaluating the model."""

import logging
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor, nn

from nni.compression.base.evaluator import Evaluator
from nni.compression.base.pruner import Masks, Pruner, TargetKey
from nni.compression.config.settings import Granularity
from nni.compression.masking.allocation import Scores
from nni.compression.pruning.base_algorithms import base_algorithm

_logger = logging.getLogger(__name__)

OptimizeMode = Literal["maximize", "minimize"]


class SearchPruner(Pruner):
    """Base of the pruners that search the sparsity of each layer; `base_algo` ranks within one.

    The layers of the configuration reach the sparsity of its first entry together. The search
    works on the model itself, with its wrappers, so that callbacks may hold the model.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules and one ratio for all; not changed.
        base_algo: `level`, `l1`, `l2` or `fpgm`.
        evaluator: an evaluator that trains after the search; None if `compress` gets no limits.
        granularity: blocks that are masked as one; None for those of `base_algo`.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.
        ValueError: `base_algo` is unknown.
    """

    per_entry = True

    def __init__(
        self,
        model: nn.Module | None,
        config_list: Sequence[Mapping[str, object]] | None,
        base_algo: str = "l1",
        evaluator: Evaluator | None = None,
        granularity: Granularity | None = None,
    ) -> None:
        self._algorithm = base_algorithm(base_algo)
        self.base_algo = base_algo
        self.default_granularity = granularity or self._algorithm.granularity
        self._sparsities: Mapping[str, float] = {}
        super().__init__(model, config_list, evaluator)

    @abstractmethod
    def search(self) -> None:
        """Find the masks and set them; the model is wrapped, and may be trained."""

    def collect_data(self) -> None:
        """Run the search."""
        self.search()

    def generate_masks(self) -> Masks:
        """Return the masks that the search has found."""
        return self.get_masks()

    def calculate_metrics(self) -> dict[TargetKey, Tensor]:
        """Return the metrics of the weights as they are."""
        return {key: self._algorithm.metric(blocks) for key, blocks in self.weight_blocks()}

    def masks_at(self, sparsities: Mapping[str, float]) -> Masks:
        """Return masks for sparsities of layers; what is masked stays masked.

        Args:
            sparsities: by module name; 0 for modules that are missing.

        Returns:
            Masks of all targets; those of the model stay as they are.
        """
        self._sparsities = sparsities
        masks, current = super().generate_masks(), self.get_masks()
        for name, targets in masks.items():
            for target, mask in targets.items():
                mask.mul_(current[name][target])  # a count may be rounded down
        return masks

    @property
    def target_sparsity(self) -> float:
        """Return the first layer's ratio, which all reach together; raise if there is none.

        Raises:
            ValueError: no layer has a ratio.
        """
        ratios = [
            one.sparse_ratio
            for wrapper in self._wrappers.values()
            for one in wrapper.targets.values()
            if one.align is None and one.sparse_ratio is not None
        ]
        if not ratios:
            raise ValueError("config_list must select a layer and give it a sparse_ratio")
        if len(set(ratios)) > 1:
            _logger.warning("the entries have several sparsities; %s is used for all", ratios[0])
        return ratios[0]

    def weight_sizes(self) -> dict[str, int]:
        """Return the number of weights of each layer, masked or not, by module name."""
        return {name: one.parameter("weight").numel() for name, one in self._wrappers.items()}

    def layer_sparsities(self) -> dict[str, float]:
        """Return the part of each weight that is masked, by module name."""
        found = {}
        for name, wrapper in self._wrappers.items():
            mask = wrapper.mask("weight")
            assert mask is not None  # parameters have a mask from the start
            found[name] = 1 - float(mask.double().mean())
        return found

    def snapshot(self) -> dict[str, Tensor]:
        """Return copies of all weights, buffers and masks of the wrapped model."""
        state = self.bound_model.state_dict()
        return {name: value.detach().clone() for name, value in state.items()}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Set all weights, buffers and masks of the wrapped model.

        Args:
            state: what `snapshot` returned.
        """
        with torch.no_grad():
            self.bound_model.load_state_dict(state)

    def _scores(self, key: TargetKey, metric: Tensor) -> Scores:
        found = super()._scores(key, metric)
        ratio = self._sparsities.get(key[0], 0.0)
        settings = replace(found.settings, sparse_ratio=ratio, global_group_id=None)
        return replace(found, settings=settings)


def check_mode(mode: str) -> int:
    """Return 1 for `maximize`, -1 for `minimize`; raise ValueError for any other.

    Args:
        mode: `maximize` or `minimize`.

    Raises:
        ValueError: it is another one.
    """
    if mode not in {"maximize", "minimize"}:
        raise ValueError(f"optimize_mode must be 'maximize' or 'minimize', got {mode!r}")
    return 1 if mode == "maximize" else -1
