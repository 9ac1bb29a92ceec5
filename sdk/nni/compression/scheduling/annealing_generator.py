"""Task generator that searches the sparsities of layers by simulated annealing."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from torch import nn

from nni.compression.base.inspection import module_infos
from nni.compression.config.plan import pruning_plan
from nni.compression.config.settings import ConfigListError
from nni.compression.scheduling.annealing import accepts, first_sparsities, perturbed
from nni.compression.scheduling.growth import ratio_of_rest
from nni.compression.scheduling.layer_groups import LayerGroup, layer_groups
from nni.compression.scheduling.task import Task, TaskResult
from nni.compression.scheduling.task_files import Masks
from nni.compression.scheduling.task_generator import BestResultMode, TaskGenerator

Entry = Mapping[str, object]
Sparsities = list[list[float]]
"""Sparsity of each layer of each group, of what earlier masks left."""

_SEEDS: Final = 2**31
"""Number of seeds that are drawn from torch's generator."""


@dataclass(frozen=True, slots=True)
class Cooling:
    """Start, stop and decay of an annealing temperature, and its largest change of a sparsity.

    Raises:
        ValueError: a number is out of range.
    """

    start: float
    """Temperature at first."""
    stop: float
    """The search ends when the temperature is no higher; above 0."""
    rate: float
    """Factor of the temperature for each accepted change, in (0, 1)."""
    magnitude: float
    """Largest change of a sparsity at first, above 0; it falls with the temperature."""

    def __post_init__(self) -> None:
        if not 0 < self.stop < self.start < math.inf:
            raise ValueError(
                "temperatures must be 0 < stop_temperature < start_temperature, got "
                f"{self.stop} and {self.start}"
            )
        if not 0 < self.rate < 1:
            raise ValueError(f"cool_down_rate must be in (0, 1), got {self.rate}")
        if not 0 < self.magnitude < math.inf:
            raise ValueError(f"perturbation_magnitude must be > 0, got {self.magnitude}")

    def magnitude_at(self, temperature: float) -> float:
        """Return the largest change of a sparsity, in proportion to the temperature.

        Args:
            temperature: from `start` down to `stop`.
        """
        return temperature / self.start * self.magnitude


@dataclass(frozen=True, slots=True)
class LayerSearch:
    """Group of layers with each one's masked part, weights left, and bounds on their sparsity."""

    group: LayerGroup
    masked: tuple[float, ...]
    """Part of each layer that is masked before the search."""
    sizes: tuple[int, ...]
    """Weights of each layer that are not masked before the search."""
    total: float
    """Sparsity of these weights together."""
    limits: tuple[float, ...]
    """Largest sparsity of these weights, by layer."""

    @classmethod
    def of(cls, group: LayerGroup, model: nn.Module, masks: Masks) -> "LayerSearch":
        """Return the search of a group; raise ConfigListError if its limits are below its total.

        Args:
            group: the layers.
            model: has them.
            masks: masks that it has already.

        Raises:
            ConfigListError: the limits of the layers exclude their total.
        """
        masked = tuple(_masked_part(masks, name) for name in group.names)
        weights = [
            model.get_submodule(name).get_parameter("weight").numel() for name in group.names
        ]
        sizes = tuple(round(n * (1 - part)) for n, part in zip(weights, masked, strict=True))
        limits = tuple(
            ratio_of_rest(limit, part) if part < 1 else 0.0
            for limit, part in zip(group.limits, masked, strict=True)
        )
        total = ratio_of_rest(group.total, 1 - sum(sizes) / sum(weights))
        reachable = sum(limit * size for limit, size in zip(limits, sizes, strict=True))
        if reachable < total * sum(sizes) * (1 - 1e-9):
            raise ConfigListError(
                "config_list",
                f"asks for the sparsity {group.total} of {', '.join(group.names)}, but their "
                "limits allow less; raise max_sparsity_per_layer",
            )
        return cls(group, masked, sizes, total, limits)

    def entries(self, sparsities: Sequence[float]) -> list[dict[str, object]]:
        """Return the entries of a configuration list, with earlier masks counted.

        Args:
            sparsities: of what earlier masks left, by layer.
        """
        whole = [part + (1 - part) * own for part, own in zip(self.masked, sparsities, strict=True)]
        return self.group.entries(whole)


