"""Pruner that searches the sparsities of layers by simulated annealing."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from nni.compression.pruning.iterative_pruner import IterativePruner
from nni.compression.pruning.named_pruners import make_pruner, with_evaluator
from nni.compression.scheduling.annealing_generator import SimulatedAnnealingTaskGenerator
from nni.compression.scheduling.callbacks import Finetuner, Scorer


class SimulatedAnnealingPruner(IterativePruner):
    """Pruner that anneals the sparsities of layers; their total is the configuration's.

    Each iteration prunes the original model with other sparsities and evaluates it.
    `get_best_result` has the model with the best score; layers with more weights have a sparsity
    that is at least as large. See `SimulatedAnnealingTaskGenerator`.

    Args:
        model: an unwrapped model; it is not changed.
        config_list: entries of NNI 3.0 or 2.x; not changed. The layers of an entry share its
            `sparsity`, `total_sparsity` or `sparse_ratio`.
        pruning_algorithm: `level`, `l1`, `l2`, `fpgm`, `slim`, `apoz`, `mean_activation`,
            `taylorfo` or `admm`: what prunes in each iteration.
        evaluator: function of the model that returns a score, larger is better, or an evaluator
            that can evaluate; an evaluator also fine-tunes and trains what `pruning_algorithm`
            trains.
        start_temperature: temperature at first.
        stop_temperature: the search ends when the temperature is no higher; above 0.
        cool_down_rate: factor of the temperature for each accepted change, in (0, 1).
        perturbation_magnitude: largest change of a sparsity at first, > 0.
        log_dir: folder that gets a folder of results, named by the time in UTC.
        keep_intermediate_result: keep models and masks of all iterations.
        finetuner: function that trains the model in place after each pruning, or an evaluator.
        speed_up: remove masked channels in each iteration.
        dummy_input: inputs of the model, which a speedup needs.
        pruning_params: other arguments of the pruner of `pruning_algorithm`.
        speedup: other name of `speed_up`.
        seed: seed of the random numbers; None to draw one from torch's generator.

    Raises:
        ConfigListError: the configuration breaks a rule, or limits of layers exclude a total.
        TypeError: the model is wrapped or is no module, or an argument has another type.
        ValueError: an argument is out of range.

    Source: Liu et al., AutoCompress: An Automatic DNN Structured Pruning Framework for Ultra-High
        Compression Rates, 2020.

    Examples:
        >>> import tempfile
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.pruning import SimulatedAnnealingPruner
        >>> model = nn.Sequential(nn.Linear(4, 10), nn.Linear(10, 20))
        >>> config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]
        >>> def evaluator(model):
        ...     return float(model(torch.ones(1, 4)).detach().square().sum())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pruner = SimulatedAnnealingPruner(
        ...         model, config_list, "l1", evaluator, cool_down_rate=0.5, log_dir=folder
        ...     )
        ...     pruner.compress()
        ...     _, model, masks, score, _ = pruner.get_best_result()
        >>> sorted(masks)
        ['0', '1']
    """

    def __init__(  # noqa: PLR0913 - the signature of NNI 2.x
        self,
        model: nn.Module,
        config_list: Sequence[Mapping[str, object]],
        pruning_algorithm: str,
        evaluator: Scorer,
        start_temperature: float = 100,
        stop_temperature: float = 20,
        cool_down_rate: float = 0.9,
        perturbation_magnitude: float = 0.35,
        log_dir: str | Path = ".",
        keep_intermediate_result: bool = False,  # noqa: FBT001, FBT002 - as in NNI 2.x
        finetuner: Finetuner | None = None,
        speed_up: bool = False,  # noqa: FBT001, FBT002 - as in NNI 2.x
        dummy_input: Any = None,  # noqa: ANN401 - inputs of a model
        pruning_params: Mapping[str, Any] | None = None,
        *,
        speedup: bool = False,
        seed: int | None = None,
    ) -> None:
        if evaluator is None:
            raise TypeError("evaluator is missing: the search needs a score of each model")
        generator = SimulatedAnnealingTaskGenerator(
            model,
            config_list,
            None,
            start_temperature,
            stop_temperature,
            cool_down_rate,
            perturbation_magnitude,
            log_dir,
            keep_intermediate_result,
            seed=seed,
        )
        pruner = make_pruner(pruning_algorithm, with_evaluator(pruning_params, evaluator))
        super().__init__(pruner, generator, finetuner, speed_up or speedup, dummy_input, evaluator)
