"""Base of task generators, which decide what each iteration of a pruning starts from."""

import copy
import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from torch import Tensor, nn

from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.scheduling.task import Task, TaskResult, TaskStatus
from nni.compression.scheduling.task_files import Masks, load_config_list
from nni.compression.scheduling.task_folder import TaskFolder

BestResultMode = Literal["maximize", "minimize", "latest"]
BestResult = tuple[
    int, nn.Module, dict[str, dict[str, Tensor]], float | None, list[dict[str, object]]
]
"""Number of the task, model, masks that it still needs, score, configuration list."""


class TaskGenerator(ABC):
    """Base of generators, which make tasks from results, keep the best result, and write files.

    A generator of one's own implements `init_pending_tasks` and `generate_tasks`, and makes tasks
    by `new_task`. A `PruningScheduler` asks for tasks by `next` and reports by
    `receive_task_result`, until there are none.

    Args:
        origin_model: an unwrapped model; it is not changed. It is saved when the first task is
            taken.
        origin_masks: masks that it has already; they count towards the configured ratios.
        origin_config_list: entries of NNI 3.0 or 2.x for this model; not changed.
        log_dir: folder that gets a folder of results, named by the time in UTC.
        keep_intermediate_result: keep the files of all tasks; else those that no later task
            starts from are removed.
        best_result_mode: `maximize`: the result with the highest score, of equal ones the latest;
            `minimize`: that with the lowest; `latest`: the last one. Without scores the last one.
            A task that prunes nothing is the best one only until another task ends.

    Attributes:
        origin_model: see above.
        origin_config_list: a copy of the entries.
        shared_entries: whether the targets of an entry share its ratio, unless they name a group;
            set by the scheduler.

    Raises:
        TypeError: the model is wrapped, or is no module.
        ValueError: `best_result_mode` is unknown.
    """

    def __init__(
        self,
        origin_model: nn.Module,
        origin_masks: Masks | None = None,
        origin_config_list: Sequence[Mapping[str, object]] | None = None,
        log_dir: str | Path = ".",
        keep_intermediate_result: bool = False,  # noqa: FBT001, FBT002 - as in NNI 2.x
        *,
        best_result_mode: BestResultMode = "maximize",
    ) -> None:
        _check_model(origin_model)
        if best_result_mode not in {"maximize", "minimize", "latest"}:
            raise ValueError(
                "best_result_mode must be 'maximize', 'minimize' or 'latest', got "
                f"{best_result_mode!r}"
            )
        self.origin_model = origin_model
        self.origin_config_list = copy.deepcopy([dict(one) for one in origin_config_list or []])
        self.shared_entries = False
        self._keep = keep_intermediate_result
        self._mode = best_result_mode
        self._tasks: dict[int, Task] = {}
        self._pending: list[Task] | None = None
        self._best: Task | None = None
        self._log_dir = log_dir
        self._origin_masks = {name: dict(own) for name, own in (origin_masks or {}).items()}

    @functools.cached_property
    def folder(self) -> TaskFolder:
        """Return the files; the folder is made on first use, with what the pruning starts from."""
        folder = TaskFolder(self._log_dir)
        folder.save_origin(self.origin_model, self._origin_masks, self.origin_config_list)
        return folder

    @abstractmethod
    def init_pending_tasks(self) -> list[Task]:
        """Return the first tasks; called once, before the first task is taken."""

    @abstractmethod
    def generate_tasks(self, task_result: TaskResult) -> list[Task]:
        """Return the tasks that follow from a result; an empty list for none.

        Args:
            task_result: the result of the last task.
        """

    def next(self) -> Task | None:
        """Mark the next pending task as running and return it; None if there is none.

        Returns:
            A task with the status `Running`.

        Raises:
            TypeError: the model cannot be saved.
            OSError: a file cannot be written.
        """
        if self._pending is None:
            self._pending = self.init_pending_tasks()
        if not self._pending:
            return None
        task = self._pending.pop(0)
        task.status = TaskStatus.RUNNING
        self._write_tasks()
        return task

    def receive_task_result(self, task_result: TaskResult) -> None:
        """Record a result, save it if it is the best, and make the tasks that follow from it.

        Args:
            task_result: the result of a task that `next` returned.

        Raises:
            ValueError: no such task is running.
        """
        task = self._tasks.get(task_result.task_id)
        if task is None or task.status is not TaskStatus.RUNNING:
            raise ValueError(f"task_id must be that of a running task, got {task_result.task_id}")
        task.score = task_result.score
        task.state.update(task_result.state)
        task.status = TaskStatus.FINISHED
        if self._is_better(task):
            self._best = task
            self.folder.save_best(
                task_result.compact_model,
                task_result.compact_model_masks,
                load_config_list(Path(task.config_list_path)),
            )
        if self._keep:
            self.save_result(task_result)
        assert self._pending is not None, "a task is running"
        self._pending.extend(self.generate_tasks(task_result))
        if not self._keep:
            self.folder.remove_unused({path for one in self._unfinished() for path in one.paths()})
        self._write_tasks()

    def get_best_result(self) -> BestResult | None:
        """Load the best result so far: id, model, masks, score, configuration; None without one.

        Returns:
            Number of the task, a new model from its file, the masks that it still needs, its
            score, and the configuration list of the task.
        """
        if self._best is None:
            return None
        model, masks, config_list = self.folder.best().load_data()
        return self._best.task_id, model, masks, self._best.score, config_list

    def new_task(
        self, model_path: Path, masks_path: Path, config_list: Sequence[Mapping[str, object]]
    ) -> Task:
        """Record a task with the next number, write its configuration list; return it.

        Args:
            model_path: file of the model that it starts from.
            masks_path: file of the masks that this model has.
            config_list: what the model reaches.

        Returns:
            A task with the next number; return it from `init_pending_tasks` or `generate_tasks`.
        """
        task_id = len(self._tasks)
        path = self.folder.save_config_list(task_id, config_list)
        self._tasks[task_id] = Task(task_id, model_path, masks_path, path)
        return self._tasks[task_id]

    def save_result(self, task_result: TaskResult) -> tuple[Path, Path]:
        """Write model and masks of a result, unless they were written; return their paths.

        Args:
            task_result: the result.

        Returns:
            The files of model and masks.
        """
        return self.folder.save_compact(
            task_result.task_id, task_result.compact_model, task_result.compact_model_masks
        )

    def prunes(self, task: Task) -> bool:
        """Return whether a task prunes anything; by default every task does.

        The result of a task that prunes nothing is the best one only until another task ends,
        whatever the scores.

        Args:
            task: a task of this generator.
        """
        del task
        return True

    def _is_better(self, task: Task) -> bool:
        if self._best is None or self._mode == "latest":
            return True
        if self.prunes(task) != self.prunes(self._best):
            return self.prunes(task)
        sign = -1 if self._mode == "minimize" else 1
        return _comparable(task.score, sign) >= _comparable(self._best.score, sign)

    def _unfinished(self) -> list[Task]:
        return [task for task in self._tasks.values() if task.status is not TaskStatus.FINISHED]

    def _write_tasks(self) -> None:
        self.folder.write_tasks(self._tasks.values())


def _comparable(score: float | None, sign: int) -> float:
    """Return a number that is larger for a better score; the same for all without a score."""
    return -math.inf if score is None or math.isnan(score) else sign * score


def _check_model(model: object) -> None:
    if not isinstance(model, nn.Module):
        raise TypeError(f"origin_model must be a torch.nn.Module, got {type(model).__name__}")
    if any(isinstance(module, ModuleWrapper) for module in model.modules()):
        raise TypeError("origin_model holds wrappers of a pruner; call its unwrap_model()")