class SimulatedAnnealingTaskGenerator(TaskGenerator):
    """Generator of tasks with annealed sparsities of layers, whose total is the configuration's.

    All layers of an entry share its `sparsity`, `total_sparsity` or `sparse_ratio`; layers with
    more weights get a sparsity that is at least as large. Layers with `sparsity_per_layer` keep
    it. Every task starts from the original model. A change with a better score is accepted, a
    worse one by chance; each accepted change lowers the temperature.

    Args:
        origin_model: an unwrapped model; it is not changed.
        origin_config_list: entries of NNI 3.0 or 2.x for this model; not changed.
        origin_masks: masks that it has already; they count towards the configured sparsities.
        start_temperature: temperature at first.
        stop_temperature: the search ends when the temperature is no higher; above 0.
        cool_down_rate: factor of the temperature for each accepted change, in (0, 1).
        perturbation_magnitude: largest change of a sparsity at first, > 0; it falls in proportion
            to the temperature.
        log_dir: folder that gets a folder of results, named by the time in UTC.
        keep_intermediate_result: keep the files of all tasks.
        seed: seed of the random numbers; None to draw one from torch's generator.
        best_result_mode: `maximize` or `minimize` the score.

    Raises:
        ConfigListError: the configuration breaks a rule, or limits of layers exclude a total.
        TypeError: the model is wrapped, or is no module.
        ValueError: an argument is out of range.

    Source: Liu et al., AutoCompress, 2020, section 3.3.

    Departures: sparsities that no factor can bring to the total below 1 are brought there by a
        factor of the parts that stay, instead of being drawn again.

    Examples:
        >>> import tempfile
        >>> from torch import nn
        >>> from nni.compression.pruning import L1NormPruner, PruningScheduler
        >>> from nni.compression.pruning.tools import SimulatedAnnealingTaskGenerator
        >>> model = nn.Sequential(nn.Linear(4, 10), nn.Linear(10, 20))
        >>> config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     generator = SimulatedAnnealingTaskGenerator(
        ...         model, config_list, cool_down_rate=0.5, log_dir=folder, seed=0
        ...     )
        ...     pruner = L1NormPruner(None, None)
        ...     PruningScheduler(pruner, generator, evaluator=lambda model: 1.0).compress()
        ...     _, _, _, score, config_list = generator.get_best_result()
        >>> [entry["op_names"] for entry in config_list]
        [['0'], ['1']]
    """

    def __init__(  # noqa: PLR0913 - the signature of NNI 2.x
        self,
        origin_model: nn.Module,
        origin_config_list: Sequence[Entry],
        origin_masks: Masks | None = None,
        start_temperature: float = 100,
        stop_temperature: float = 20,
        cool_down_rate: float = 0.9,
        perturbation_magnitude: float = 0.35,
        log_dir: str | Path = ".",
        keep_intermediate_result: bool = False,  # noqa: FBT001, FBT002 - as in NNI 2.x
        *,
        seed: int | None = None,
        best_result_mode: BestResultMode = "maximize",
    ) -> None:
        self._cooling = Cooling(
            start_temperature, stop_temperature, cool_down_rate, perturbation_magnitude
        )
        super().__init__(
            origin_model,
            origin_masks,
            origin_config_list,
            log_dir,
            keep_intermediate_result,
            best_result_mode=best_result_mode,
        )
        modules = module_infos(origin_model)
        pruning_plan(origin_config_list, modules)  # raises if it is wrong
        self._searches = [
            LayerSearch.of(group, origin_model, self._origin_masks)
            for group in layer_groups(origin_config_list, modules)
        ]
        self._sign = -1 if best_result_mode == "minimize" else 1
        drawn = int(torch.randint(_SEEDS, ())) if seed is None else seed
        self._random = random.Random(drawn)
        self._temperature = start_temperature
        self._proposed: Sparsities = []
        self._current: tuple[Sparsities, float] | None = None

    def init_pending_tasks(self) -> list[Task]:  # noqa: D102 - see the base
        return [
            self._task(
                [
                    first_sparsities(one.sizes, one.total, one.limits, self._random)
                    for one in self._searches
                ]
            )
        ]

    def generate_tasks(self, task_result: TaskResult) -> list[Task]:  # noqa: D102 - see the base
        if task_result.score is None:
            raise ValueError("simulated annealing needs scores; give the scheduler an evaluator")
        score = self._sign * task_result.score
        if self._current is None:
            self._current = self._proposed, score
        elif accepts(score, self._current[1], self._temperature, self._random):
            self._current = self._proposed, score
            self._cool_down()
        elif not math.isfinite(score):
            self._cool_down()  # else a model that always diverges is searched for ever
        if self._temperature <= self._cooling.stop:
            return []
        sparsities, _ = self._current
        moved = [self._moved(*pair) for pair in zip(self._searches, sparsities, strict=True)]
        return [self._task(moved)]

    def _cool_down(self) -> None:
        self._temperature *= self._cooling.rate

    def _moved(self, search: LayerSearch, sparsities: Sequence[float]) -> list[float]:
        magnitude = self._cooling.magnitude_at(self._temperature)
        return perturbed(
            sparsities, search.sizes, search.total, search.limits, magnitude, self._random
        )

    def _task(self, proposed: Sparsities) -> Task:
        self._proposed = proposed
        config_list = [
            entry
            for search, sparsities in zip(self._searches, proposed, strict=True)
            for entry in search.entries(sparsities)
        ]
        paths = self.folder.origin_model_path, self.folder.origin_masks_path
        task = self.new_task(*paths, config_list)
        task.state["temperature"] = self._temperature
        return task


def _masked_part(masks: Masks, name: str) -> float:
    mask = masks.get(name, {}).get("weight")
    return 0.0 if mask is None else 1 - float(mask.double().mean())
