"""Tasks of an iterative pruning: input and result of one iteration."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from torch import Tensor, nn

from nni.compression.scheduling import task_files
from nni.compression.scheduling.task_files import Masks


class TaskStatus(StrEnum):
    """State of a task: pending, running or finished."""

    PENDING = "Pending"
    RUNNING = "Running"
    FINISHED = "Finished"


@dataclass(slots=True)
class Task:
    """One iteration: the files that it starts from and its progress.

    Examples:
        >>> Task(0, "model.pth", "masks.pth", "config_list.json").to_dict()["status"]
        'Pending'
    """

    task_id: int
    """Number of the task, from 0."""
    model_path: str | Path
    """File of the whole model, without wrappers."""
    masks_path: str | Path
    """File of the masks that the model has already; an empty dict for none."""
    config_list_path: str | Path
    """JSON file of the configuration list that the model reaches in this iteration."""
    status: TaskStatus = TaskStatus.PENDING
    """Progress."""
    score: float | None = None
    """Score of the result; None before it, and without an evaluator."""
    state: dict[str, object] = field(default_factory=dict)
    """JSON values that a task generator or a scheduler adds."""

    def load_data(self) -> tuple[nn.Module, dict[str, dict[str, Tensor]], list[dict[str, object]]]:
        """Read model, masks and configuration list; the model's file runs code when it is read.

        Returns:
            Model, masks and configuration list.

        Raises:
            OSError: a file cannot be read.
        """
        return (
            task_files.load_model(Path(self.model_path)),
            task_files.load_masks(Path(self.masks_path)),
            task_files.load_config_list(Path(self.config_list_path)),
        )

    def paths(self) -> set[Path]:
        """Return the files that the task starts from."""
        return {Path(self.model_path), Path(self.masks_path), Path(self.config_list_path)}

    def to_dict(self) -> dict[str, object]:
        """Return the task as JSON values; a score that is not finite is None.

        Returns:
            Fields by name.
        """
        finite = self.score is not None and math.isfinite(self.score)
        return {
            "task_id": self.task_id,
            "model_path": str(self.model_path),
            "masks_path": str(self.masks_path),
            "config_list_path": str(self.config_list_path),
            "status": self.status.value,
            "score": self.score if finite else None,
            "state": dict(self.state),
        }


@dataclass(frozen=True, slots=True)
class TaskResult:
    """Result of an iteration: model, masks needed, masks generated, score, values for the task."""

    task_id: int
    """Number of the task."""
    compact_model: nn.Module
    """The model without wrappers, smaller after a speedup."""
    compact_model_masks: Masks
    """Masks that the model still needs: none after a speedup, else `pruner_generated_masks`."""
    pruner_generated_masks: Masks
    """Masks that the pruner generated, of the shapes before a speedup."""
    score: float | None = None
    """What the evaluator returned; None without one."""
    state: Mapping[str, object] = field(default_factory=dict)
    """JSON values to add to those of the task."""
