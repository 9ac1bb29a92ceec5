"""Pruner that repeats annealing, ADMM and speedup until the model is small: AutoCompress."""

import copy
import logging
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn

from nni.compression.base.arguments import check_count
from nni.compression.base.inspection import module_infos
from nni.compression.config.plan import pruning_plan
from nni.compression.evaluators.legacy_evaluator import LegacyEvaluator
from nni.compression.pruning.admm_pruner import ADMMPruner
from nni.compression.pruning.base_algorithms import base_algorithm
from nni.compression.pruning.search_pruner import OptimizeMode, check_mode
from nni.compression.pruning.simulated_annealing_pruner import SimulatedAnnealingPruner
from nni.compression.scheduling.annealing_generator import Cooling
from nni.compression.scheduling.callbacks import Scorer, check_callback, learn_names, score
from nni.compression.scheduling.growth import lottery_ratio
from nni.compression.scheduling.layer_groups import layer_groups
from nni.compression.speedup.model_speedup import ModelSpeedup

_logger = logging.getLogger(__name__)

Trainer = Callable[..., object]
"""`(model, optimizer, criterion, epoch)`; trains one epoch."""

_LEARNING_RATE: Final = 1e-3
_WEIGHT_DECAY: Final = 5e-5


class AutoCompressPruner:
    """Pruner that finds sparsities, prunes by ADMM and removes what is masked, in rounds.

    Each round prunes the same part of what is left: simulated annealing finds the sparsity of each
    layer, ADMM trains the weights towards it and masks them, and a speedup removes the channels.
    The given model is not changed.

    Args:
        model: an unwrapped model.
        config_list: convolutions and Linear layers, and the ratio that those of an entry reach
            together; not changed.
        trainer: `(model, optimizer, criterion, epoch)`; trains one epoch.
        evaluator: function of the model that returns a score, or an evaluator.
        dummy_input: inputs of the model, which the speedup needs.
        criterion: `(output, target) -> loss`; None for cross-entropy.
        num_iterations: number of rounds, >= 1.
        optimize_mode: `maximize` or `minimize` the score.
        base_algo: `l1`, `l2` or `fpgm`: what is pruned in a layer. `level` prunes single weights,
            which no speedup removes.
        start_temperature: temperature of the annealing at first.
        stop_temperature: the annealing ends when the temperature is no higher; above 0.
        cool_down_rate: factor of the temperature for each accepted change, in (0, 1).
        perturbation_magnitude: largest change of a sparsity at first, > 0.
        admm_num_iterations: iterations of ADMM in each round, >= 1.
        admm_epochs_per_iteration: epochs of each of them, >= 1.
        row: weight of the distance to sparse weights in ADMM, > 0.
        experiment_data_dir: folder of temporary files, which are removed at the end.
        seed: seed of the annealing; None to draw one from torch's generator.

    Attributes:
        history: ratio that is asked for, and score, of each round.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: the model is wrapped or is no module, or a callback is none.
        ValueError: an argument is out of range.

    Source: Liu et al., AutoCompress: An Automatic DNN Structured Pruning Framework for Ultra-High
        Compression Rates, 2020.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.pruning import AutoCompressPruner
        >>> model = nn.Sequential(nn.Conv2d(1, 8, 1), nn.ReLU(), nn.Conv2d(8, 2, 1))
        >>> inputs = torch.ones(2, 1, 2, 2)
        >>> def trainer(model, optimizer, criterion, epoch):
        ...     optimizer.zero_grad()
        ...     criterion(model(inputs), torch.zeros(2, 2, 2, 2)).backward()
        ...     optimizer.step()
        >>> pruner = AutoCompressPruner(
        ...     model,
        ...     [{"op_names": ["0"], "sparse_ratio": 0.5}],
        ...     trainer,
        ...     evaluator=lambda model: 1.0,
        ...     dummy_input=inputs,
        ...     criterion=nn.MSELoss(),
        ...     num_iterations=2,
        ...     cool_down_rate=0.5,
        ...     admm_num_iterations=1,
        ...     admm_epochs_per_iteration=1,
        ... )
        >>> pruner.compress()[0]
        Conv2d(1, 5, kernel_size=(1, 1), stride=(1, 1))
    """

    def __init__(  # noqa: PLR0913 - the signature of NNI 1.x
        self,
        model: nn.Module,
        config_list: Sequence[Mapping[str, object]],
        trainer: Trainer,
        evaluator: Scorer,
        dummy_input: Any,  # noqa: ANN401 - inputs of a model
        criterion: Callable[..., Tensor] | None = None,
        num_iterations: int = 3,
        optimize_mode: OptimizeMode = "maximize",
        base_algo: str = "l1",
        start_temperature: float = 100,
        stop_temperature: float = 20,
        cool_down_rate: float = 0.9,
        perturbation_magnitude: float = 0.35,
        admm_num_iterations: int = 30,
        admm_epochs_per_iteration: int = 5,
        row: float = 1e-4,
        experiment_data_dir: str | Path = "./",
        *,
        seed: int | None = None,
    ) -> None:
        _check_callbacks(trainer, evaluator)
        check_count("num_iterations", num_iterations)
        check_count("admm_num_iterations", admm_num_iterations)
        check_count("admm_epochs_per_iteration", admm_epochs_per_iteration)
        if not row > 0:
            raise ValueError(f"row must be > 0, got {row!r}")
        base_algorithm(base_algo)
        self._cooling = Cooling(
            start_temperature, stop_temperature, cool_down_rate, perturbation_magnitude
        )
        pruning_plan(config_list, module_infos(model))  # raises if it is wrong
        learn_names(evaluator, model)
        self._sign = check_mode(optimize_mode)
        self._model = model
        self._groups = layer_groups(config_list, module_infos(model))
        self._trainer = trainer
        self._evaluator = evaluator
        self._dummy_input = dummy_input
        self._criterion = criterion or nn.CrossEntropyLoss()
        self._rounds = num_iterations
        self._base_algo = base_algo
        self._admm = admm_num_iterations, admm_epochs_per_iteration, row
        self._folder = Path(experiment_data_dir)
        self._seed = seed
        self._result: nn.Module | None = None
        self.history: list[tuple[float, float]] = []

    def compress(self) -> nn.Module:
        """Anneal, prune by ADMM and speed up a copy of the model in rounds; return it.

        Returns:
            A smaller model, without wrappers or masks.

        Raises:
            OSError: a temporary file cannot be written.
        """
        model = copy.deepcopy(self._model)
        self.history = []
        self._folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            for number in range(self._rounds):
                config_list = self._annealed(model, self._round_config(), Path(folder))
                self._prune(model, config_list)
                ratio = max(lottery_ratio(one.total, 1, self._rounds) for one in self._groups)
                self.history.append((ratio, score(self._evaluator, model)))
                _logger.info("round %d: score %s", number + 1, self.history[-1][1])
        self._result = model
        return model

    def export_model(self, model_path: str | Path, mask_path: str | Path | None = None) -> None:
        """Write the smaller model's state dict, but no masks; raise before `compress`.

        Args:
            model_path: file of the state dict.
            mask_path: not used: the smaller model has no masks.

        Raises:
            RuntimeError: there is no result; call `compress` first.
        """
        if self._result is None:
            raise RuntimeError("there is no result to export; call compress() first")
        if mask_path is not None:
            _logger.warning(
                "mask_path %s is not written: the smaller model has no masks", mask_path
            )
        torch.save(self._result.state_dict(), model_path)

    def _round_config(self) -> list[dict[str, object]]:
        """Return the configuration of one round: the same part of what is left in each."""
        return [
            entry
            for group in self._groups
            for entry in group.shared_entries(
                lottery_ratio(group.total, 1, self._rounds),
                [lottery_ratio(limit, 1, self._rounds) for limit in group.limits],
            )
        ]

    def _annealed(
        self, model: nn.Module, config_list: list[dict[str, object]], folder: Path
    ) -> list[dict[str, object]]:
        """Return a configuration with the best sparsity of each layer."""
        pruner = SimulatedAnnealingPruner(
            model,
            config_list,
            self._base_algo,
            lambda one: self._sign * score(self._evaluator, one),
            self._cooling.start,
            self._cooling.stop,
            self._cooling.rate,
            self._cooling.magnitude,
            folder,
            seed=self._seed,
        )
        pruner.compress()
        best = pruner.get_best_result()
        assert best is not None, "a search has a first task"
        return best[-1]

    def _prune(self, model: nn.Module, config_list: list[dict[str, object]]) -> None:
        """Prune a model by ADMM and remove what is masked, in place."""
        iterations, epochs, row = self._admm
        optimizer = torch.optim.Adam(
            model.parameters(), lr=_LEARNING_RATE, weight_decay=_WEIGHT_DECAY
        )
        evaluator = epoch_evaluator(self._trainer, optimizer, self._criterion)
        pruner = ADMMPruner(model, config_list, evaluator, iterations, epochs, row, self._base_algo)
        _, masks = pruner.compress()
        pruner.unwrap_model()
        ModelSpeedup(model, self._dummy_input, masks).speedup_model()


def _check_callbacks(trainer: object, evaluator: object) -> None:
    if not callable(trainer):
        raise TypeError(f"trainer must be a function that trains an epoch, got {trainer!r}")
    if evaluator is None:
        raise TypeError("evaluator is missing: the search needs a score of each model")
    check_callback("evaluator", evaluator)


def epoch_evaluator(
    trainer: Trainer, optimizer: torch.optim.Optimizer, criterion: Callable[..., Tensor]
) -> LegacyEvaluator:
    """Return an evaluator whose trainer gets an epoch number that counts on across trainings.

    Args:
        trainer: `(model, optimizer, criterion, epoch)`; trains one epoch.
        optimizer: optimizer of the model.
        criterion: `(output, target) -> loss`.
    """
    epochs = iter(range(10**9))

    def train(model: nn.Module, one: torch.optim.Optimizer, loss: Callable[..., Tensor]) -> None:
        trainer(model, optimizer=one, criterion=loss, epoch=next(epochs))

    return LegacyEvaluator(train, optimizer, criterion)
