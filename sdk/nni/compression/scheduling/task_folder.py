"""Folder of one iterative pruning: its tasks, models, masks and configuration lists."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from torch import nn

from nni.compression.scheduling import task_files
from nni.compression.scheduling.task import Task
from nni.compression.scheduling.task_files import Masks
from nni.durable_files import write_whole

Entry = Mapping[str, object]

_TIME: Final = "%Y-%m-%d-%H-%M-%S-%f"


class TaskFolder:
    """Files of one iterative pruning below `log_dir/<time>/`.

    `origin` has what the pruning starts from, `intermediate_result` what a later task starts
    from, `best_result` the best result so far, and `.tasks` all tasks as JSON.

    Args:
        log_dir: folder that gets a new folder, named by the time in UTC.

    Attributes:
        path: the new folder.

    Raises:
        OSError: a folder cannot be made.
    """

    def __init__(self, log_dir: str | Path) -> None:
        self.path = _new_folder(Path(log_dir).absolute())
        self._origin = self.path / "origin"
        self._intermediate = self.path / "intermediate_result"
        self._best = self.path / "best_result"

    def save_origin(self, model: nn.Module, masks: Masks, config_list: Sequence[Entry]) -> None:
        """Write model, masks and configuration list that the pruning starts from.

        Args:
            model: an unwrapped model.
            masks: masks that it has already.
            config_list: the configuration of the user.

        Raises:
            TypeError: the model cannot be saved.
        """
        _save(self._origin, model, masks, config_list)

    @property
    def origin_model_path(self) -> Path:
        """Return the file of the model that the pruning starts from."""
        return self._origin / "model.pth"

    @property
    def origin_masks_path(self) -> Path:
        """Return the file of the masks that the pruning starts from."""
        return self._origin / "masks.pth"

    def save_config_list(self, task_id: int, config_list: Sequence[Entry]) -> Path:
        """Write the configuration list of a task; return its path.

        Args:
            task_id: number of the task.
            config_list: what its model reaches.

        Returns:
            The file.
        """
        self._intermediate.mkdir(exist_ok=True)
        path = self._intermediate / f"{task_id}_config_list.json"
        task_files.save_config_list(config_list, path)
        return path

    def save_compact(self, task_id: int, model: nn.Module, masks: Masks) -> tuple[Path, Path]:
        """Write the result of a task, unless it was written; return paths of model and masks.

        Args:
            task_id: number of the task.
            model: its model, without wrappers.
            masks: masks that the model still needs.

        Returns:
            The files of model and masks.
        """
        self._intermediate.mkdir(exist_ok=True)
        model_path = self._intermediate / f"{task_id}_compact_model.pth"
        masks_path = self._intermediate / f"{task_id}_compact_model_masks.pth"
        if not masks_path.exists():
            task_files.save_model(model, model_path)
            task_files.save_masks(masks, masks_path)
        return model_path, masks_path

    def save_best(self, model: nn.Module, masks: Masks, config_list: Sequence[Entry]) -> None:
        """Replace the files of the best result: model, masks and configuration list.

        Args:
            model: an unwrapped model.
            masks: masks that it still needs.
            config_list: the configuration list that it reached.
        """
        _save(self._best, model, masks, config_list)

    def best(self) -> Task:
        """Return the best result as a task, whose files can be loaded."""
        return Task(
            0,
            self._best / "model.pth",
            self._best / "masks.pth",
            self._best / "config_list.json",
        )

    def write_tasks(self, tasks: Collection[Task]) -> None:
        """Replace `.tasks`, the JSON file of all tasks.

        Args:
            tasks: all tasks.
        """
        text = json.dumps({str(task.task_id): task.to_dict() for task in tasks}, indent=1)
        write_whole(self.path / ".tasks", text)

    def remove_unused(self, used: Collection[Path]) -> None:
        """Remove intermediate files that no task starts from, and their folder if it is empty.

        Args:
            used: files that tasks still start from.
        """
        if not self._intermediate.is_dir():
            return
        for path in list(self._intermediate.iterdir()):
            if path not in used:
                path.unlink()
        if not any(self._intermediate.iterdir()):
            self._intermediate.rmdir()


def _save(folder: Path, model: nn.Module, masks: Masks, config_list: Sequence[Entry]) -> None:
    folder.mkdir(exist_ok=True)
    task_files.save_model(model, folder / "model.pth")
    task_files.save_masks(masks, folder / "masks.pth")
    task_files.save_config_list(config_list, folder / "config_list.json")


def _new_folder(parent: Path) -> Path:
    """Make a new folder named by the time and return it, also if others take names first."""
    while True:
        path = parent / datetime.now(UTC).strftime(_TIME)
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        return path
