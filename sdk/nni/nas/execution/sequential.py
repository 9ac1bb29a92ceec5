"""Engine that evaluates models one after another in the calling process."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from nni.nas.evaluator.trial_reports import reports_to
from nni.nas.execution.base import ExecutionEngine
from nni.nas.execution.events import FinalMetricEvent, IntermediateMetricEvent, TrainingEndEvent
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.space.status import ModelStatus

_logger = logging.getLogger(__name__)


class _ModelStopped(BaseException):
    """Raised within a model's evaluation by its next report after `stop_models`.

    No subclass of `Exception`, so that code of the evaluation does not take it for a failure.
    """


class SequentialExecutionEngine(ExecutionEngine):
    """Engine that evaluates each model within `submit_models`, in the calling process.

    A model that a callback submits waits until the present one has ended. Reports of the trial API
    (`nni.report_intermediate_result`, `nni.report_final_result`) become events.

    Args:
        max_model_count: number of models after which the budget ends; None for no limit.
        max_duration: seconds of evaluation after which the budget ends; None for no limit.
        continue_on_failure: false: an exception of an evaluation ends `submit_models`; true: it is
            logged.
        clock: function that returns seconds, never going back.

    Raises:
        ValueError: a limit is negative.

    Examples:
        >>> from nni.nas.execution import SequentialExecutionEngine
        >>> engine = SequentialExecutionEngine(max_model_count=2)
        >>> engine.budget_available()
        True
        >>> engine.state_dict()
        {'model_count': 0, 'total_duration': 0.0}
    """

    def __init__(
        self,
        max_model_count: int | None = None,
        max_duration: float | None = None,
        continue_on_failure: bool = False,  # noqa: FBT001, FBT002 - documented signature
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        for name, limit in (("max_model_count", max_model_count), ("max_duration", max_duration)):
            if limit is not None and limit < 0:
                raise ValueError(f"{name} must be >= 0, or None for no limit; got {limit!r}")
        self.max_model_count = max_model_count
        self.max_duration = max_duration
        self.continue_on_failure = continue_on_failure
        self._clock = clock
        self._model_count = 0
        self._total_duration = 0.0
        self._models: dict[int, ExecutableModelSpace] = {}
        self._lock = threading.Lock()  # of the models, and of what follows
        self._waiting: deque[ExecutableModelSpace] = deque()
        self._busy = False
        self._stopping: set[int] = set()
        self._is_shut_down = False

    def submit_models(self, *models: ExecutableModelSpace) -> None:
        """Evaluate models one by one until all ended; during another evaluation only queue.

        Called from a callback or from another thread during an evaluation, it returns at once, and
        the models are evaluated after those that wait already.

        Args:
            *models: frozen models that were not evaluated before.

        Raises:
            RuntimeError: a model is not frozen, or was evaluated already, or the engine was shut
                down; none has started.
        """
        for model in models:
            _check_submitted(model)
        if self._is_shut_down:
            raise RuntimeError("the engine was shut down; build a new one")
        with self._lock:
            self._models.update((id(model), model) for model in models)
            self._waiting.extend(models)
            if self._busy:
                return
            self._busy = True
        try:
            self._evaluate_waiting()
        finally:
            abandoned = self._end_evaluations()
            for model in abandoned:
                self.dispatch_model_event(TrainingEndEvent(model, ModelStatus.Interrupted))
            self.notify_change()

    def _evaluate_waiting(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._busy = False
                    return
                model = self._waiting.popleft()
            self._evaluate(model)

    def _end_evaluations(self) -> list[ExecutableModelSpace]:
        """Mark the engine idle; return the models that an exception has left waiting."""
        with self._lock:
            if not self._busy:
                return []
            abandoned = list(self._waiting)
            self._waiting.clear()
            self._busy = False
            return abandoned

    def _evaluate(self, model: ExecutableModelSpace) -> None:
        if not self.budget_available():
            _logger.error(
                "a model was submitted although the budget has ended (%d models, %.1f s); "
                "it is evaluated all the same",
                self._model_count,
                self._total_duration,
            )
        self._model_count += 1
        model.status = ModelStatus.Training
        start = self._clock()
        failure: BaseException | None = None
        status = ModelStatus.Trained
        try:
            with reports_to(
                model,
                lambda metric: self._report_intermediate(model, metric),
                lambda metric: self.dispatch_model_event(FinalMetricEvent(model, metric)),
            ):
                model.execute()
        except _ModelStopped:
            status = ModelStatus.Interrupted
        except Exception as error:  # noqa: BLE001 - evaluators are code of the user
            failure, status = error, ModelStatus.Failed
        except BaseException as error:  # noqa: BLE001 - raised again below
            failure, status = error, ModelStatus.Interrupted
        finally:
            self._total_duration += self._clock() - start
        with self._lock:
            self._stopping.discard(id(model))
        if failure is not None and status is ModelStatus.Failed and self.continue_on_failure:
            _logger.error("evaluation of a model failed", exc_info=failure)
        self.dispatch_model_event(TrainingEndEvent(model, status))
        if failure is not None and not self._is_handled(model, status):
            raise failure

    def _is_handled(self, model: ExecutableModelSpace, status: ModelStatus) -> bool:
        """Return whether an exception is not to be raised: a failure, allowed or retried.

        A callback that evaluates the model again has stopped the event, so that the status differs.
        """
        return status is ModelStatus.Failed and (
            self.continue_on_failure or model.status is not ModelStatus.Failed
        )

    def _report_intermediate(self, model: ExecutableModelSpace, metric: object) -> None:
        self.dispatch_model_event(IntermediateMetricEvent(model, metric))
        with self._lock:
            stopped = id(model) in self._stopping
        if stopped:
            raise _ModelStopped

    def can_stop_models(self) -> bool:
        """Return True: the next intermediate report ends a stopped model.

        Returns:
            True.
        """
        return True

    def stop_models(self, *models: ExecutableModelSpace) -> None:
        """Stop running models: the next intermediate report ends the evaluation.

        Args:
            *models: running models; others are ignored.
        """
        with self._lock:
            self._stopping.update(id(m) for m in models if m.status is ModelStatus.Training)

    def list_models(self, status: ModelStatus | None = None) -> list[ExecutableModelSpace]:
        """Return the submitted models, of one status if given, in order of submission.

        Args:
            status: only those of this status; None for all.

        Returns:
            The models.
        """
        with self._lock:
            models = list(self._models.values())
        return [one for one in models if status is None or one.status == status]

    def idle_worker_available(self) -> bool:
        """Return whether no model is being evaluated.

        Returns:
            True if a submitted model would start at once.
        """
        with self._lock:
            return not self._busy

    def budget_available(self) -> bool:
        """Return whether the engine is not shut down, and model and time limits not reached.

        Returns:
            True if one more model fits.
        """
        return (
            not self._is_shut_down
            and (self.max_model_count is None or self._model_count < self.max_model_count)
            and (self.max_duration is None or self._total_duration < self.max_duration)
        )

    def shutdown(self) -> None:
        """Mark the budget as used up, so that strategies stop; the current evaluation completes."""
        self._is_shut_down = True
        self.notify_change()

    def state_dict(self) -> dict[str, Any]:
        """Return the spent budget: number of models, and seconds of evaluation.

        Returns:
            `model_count`, and `total_duration` in seconds.
        """
        return {"model_count": self._model_count, "total_duration": self._total_duration}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore how much of the budget is spent.

        Args:
            state_dict: what `state_dict` of an earlier engine returned.
        """
        self._model_count = int(state_dict["model_count"])
        self._total_duration = float(state_dict["total_duration"])


def _check_submitted(model: ExecutableModelSpace) -> None:
    if not model.status.frozen():
        raise RuntimeError(
            f"a submitted model must be frozen, its status is {model.status}; "
            "call freeze(sample) of the space"
        )
    if model.status.completed():
        raise RuntimeError(
            f"a submitted model must not be evaluated already, its status is {model.status}; "
            "freeze the sample again"
        )
