"""Simulated annealing as NNI 1.x runs it: one model, scored again and again."""

import csv
import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import torch
from torch import Tensor, nn

from nni.compression.pruning.legacy.arguments import check_ratios, warn_once
from nni.compression.pruning.search_pruner import OptimizeMode, SearchPruner, check_mode
from nni.compression.scheduling.annealing import accepts, first_sparsities, perturbed
from nni.compression.scheduling.annealing_generator import Cooling

Entry = Mapping[str, object]
State = Mapping[str, Tensor]

_HISTORY: Final = "search_history.csv"
_RESULT: Final = "search_result.json"
_NEGLIGIBLE: Final = 1e-6
"""Sparsity at which a layer is left out of the configuration that is found."""
_MOST_EVALUATIONS: Final = 1000
"""Evaluations after which a search ends whose changes are hardly ever accepted."""
_SEEDS: Final = 2**31
"""Number of seeds that are drawn from torch's generator."""


class AnnealingPruner(SearchPruner):
    """Pruner that anneals the sparsities of layers; their total is that of the first entry.

    Larger layers never get a lower sparsity than smaller ones. A change with a better score is
    accepted, a worse one by chance; each accepted change lowers the temperature.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: modules and one ratio in (0, 1) for all together.
        evaluator: `(model) -> float`; called a thousand times at most.
        optimize_mode: `maximize` or `minimize` the score.
        base_algo: `level`, `l1`, `l2` or `fpgm`: ranks within a layer.
        start_temperature: temperature at first.
        stop_temperature: the search ends when the temperature is no higher; above 0.
        cool_down_rate: factor of the temperature for each accepted change, in (0, 1).
        perturbation_magnitude: largest change of a sparsity at first, > 0.
        experiment_data_dir: folder that gets `search_history.csv` and `search_result.json`.

    Attributes:
        best_config_list: configuration with the best score; None before the search.

    Raises:
        ConfigListError: the configuration breaks a rule.
        ValueError: an argument is out of range.

    Source: Liu et al., AutoCompress, 2020, section 3.

    Examples:
        >>> import warnings
        >>> from torch import nn
        >>> from nni.algorithms.compression.pytorch.pruning import SimulatedAnnealingPruner
        >>> with warnings.catch_warnings(action="ignore"):
        ...     SimulatedAnnealingPruner(nn.ReLU(), [], print, stop_temperature=200)
        Traceback (most recent call last):
        ValueError: temperatures must be 0 < stop_temperature < start_temperature, got 200 and 100
    """

    def __init__(  # noqa: PLR0913 - the documented signature
        self,
        model: nn.Module,
        config_list: Sequence[Entry],
        evaluator: Callable[[nn.Module], float],
        optimize_mode: OptimizeMode = "maximize",
        base_algo: str = "l1",
        start_temperature: float = 100,
        stop_temperature: float = 20,
        cool_down_rate: float = 0.9,
        perturbation_magnitude: float = 0.35,
        experiment_data_dir: str | Path = "./",
    ) -> None:
        warn_once("SimulatedAnnealingPruner", "nni.compression.pruning.SimulatedAnnealingPruner")
        if not callable(evaluator):
            raise TypeError(f"evaluator must be a function of the model, got {evaluator!r}")
        self._factor = check_mode(optimize_mode)
        self._cooling = Cooling(
            start_temperature, stop_temperature, cool_down_rate, perturbation_magnitude
        )
        self._score = evaluator
        self._folder = Path(experiment_data_dir)
        self._history: list[tuple[float, float, str]] = []
        self.best_config_list: list[dict[str, object]] | None = None
        check_ratios(config_list)
        super().__init__(model, config_list, base_algo)

    def compress(self, return_config_list: bool = False) -> nn.Module | list[dict[str, object]]:  # type: ignore[override]  # noqa: FBT001, FBT002 - as in NNI 1.x
        """Search; set the best masks; return the model, or the best configuration list.

        Args:
            return_config_list: return the configuration that was found instead of the model.

        Returns:
            The model, wrapped, or the configuration.
        """
        super().compress()
        if return_config_list:
            assert self.best_config_list is not None  # the search has set it
            return self.best_config_list
        return self.bound_model

    def search(self) -> None:
        """Anneal the sparsities of the layers; set the best masks; write history and result."""
        names = list(self.weight_sizes())
        sizes, total = list(self.weight_sizes().values()), self.target_sparsity
        limits = [1.0] * len(sizes)
        generator = random.Random(int(torch.randint(_SEEDS, ()).item()))
        current = first_sparsities(sizes, total, limits, generator)
        score = best = -math.inf
        start, found = self.snapshot(), dict.fromkeys(names, 0.0)
        temperature, self._history = self._cooling.start, []
        while temperature > self._cooling.stop and len(self._history) < _MOST_EVALUATIONS:
            magnitude = self._cooling.magnitude_at(temperature)
            changed = perturbed(current, sizes, total, limits, magnitude, generator)
            sparsities = dict(zip(names, changed, strict=True))
            one = self._evaluated(start, sparsities, total)
            if one > best:
                best, found = one, sparsities
            if accepts(one, score, temperature, generator):
                current, score = changed, one
                temperature *= self._cooling.rate
        self._set(start, found)
        self.best_config_list = self._entries(found)
        self._write(self._factor * best)

    def _evaluated(self, start: State, sparsities: Mapping[str, float], total: float) -> float:
        """Mask the original model in place by sparsities; record and return its score."""
        self._set(start, sparsities)
        performance = float(self._score(self.bound_model))
        if math.isnan(performance):
            raise ValueError("evaluator must return a number that is not NaN")
        entries = json.dumps(self._entries(sparsities))
        self._history.append((total, performance, entries))
        return self._factor * performance

    def _set(self, start: State, sparsities: Mapping[str, float]) -> None:
        self.restore(start)
        self.update_masks(self.masks_at(sparsities))

    def _entries(self, sparsities: Mapping[str, float]) -> list[dict[str, object]]:
        kinds = {name: type(one.module).__name__ for name, one in self._wrappers.items()}
        return [
            {"sparsity": sparsity, "op_types": [kinds[name]], "op_names": [name]}
            for name, sparsity in sparsities.items()
            if sparsity > _NEGLIGIBLE
        ]

    def _write(self, performance: float) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / _HISTORY).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["sparsity", "performance", "config_list"])
            writer.writerows(self._history)
        result = {"performance": performance, "config_list": json.dumps(self.best_config_list)}
        (self._folder / _RESULT).write_text(json.dumps(result), encoding="utf-8")
