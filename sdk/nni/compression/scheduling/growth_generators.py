"""Task generators whose ratios grow from iteration to iteration: linear, AGP and lottery ticket."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from torch import nn

from nni.compression.base.arguments import check_count
from nni.compression.base.inspection import module_infos
from nni.compression.config.plan import pruning_plan
from nni.compression.scheduling.grown_config import Growth, Sizes, grown_config_list
from nni.compression.scheduling.growth import agp_part, linear_part, lottery_ratio
from nni.compression.scheduling.task import Task, TaskResult
from nni.compression.scheduling.task_files import Masks
from nni.compression.scheduling.task_generator import BestResultMode, TaskGenerator


@dataclass(frozen=True, slots=True)
class _Scaled(Growth):
    """Growth whose ratio is a fixed part of the final ratio."""

    value: float

    def ratio(self, final: float) -> float:
        return final * self.value

    def part(self) -> float:
        return self.value


@dataclass(frozen=True, slots=True)
class _Lottery(Growth):
    """Growth that masks the same part of what is left in each iteration."""

    iteration: int
    iterations: int

    def ratio(self, final: float) -> float:
        return lottery_ratio(final, self.iteration, self.iterations)

    def part(self) -> float:
        return linear_part(self.iteration, self.iterations)


class GrowthTaskGenerator(TaskGenerator):
    """Base of the generators whose ratios grow; each task starts from the result of the last one.

    Args:
        total_iteration: number of iterations, >= 1; the last one reaches the configured ratios.
        origin_model: an unwrapped model; it is not changed.
        origin_config_list: entries of NNI 3.0 or 2.x for this model; not changed.
        origin_masks: masks that it has already; they count towards the configured ratios.
        log_dir: folder that gets a folder of results, named by the time in UTC.
        keep_intermediate_result: keep the files of all tasks.
        best_result_mode: see `TaskGenerator`.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: the model is wrapped, or is no module.
        ValueError: an argument is out of range.
    """

    first: ClassVar[int] = 0
    """Iteration of the first task."""

    def __init__(
        self,
        total_iteration: int,
        origin_model: nn.Module,
        origin_config_list: Sequence[Mapping[str, object]],
        origin_masks: Masks | None = None,
        log_dir: str | Path = ".",
        keep_intermediate_result: bool = False,  # noqa: FBT001, FBT002 - as in NNI 2.x
        *,
        best_result_mode: BestResultMode = "maximize",
    ) -> None:
        check_count("total_iteration", total_iteration)
        if isinstance(origin_model, nn.Module):
            pruning_plan(origin_config_list, module_infos(origin_model))  # raises if it is wrong
        self.total_iteration = total_iteration
        super().__init__(
            origin_model,
            origin_masks,
            origin_config_list,
            log_dir,
            keep_intermediate_result,
            best_result_mode=best_result_mode,
        )
        self._sizes = _weight_sizes(origin_model)
        self._iterations: dict[int, int] = {}

    @abstractmethod
    def growth(self, iteration: int) -> Growth:
        """Return the rule for ratios and thresholds of an iteration.

        Args:
            iteration: from `first` to `total_iteration`.
        """

    def init_pending_tasks(self) -> list[Task]:  # noqa: D102 - see the base
        paths = self.folder.origin_model_path, self.folder.origin_masks_path
        return [self._task(self.first, *paths, self.origin_model)]

    def generate_tasks(self, task_result: TaskResult) -> list[Task]:  # noqa: D102 - see the base
        iteration = self._iterations[task_result.task_id] + 1
        if iteration > self.total_iteration:
            return []
        paths = self.save_result(task_result)
        return [self._task(iteration, *paths, task_result.compact_model)]

    def prunes(self, task: Task) -> bool:  # noqa: D102 - see the base
        return self._iterations[task.task_id] > 0

    def _task(self, iteration: int, model_path: Path, masks_path: Path, model: nn.Module) -> Task:
        config_list = grown_config_list(
            self.origin_config_list,
            module_infos(model),
            self.growth(iteration),
            Sizes(self._sizes, _weight_sizes(model)),
            shared_entries=self.shared_entries,
        )
        task = self.new_task(model_path, masks_path, config_list)
        task.state["iteration"] = iteration
        self._iterations[task.task_id] = iteration
        return task


class LinearTaskGenerator(GrowthTaskGenerator):
    """Generator of tasks k = 0 to N, with k/N of the configured ratios.

    Args:
        total_iteration: number of iterations, >= 1; the last one reaches the configured ratios.
        origin_model: an unwrapped model; it is not changed.
        origin_config_list: entries of NNI 3.0 or 2.x for this model; not changed.
        origin_masks: masks that it has already; they count towards the configured ratios.
        log_dir: folder that gets a folder of results, named by the time in UTC.
        keep_intermediate_result: keep the files of all tasks.
        best_result_mode: see `TaskGenerator`.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: the model is wrapped, or is no module.
        ValueError: an argument is out of range.

    Examples:
        >>> import tempfile
        >>> from torch import nn
        >>> from nni.compression.pruning import L1NormPruner, PruningScheduler
        >>> from nni.compression.pruning.tools import LinearTaskGenerator
        >>> model = nn.Sequential(nn.Linear(4, 10))
        >>> config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     generator = LinearTaskGenerator(2, model, config_list, log_dir=folder)
        ...     PruningScheduler(L1NormPruner(None, None), generator).compress()
        ...     _, _, masks, _, _ = generator.get_best_result()
        >>> int(masks["0"]["bias"].sum())
        5
    """

    def growth(self, iteration: int) -> Growth:  # noqa: D102 - see the base
        return _Scaled(linear_part(iteration, self.total_iteration))


class AGPTaskGenerator(GrowthTaskGenerator):
    """Generator of tasks k = 0 to N, with 1 - (1 - k/N)^3 of the configured ratios.

    Args:
        total_iteration: number of iterations, >= 1; the last one reaches the configured ratios.
        origin_model: an unwrapped model; it is not changed.
        origin_config_list: entries of NNI 3.0 or 2.x for this model; not changed.
        origin_masks: masks that it has already; they count towards the configured ratios.
        log_dir: folder that gets a folder of results, named by the time in UTC.
        keep_intermediate_result: keep the files of all tasks.
        best_result_mode: see `TaskGenerator`.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: the model is wrapped, or is no module.
        ValueError: an argument is out of range.

    Source: Zhu and Gupta, To prune, or not to prune, 2017.

    Examples:
        >>> import tempfile
        >>> from torch import nn
        >>> from nni.compression.pruning import L1NormPruner, PruningScheduler
        >>> from nni.compression.pruning.tools import AGPTaskGenerator
        >>> model = nn.Sequential(nn.Linear(4, 10))
        >>> config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.8}]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     generator = AGPTaskGenerator(2, model, config_list, log_dir=folder)
        ...     PruningScheduler(L1NormPruner(None, None), generator).compress()
        ...     _, _, masks, _, _ = generator.get_best_result()
        >>> int(masks["0"]["bias"].sum())
        2
    """

    def growth(self, iteration: int) -> Growth:  # noqa: D102 - see the base
        return _Scaled(agp_part(iteration, self.total_iteration))


class LotteryTicketTaskGenerator(GrowthTaskGenerator):
    """Generator of tasks k = 1 to N, each of which masks the same part of what is left.

    After task k the ratio is 1 - (1 - s)^(k/N) of a configured ratio s.

    Args:
        total_iteration: number of iterations, >= 1; the last one reaches the configured ratios.
        origin_model: an unwrapped model; it is not changed.
        origin_config_list: entries of NNI 3.0 or 2.x for this model; not changed.
        origin_masks: masks that it has already; they count towards the configured ratios.
        log_dir: folder that gets a folder of results, named by the time in UTC.
        keep_intermediate_result: keep the files of all tasks.
        best_result_mode: see `TaskGenerator`.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: the model is wrapped, or is no module.
        ValueError: an argument is out of range.

    Source: Frankle and Carbin, The Lottery Ticket Hypothesis, 2019.

    Examples:
        >>> import tempfile
        >>> from torch import nn
        >>> from nni.compression.pruning import L1NormPruner, PruningScheduler
        >>> from nni.compression.pruning.tools import LotteryTicketTaskGenerator
        >>> model = nn.Sequential(nn.Linear(4, 10))
        >>> config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.8}]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     generator = LotteryTicketTaskGenerator(2, model, config_list, log_dir=folder)
        ...     PruningScheduler(L1NormPruner(None, None), generator).compress()
        ...     _, _, masks, _, _ = generator.get_best_result()
        >>> int(masks["0"]["bias"].sum())
        2
    """

    first = 1

    def growth(self, iteration: int) -> Growth:  # noqa: D102 - see the base
        return _Lottery(iteration, self.total_iteration)


def _weight_sizes(model: nn.Module) -> dict[str, int]:
    return {
        name.removesuffix(".weight"): parameter.numel()
        for name, parameter in model.named_parameters(remove_duplicate=False)
        if name.endswith(".weight")
    }
