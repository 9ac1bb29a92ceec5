"""Iterative pruning: a task generator decides what is pruned, a pruner prunes it."""

import copy
import logging
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from nni.compression.base.evaluator import Evaluator
from nni.compression.base.pruner import Masks, Pruner
from nni.compression.scheduling.callbacks import (
    Finetuner,
    Scorer,
    check_callback,
    finetune,
    learn_names,
    score,
)
from nni.compression.scheduling.task import Task, TaskResult
from nni.compression.scheduling.task_generator import BestResult, TaskGenerator
from nni.compression.speedup.model_speedup import ModelSpeedup

_logger = logging.getLogger(__name__)


class PruningScheduler:
    """Iterative pruning by a pruner, along the tasks of a generator; the best result is kept.

    Each task loads a model, masks and a configuration list; prunes; and may remove what is
    masked, fine-tune and evaluate. Until a speedup the model is fine-tuned and evaluated with its
    masks. What is masked stays masked. With `reset_weight` the model is fine-tuned before it is
    pruned, and its weights are then those that the task started from; the score of the trained
    model is in the state of the task, as `score_before_reset`.

    Args:
        pruner: the pruner, best made with `model=None, config_list=None`.
        task_generator: the tasks.
        finetuner: function of the model that trains it in place, or an evaluator; None for no
            fine-tuning, unless `evaluator` is an evaluator, which then fine-tunes too.
        speed_up: remove masked channels in each iteration.
        dummy_input: inputs of the model for the speedup; None for those of the evaluator.
        evaluator: function of the model that returns a score, larger is better, or an evaluator;
            None for no scores.
        reset_weight: see above.
        speedup: other name of `speed_up`.

    Attributes:
        pruner: see above.
        task_generator: see above.

    Raises:
        TypeError: an argument has another type.
        ValueError: a speedup has no `dummy_input`, or an evaluator is of another model.

    Examples:
        >>> import tempfile
        >>> from torch import nn
        >>> from nni.compression.pruning import LevelPruner, PruningScheduler
        >>> from nni.compression.pruning.tools import AGPTaskGenerator
        >>> model = nn.Sequential(nn.Linear(10, 10))
        >>> config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.8}]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     generator = AGPTaskGenerator(4, model, config_list, log_dir=folder)
        ...     scheduler = PruningScheduler(LevelPruner(None, None), generator)
        ...     scheduler.compress()
        ...     task_id, model, masks, score, config_list = scheduler.get_best_result()
        >>> task_id, int(masks["0"]["weight"].sum())
        (4, 20)
    """

    def __init__(
        self,
        pruner: Pruner,
        task_generator: TaskGenerator,
        finetuner: Finetuner | None = None,
        speed_up: bool = False,  # noqa: FBT001, FBT002 - as in NNI 2.x
        dummy_input: Any = None,  # noqa: ANN401 - inputs of a model
        evaluator: Scorer | None = None,
        reset_weight: bool = False,  # noqa: FBT001, FBT002 - as in NNI 2.x
        *,
        speedup: bool = False,
    ) -> None:
        if not isinstance(pruner, Pruner):
            raise TypeError(f"pruner must be a pruner, such as L1NormPruner, got {pruner!r}")
        if not isinstance(task_generator, TaskGenerator):
            raise TypeError(f"task_generator must be a TaskGenerator, got {task_generator!r}")
        check_callback("finetuner", finetuner)
        check_callback("evaluator", evaluator)
        if isinstance(evaluator, Evaluator):
            finetuner = evaluator if finetuner is None else finetuner
            evaluator = evaluator if evaluator.can_evaluate else None
        if dummy_input is None:
            dummy_input = _dummy_input(evaluator, finetuner, pruner.evaluator)
        self._speedup = speed_up or speedup
        if self._speedup and dummy_input is None:
            raise ValueError("dummy_input is missing: speed_up needs inputs of the model")
        for one in (pruner.evaluator, finetuner, evaluator):
            learn_names(one, task_generator.origin_model)
        task_generator.shared_entries = pruner.per_entry
        self.pruner = pruner
        self.task_generator = task_generator
        self._finetuner = finetuner
        self._evaluator = evaluator
        self._dummy_input = dummy_input
        self._reset_weight = reset_weight

    def compress(self) -> None:
        """Run all tasks; `get_best_result` has the result.

        Raises:
            OSError: a file cannot be written.
        """
        while (task := self.task_generator.next()) is not None:
            result = self.run_one_step(task)
            self.task_generator.receive_task_result(result)

    def get_best_result(self) -> BestResult | None:
        """Return the best result so far; None before the first one.

        Returns:
            Number of the task, model without wrappers, masks that it still needs, score, and the
            configuration list of the task.
        """
        return self.task_generator.get_best_result()

    def run_one_step(self, task: Task) -> TaskResult:
        """Load a task, prune, and as configured speed up, fine-tune and score; return the result.

        Args:
            task: what `TaskGenerator.next` returned.

        Returns:
            Its result.
        """
        model, masks, config_list = task.load_data()
        self.pruner.reset(model, config_list)
        self.pruner.load_masks(masks)
        try:
            if self._reset_weight:
                return self._step_with_reset(task, model, masks)
            return self._step(task, model, masks)
        finally:
            self.pruner.unwrap_model()

    def _step(self, task: Task, model: nn.Module, masks: Masks) -> TaskResult:
        generated = self._prune(task, masks)
        needed = self._speed_up(model, generated)
        if self._finetuner is not None:
            finetune(self._finetuner, model)
        return self._result(task, model, needed, generated)

    def _step_with_reset(self, task: Task, model: nn.Module, masks: Masks) -> TaskResult:
        plain = self.pruner.unwrap_model().state_dict()
        weights = {name: value.detach().clone() for name, value in plain.items()}
        self.pruner.wrap_model()
        if self._finetuner is not None:
            finetune(self._finetuner, model)
        generated = self._prune(task, masks)
        state = {"score_before_reset": self._score(model)} if self._evaluator is not None else {}
        self.pruner.unwrap_model().load_state_dict(weights)
        self.pruner.wrap_model()
        needed = self._speed_up(model, generated)
        return self._result(task, model, needed, generated, state)

    def _prune(self, task: Task, masks: Masks) -> Masks:
        """Prune, set the masks together with the earlier ones, and return copies of all."""
        self.pruner.compress()
        self.pruner.update_masks(_both(masks, self.pruner.get_masks()))
        generated = self.pruner.get_masks()
        lost = sum(float((one == 0).sum()) for own in generated.values() for one in own.values())
        _logger.info("task %d: %d values are masked", task.task_id, lost)
        return generated

    def _speed_up(self, model: nn.Module, masks: Masks) -> Masks:
        """If configured, remove masked channels in place, return no masks; else the given ones."""
        if not self._speedup:
            return masks
        self.pruner.unwrap_model()
        speedup = ModelSpeedup(model, self._dummy_input, masks)
        speedup.speedup_model()
        if speedup.report is not None:
            for one in speedup.report.kept:
                _logger.info("%s keeps %d masked channels: %s", one.layer, one.count, one.reason)
        return {}

    def _result(
        self,
        task: Task,
        model: nn.Module,
        needed: Masks,
        generated: Masks,
        state: Mapping[str, object] | None = None,
    ) -> TaskResult:
        found = self._score(model)
        if self.pruner.is_wrapped:
            self.pruner.unwrap_model()
        return TaskResult(
            task_id=task.task_id,
            compact_model=model,
            compact_model_masks=needed,
            pruner_generated_masks=generated,
            score=found,
            state=copy.deepcopy(dict(state or {})),
        )

    def _score(self, model: nn.Module) -> float | None:
        return None if self._evaluator is None else score(self._evaluator, model)


def _both(earlier: Masks, later: Masks) -> dict[str, dict[str, Tensor]]:
    """Return later masks times earlier ones; targets without an earlier mask are left out."""
    return {
        name: {
            target: mask * earlier[name][target].to(mask)
            for target, mask in targets.items()
            if target in earlier.get(name, {})
        }
        for name, targets in later.items()
    }


def _dummy_input(*candidates: object) -> object:
    found = [one.get_dummy_input() for one in candidates if isinstance(one, Evaluator)]
    return next((one for one in found if one is not None), None)
