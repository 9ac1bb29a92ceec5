"""Pruner of single elements by magnitude."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Final, Literal

from torch import Tensor, nn

from nni.compression.base.arguments import check_count
from nni.compression.base.evaluator import Evaluator
from nni.compression.base.pruner import Pruner, TargetKey
from nni.compression.config.settings import ConfigListError, PruningSettings
from nni.compression.masking.allocation import Scores
from nni.compression.masking.balance import balanced_kept, tile_sizes
from nni.compression.masking.metrics import norms

LevelMode = Literal["normal", "balance"]

_SPARSE_CORES: Final = 4
"""Neighbours of which sparse tensor cores compute two."""
_BALANCED: Final = PruningSettings()
"""Settings besides the ratio that keep all tiles equal: the defaults."""
_FREE: Final = ("sparse_ratio", "apply_method")
"""Settings that a balanced target may have."""


class LevelPruner(Pruner):
    """Pruner of the elements of smallest absolute value, in each weight or each tile of it.

    It masks no bias, unless a bias has a ratio of its own. With a `granularity` the blocks of
    smallest L1 norm are masked.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules and ratios; every module with a weight can be pruned.
        evaluator: trains the model after the masks are set; None if `compress` gets no limits.
        mode: `normal`: each weight reaches its ratio; `balance`: each tile of each weight does.
        balance_gran: sizes of a tile in the last dimensions, for `balance`; None for four
            neighbours along the inputs, which with a ratio of 0.5 is the pattern 2:4 that sparse
            tensor cores compute.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.
        ValueError: `mode` is another one, or `balance_gran` is wrong.

    Source: Han et al., Learning both Weights and Connections for Efficient Neural Networks, 2015;
        for `balance`: Mishra et al., Accelerating Sparse Deep Neural Networks, 2021, section 3.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.pruning import LevelPruner
        >>> model = nn.Sequential(nn.Linear(4, 2))
        >>> pruner = LevelPruner(model, [{"op_types": ["Linear"], "sparse_ratio": 0.75}])
        >>> model, masks = pruner.compress()
        >>> int(masks["0"]["weight"].sum())
        2
        >>> model = nn.Sequential(nn.Linear(8, 2))
        >>> config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]
        >>> _, masks = LevelPruner(model, config_list, mode="balance").compress()
        >>> masks["0"]["weight"].reshape(2, 2, 4).sum(-1)
        tensor([[2., 2.],
                [2., 2.]])
    """

    def __init__(
        self,
        model: nn.Module | None,
        config_list: Sequence[Mapping[str, object]] | None,
        evaluator: Evaluator | None = None,
        mode: LevelMode = "normal",
        balance_gran: Sequence[int] | None = None,
    ) -> None:
        if mode not in {"normal", "balance"}:
            raise ValueError(
                f"mode must be 'normal' or 'balance', got {mode!r}; single elements have no "
                "channels that depend on each other: choose L1NormPruner"
            )
        if balance_gran is not None and mode == "normal":
            raise ValueError("balance_gran needs mode='balance'")
        for size in balance_gran or ():
            check_count("balance_gran", size)
        self.mode: LevelMode = mode
        self.balance_gran = None if balance_gran is None else tuple(balance_gran)
        super().__init__(model, config_list, evaluator)

    def calculate_metrics(self) -> dict[TargetKey, Tensor]:  # noqa: D102 - see the base
        return {key: norms(blocks, 1) for key, blocks in self.weight_blocks()}

    def _check_targets(self) -> None:
        super()._check_targets()
        if self.mode == "normal":
            return
        for name, target in self.own_targets():
            wrapper = self._wrappers[name]
            where = f"config_list target {target} of {name}:"
            settings = wrapper.targets[target]
            for key in (one.name for one in fields(settings) if one.name not in _FREE):
                if getattr(settings, key) != getattr(_BALANCED, key):
                    raise ConfigListError(
                        where, f"has {key}; mode 'balance' needs a sparse_ratio alone"
                    )
            try:
                self._tile(wrapper.parameter(target).shape)
            except ValueError as error:
                raise ConfigListError(where, f"cannot be balanced: {error}; exclude it") from error

    def _allocate(self, scores: Mapping[TargetKey, Scores]) -> dict[TargetKey, Tensor]:
        if self.mode == "normal":
            return super()._allocate(scores)
        return {
            key: balanced_kept(
                one.metric,
                one.kept,
                self._tile(one.metric.shape),
                one.settings.sparse_ratio or 0.0,
            )
            for key, one in scores.items()
        }

    def _tile(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the sizes of a tile of a weight: the given ones, or 4 along the inputs."""
        gran = self.balance_gran
        if gran is None:  # along the inputs, which are the second dimension
            gran = (_SPARSE_CORES, *(1,) * max(len(shape) - 2, 0))
        return tile_sizes(shape, gran)
