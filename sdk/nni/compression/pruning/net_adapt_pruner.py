"""Pruner that prunes one layer more in each iteration: the one that costs the least: NetAdapt."""

import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from torch import Tensor, nn

from nni.compression.base.evaluator import Evaluator
from nni.compression.pruning.search_pruner import OptimizeMode, SearchPruner, check_mode
from nni.compression.scheduling.callbacks import (
    Finetuner,
    Scorer,
    check_callback,
    finetune,
    learn_names,
    score,
)

_logger = logging.getLogger(__name__)

_TOLERANCE: Final = 1e-9
"""Rounding error of a sum of steps: 0.05 ten times is no less than 0.5."""
_RESULT: Final = "search_result.json"


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Layer pruned to a sparsity, with the score and state dict of the model after it."""

    layer: str
    sparsity: float
    score: float
    state: Mapping[str, Tensor]


class NetAdaptPruner(SearchPruner):
    """Pruner in small steps; each step prunes the one layer that leaves the best score.

    A step removes a fixed part of the weights of all convolutions and Linear layers: those of the
    channels of one layer and of the next layer that reads them. Each layer is tried: pruned,
    fine-tuned for a short term, and evaluated. The best one keeps its masks and its weights.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules and one ratio for all; not changed.
        short_term_fine_tuner: function that trains the model in place for a short term, or an
            evaluator.
        evaluator: function of the model that returns a score, or an evaluator.
        optimize_mode: `maximize` or `minimize` the score.
        base_algo: `level`, `l1`, `l2` or `fpgm`: what is pruned in a layer.
        sparsity_per_iteration: part of all weights that a step removes, in (0, 1).
        experiment_data_dir: folder that gets `search_result.json`; None for no file.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module or holds wrappers already, or a callback is none.
        ValueError: an argument is out of range.

    Source: Yang et al., NetAdapt: Platform-Aware Neural Network Adaptation for Mobile
        Applications, 2018.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.pruning import NetAdaptPruner
        >>> model = nn.Sequential(nn.Linear(4, 10), nn.Linear(10, 2))
        >>> pruner = NetAdaptPruner(
        ...     model,
        ...     [{"op_names": ["0"], "sparse_ratio": 0.4}],
        ...     short_term_fine_tuner=lambda model: None,
        ...     evaluator=lambda model: 1.0,
        ...     sparsity_per_iteration=0.2,
        ...     experiment_data_dir=None,
        ... )
        >>> _, masks = pruner.compress()
        >>> int(masks["0"]["bias"].sum()), len(pruner.history)
        (6, 2)
    """

    op_types = frozenset({"Conv2d", "Linear"})

    def __init__(
        self,
        model: nn.Module,
        config_list: Sequence[Mapping[str, object]],
        short_term_fine_tuner: Finetuner,
        evaluator: Scorer,
        optimize_mode: OptimizeMode = "maximize",
        base_algo: str = "l1",
        sparsity_per_iteration: float = 0.05,
        experiment_data_dir: str | Path | None = "./",
    ) -> None:
        for name, value in (
            ("short_term_fine_tuner", short_term_fine_tuner),
            ("evaluator", evaluator),
        ):
            if value is None:
                raise TypeError(f"{name} is missing: each step needs it")
            check_callback(name, value)
        self._sign = check_mode(optimize_mode)
        if not 0 < sparsity_per_iteration < 1:
            raise ValueError(
                f"sparsity_per_iteration must be in (0, 1), got {sparsity_per_iteration}"
            )
        self._finetuner = short_term_fine_tuner
        self._scorer = evaluator
        self._step = sparsity_per_iteration
        self._folder = None if experiment_data_dir is None else Path(experiment_data_dir)
        self.history: list[tuple[str, float, float]] = []
        trained = evaluator if isinstance(evaluator, Evaluator) else None
        super().__init__(model, config_list, base_algo, trained)
        for one in (short_term_fine_tuner, evaluator):
            learn_names(one, model)

    def search(self) -> None:
        """Prune step by step until the sparsity or no layer is left; write the result.

        `history` has the layer, its sparsity and the score of each step.
        """
        target, step = self.target_sparsity, self._step
        sizes = _weight_sizes(self.unwrap_model())
        self.wrap_model()
        self.history = []
        sparsities = self.layer_sparsities()
        reached = removed_part(sparsities, sizes)
        while reached < target - _TOLERANCE:
            amount = int(sum(sizes.values()) * min(step, target - reached) + _TOLERANCE)
            if amount < 1:
                _logger.warning("no layer can be pruned further; %s of %s reached", reached, target)
                break
            best = self._best_candidate(sparsities, sizes, amount)
            if best is None:
                step /= 2
                continue
            self.restore(best.state)
            sparsities[best.layer] = best.sparsity
            self.history.append((best.layer, best.sparsity, self._sign * best.score))
            reached += min(step, target - reached)
            _logger.info("%s: sparsity %.4f, score %s", best.layer, best.sparsity, best.score)
        self._write_result()

    def _best_candidate(
        self, sparsities: Mapping[str, float], sizes: Mapping[str, int], amount: int
    ) -> _Candidate | None:
        start = self.snapshot()
        best: _Candidate | None = None
        for layer, sparsity in further_sparsities(sparsities, sizes, amount).items():
            self.restore(start)
            self.update_masks(self.masks_at({**sparsities, layer: sparsity}))
            finetune(self._finetuner, self.bound_model)
            found = self._sign * score(self._scorer, self.bound_model)
            if math.isnan(found):
                found = -math.inf
            if best is None or found > best.score:
                best = _Candidate(layer, sparsity, found, self.snapshot())
        self.restore(start)
        return best

    def _write_result(self) -> None:
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        config_list = [
            {"sparsity": sparsity, "op_names": [name], "op_types": [type(wrapper.module).__name__]}
            for (name, wrapper), sparsity in zip(
                self._wrappers.items(), self.layer_sparsities().values(), strict=True
            )
            if sparsity > 0
        ]
        performance = self.history[-1][2] if self.history else None
        result = {"performance": performance, "config_list": json.dumps(config_list)}
        (self._folder / _RESULT).write_text(json.dumps(result), encoding="utf-8")


def further_sparsities(
    sparsities: Mapping[str, float], sizes: Mapping[str, int], amount: int
) -> dict[str, float]:
    """Return each layer's sparsity after it alone has lost `amount` more; omit impossible ones.

    A channel of a layer takes its weights, as far as channels of the layer before are there, and
    what is left of the next layer.

    Args:
        sparsities: of the layers that may be pruned, by name.
        sizes: number of weights of all layers of the model, in its order.
        amount: number of weights to remove.

    Returns:
        New sparsities of the layers, without those that cannot lose as much.

    Examples:
        >>> further_sparsities({"a": 0.5}, {"a": 100, "b": 100}, 50)
        {'a': 0.75}
    """
    names = list(sizes)
    found = {}
    for name, sparsity in sparsities.items():
        place = names.index(name)
        before = sparsities.get(names[place - 1], 0.0) if place else 0.0
        related = sizes[name] * (1 - before)
        if place + 1 < len(names):
            following = names[place + 1]
            related += sizes[following] * (1 - sparsities.get(following, 0.0))
        if sparsity + amount / related < 1:
            found[name] = sparsity + amount / related
    return found


def removed_part(sparsities: Mapping[str, float], sizes: Mapping[str, int]) -> float:
    """Return the part of all weights that is gone if each layer reads only the one before.

    Args:
        sparsities: of the layers that are pruned, by name.
        sizes: number of weights of all layers of the model, in its order.

    Examples:
        >>> removed_part({"a": 0.5}, {"a": 100, "b": 100})
        0.5
    """
    kept, before = 0.0, 0.0
    for name, size in sizes.items():
        own = sparsities.get(name, 0.0)
        kept += size * (1 - own) * (1 - before)
        before = own
    return 1 - kept / sum(sizes.values())


def _weight_sizes(model: nn.Module) -> dict[str, int]:
    """Return the number of weights of all convolutions and Linear layers, in the model's order."""
    return {
        name: module.weight.numel()
        for name, module in model.named_modules()
        if isinstance(module, nn.Conv2d | nn.Linear)
    }
