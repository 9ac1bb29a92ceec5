"""Pruners of NNI 2.x that prune in several iterations, with files for each."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from nni.compression.base.masked_state import masked_state
from nni.compression.pruning.named_pruners import make_pruner, with_evaluator
from nni.compression.scheduling.callbacks import Finetuner, Scorer
from nni.compression.scheduling.growth_generators import (
    AGPTaskGenerator,
    GrowthTaskGenerator,
    LinearTaskGenerator,
)
from nni.compression.scheduling.pruning_scheduler import PruningScheduler


class IterativePruner(PruningScheduler):
    """Base of the pruners that prune in several iterations.

    `compress` runs all iterations and returns nothing; `get_best_result` has the result.
    """

    def export_model(self, model_path: str | Path, mask_path: str | Path | None = None) -> None:
        """Write the best result's masked state dict, and its masks; raise if there is none.

        Args:
            model_path: file of the state dict; after a speedup it is that of the smaller model.
            mask_path: file of the masks that the model still needs; None for no file.

        Raises:
            RuntimeError: there is no result; call `compress` first.
        """
        best = self.get_best_result()
        if best is None:
            raise RuntimeError("there is no result to export; call compress() first")
        _, model, masks, _, _ = best
        torch.save(masked_state(model, masks), model_path)
        if mask_path is not None:
            torch.save(masks, mask_path)


class GrowthPruner(IterativePruner):
    """Base of the iterative pruners whose ratios grow, with a basic pruner given by name.

    Args:
        model: an unwrapped model; it is not changed.
        config_list: entries of NNI 3.0 or 2.x; not changed.
        pruning_algorithm: `level`, `l1`, `l2`, `fpgm`, `slim`, `apoz`, `mean_activation`,
            `taylorfo` or `admm`: what prunes in each iteration.
        total_iteration: number of iterations, >= 1; the last one reaches the configured ratios.
        log_dir: folder that gets a folder of results, named by the time in UTC.
        keep_intermediate_result: keep models and masks of all iterations.
        finetuner: function that trains the model in place after each pruning, or an evaluator.
        speed_up: remove masked channels in each iteration.
        dummy_input: inputs of the model, which a speedup needs.
        evaluator: function of the model that returns a score, larger is better, or an evaluator,
            which also fine-tunes and trains what `pruning_algorithm` trains; None: the best
            result is the latest.
        pruning_params: other arguments of the pruner of `pruning_algorithm`.
        reset_weight: see `PruningScheduler`.
        speedup: other name of `speed_up`.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: the model is wrapped or is no module, or an argument has another type.
        ValueError: an argument is out of range.
    """

    generator: type[GrowthTaskGenerator]
    """Generator of the tasks."""

    def __init__(  # noqa: PLR0913 - the signature of NNI 2.x
        self,
        model: nn.Module,
        config_list: Sequence[Mapping[str, object]],
        pruning_algorithm: str,
        total_iteration: int,
        log_dir: str | Path = ".",
        keep_intermediate_result: bool = False,  # noqa: FBT001, FBT002 - as in NNI 2.x
        finetuner: Finetuner | None = None,
        speed_up: bool = False,  # noqa: FBT001, FBT002 - as in NNI 2.x
        dummy_input: Any = None,  # noqa: ANN401 - inputs of a model
        evaluator: Scorer | None = None,
        pruning_params: Mapping[str, Any] | None = None,
        *,
        reset_weight: bool = False,
        speedup: bool = False,
    ) -> None:
        generator = self.generator(
            total_iteration,
            model,
            config_list,
            log_dir=log_dir,
            keep_intermediate_result=keep_intermediate_result,
        )
        super().__init__(
            make_pruner(pruning_algorithm, with_evaluator(pruning_params, evaluator)),
            generator,
            finetuner,
            speed_up or speedup,
            dummy_input,
            evaluator,
            reset_weight,
        )


class IterativeLinearPruner(GrowthPruner):
    """Pruner in N + 1 iterations, to k/N of the configured ratios for k = 0 to N.

    Args:
        model: an unwrapped model; it is not changed.
        config_list: entries of NNI 3.0 or 2.x; not changed.
        pruning_algorithm: `level`, `l1`, `l2`, `fpgm`, `slim`, `apoz`, `mean_activation`,
            `taylorfo` or `admm`: what prunes in each iteration.
        total_iteration: number of iterations, >= 1; the last one reaches the configured ratios.
        log_dir: folder that gets a folder of results, named by the time in UTC.
        keep_intermediate_result: keep models and masks of all iterations.
        finetuner: function that trains the model in place after each pruning, or an evaluator.
        speed_up: remove masked channels in each iteration.
        dummy_input: inputs of the model, which a speedup needs.
        evaluator: function of the model that returns a score, larger is better, or an evaluator,
            which also fine-tunes and trains what `pruning_algorithm` trains; None: the best
            result is the latest.
        pruning_params: other arguments of the pruner of `pruning_algorithm`.
        reset_weight: see `PruningScheduler`.
        speedup: other name of `speed_up`.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: the model is wrapped or is no module, or an argument has another type.
        ValueError: an argument is out of range.

    Examples:
        >>> import tempfile
        >>> from torch import nn
        >>> from nni.compression.pytorch.pruning import LinearPruner
        >>> model = nn.Sequential(nn.Linear(4, 10))
        >>> config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.8}]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pruner = LinearPruner(model, config_list, "l1", 3, log_dir=folder)
        ...     pruner.compress()
        ...     task_id, model, masks, _, _ = pruner.get_best_result()
        >>> task_id, int(masks["0"]["bias"].sum())
        (3, 2)
    """

    generator = LinearTaskGenerator


class IterativeAGPPruner(GrowthPruner):
    """Pruner in N + 1 iterations, to 1 - (1 - k/N)^3 of the configured ratios for k = 0 to N.

    Args:
        model: an unwrapped model; it is not changed.
        config_list: entries of NNI 3.0 or 2.x; not changed.
        pruning_algorithm: `level`, `l1`, `l2`, `fpgm`, `slim`, `apoz`, `mean_activation`,
            `taylorfo` or `admm`: what prunes in each iteration.
        total_iteration: number of iterations, >= 1; the last one reaches the configured ratios.
        log_dir: folder that gets a folder of results, named by the time in UTC.
        keep_intermediate_result: keep models and masks of all iterations.
        finetuner: function that trains the model in place after each pruning, or an evaluator.
        speed_up: remove masked channels in each iteration.
        dummy_input: inputs of the model, which a speedup needs.
        evaluator: function of the model that returns a score, larger is better, or an evaluator,
            which also fine-tunes and trains what `pruning_algorithm` trains; None: the best
            result is the latest.
        pruning_params: other arguments of the pruner of `pruning_algorithm`.
        reset_weight: see `PruningScheduler`.
        speedup: other name of `speed_up`.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: the model is wrapped or is no module, or an argument has another type.
        ValueError: an argument is out of range.

    Source: Zhu and Gupta, To prune, or not to prune, 2017.

    Examples:
        >>> import tempfile
        >>> from torch import nn
        >>> from nni.compression.pytorch.pruning import AGPPruner
        >>> model = nn.Sequential(nn.Linear(4, 10))
        >>> config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.8}]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pruner = AGPPruner(model, config_list, "l1", 3, log_dir=folder)
        ...     pruner.compress()
        ...     task_id, model, masks, _, _ = pruner.get_best_result()
        >>> task_id, int(masks["0"]["bias"].sum())
        (3, 2)
    """

    generator = AGPTaskGenerator
