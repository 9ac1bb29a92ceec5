"""Engine whose models are trials of a platform, while the strategy stays in this process."""

from __future__ import annotations

import logging
import secrets
import threading
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Any, Final

from nni.nas.execution.base import ExecutionEngine
from nni.nas.execution.candidate import model_from, parameters_of
from nni.nas.execution.events import FinalMetricEvent, IntermediateMetricEvent, TrainingEndEvent
from nni.nas.execution.payload_files import PayloadFiles
from nni.nas.execution.trial_platform import (
    CandidateAdded,
    CandidateEnded,
    CandidateLost,
    CandidateMetric,
    CandidateScheduled,
    PlatformClosed,
    PlatformEvent,
    PlatformLimits,
    PlatformOpened,
    TrialPlatform,
)
from nni.nas.execution.trial_signatures import TrialSigner
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.space.status import ModelStatus

_logger = logging.getLogger(__name__)

_CLOSE_TIMEOUT_S: Final = 10.0
"""Time that `shutdown` waits for the thread of the events."""
_RETRY: Final = "~"
"""Part of a key between that of the model's first trial and the number of a further one."""


class _EndOfEvents:
    """Queue item after the last event of an experiment: models that have not ended never will."""


class TrainingServiceExecutionEngine(ExecutionEngine):
    """Engine that evaluates each model as a trial of a platform.

    A model travels as its sample and the calls that make space and evaluator; parts that are no
    traced call may have 64 KB. Reports of the trial become events in a thread of the engine. The
    log of the platform is the record: an engine that loads the state of an earlier one goes on with
    the same experiment. Trials that the earlier process did not count wait for a model of the same
    sample, which a strategy usually submits again; what is left at the end is reported then.

    Metrics of an attempt that was lost with its machine are removed from the model.

    Args:
        platform: where trials run.
        concurrency: number of trials that run at once.
        max_model_count: number of models after which the budget ends; None for no limit.
        payloads: store of parts that are no traced call and larger; None: they are refused.
        signer: signs the trials, and those of others are ignored; None: all trials of the
            experiment are of this search, and reading their models runs code of their authors.

    Attributes:
        payloads: store of large parts of models.

    Raises:
        ValueError: a number is too small.

    Examples:
        `NasExperiment` makes the engine, with the platform of its configuration:

        >>> from nni.nas.experiment import NasExperimentConfig
        >>> NasExperimentConfig("ts", "simplified", trial_concurrency=2).execution_engine.name
        'ts'
    """

    def __init__(
        self,
        platform: TrialPlatform,
        concurrency: int = 1,
        max_model_count: int | None = None,
        *,
        payloads: PayloadFiles | None = None,
        signer: TrialSigner | None = None,
    ) -> None:
        super().__init__()
        if concurrency < 1:
            raise ValueError(f"concurrency must be >= 1, got {concurrency!r}")
        if max_model_count is not None and max_model_count < 0:
            raise ValueError(f"max_model_count must be >= 0 or None, got {max_model_count!r}")
        self._platform = platform
        self.payloads = payloads
        self._signer = signer
        self._concurrency = concurrency
        self._max_model_count = max_model_count
        self._prefix = secrets.token_hex(4)
        self._experiment_id: str | None = None
        self._restored: Counter[str] = Counter()
        self._opening = threading.RLock()
        self._listener: threading.Thread | None = None
        self._lock = threading.Lock()  # of what follows
        self._keys: dict[str, None] = {}
        """Keys of all models of the experiment, in the order in which they were added."""
        self._ended: set[str] = set()
        self._models: dict[str, ExecutableModelSpace] = {}
        """Models of this process, and those that an earlier one has not counted."""
        self._trials: dict[str, str] = {}
        self._stopping: set[str] = set()
        self._held: dict[str, list[PlatformEvent]] = {}
        """Events of trials of an earlier process that wait for their model, by key."""
        self._held_keys: dict[str, list[str]] = {}
        """Keys of those trials, by the text of their sample."""
        self._queue: deque[PlatformEvent | _EndOfEvents] = deque()
        self._handling = False
        self._closed_reason = ""
        self._is_shut_down = False
        self._failure: BaseException | None = None

    @property
    def platform(self) -> TrialPlatform:
        """Platform where trials run."""
        return self._platform

    # Models

    def submit_models(self, *models: ExecutableModelSpace) -> None:
        """Add a trial for each model, or bind it to a trial of an earlier process; do not wait.

        Args:
            *models: frozen models that were not evaluated before.

        Raises:
            RuntimeError: a model is not frozen, or the search has failed or was stopped.
            nni.common.serializer.PayloadTooLarge: a model cannot travel.
        """
        self._open()
        for model in models:
            if model.status not in {ModelStatus.Frozen, ModelStatus.Retrying}:
                raise RuntimeError(
                    f"a submitted model must be frozen, its status is {model.status}; "
                    "call freeze(sample) of the space"
                )
            self._check_open()
            if self._adopt(model):
                continue
            if self._is_full():  # by trials of an earlier process that this strategy does not want
                self._release_held()
                self.dispatch_model_event(TrainingEndEvent(model, ModelStatus.Interrupted))
                continue
            self._add(model)

    def _add(self, model: ExecutableModelSpace) -> None:
        is_retry = model.status is ModelStatus.Retrying
        model.status = ModelStatus.Frozen  # in the trial, too
        parameters = parameters_of(model, self.payloads)
        with self._lock:
            key = f"{self._prefix}-{len(self._keys)}"
            if is_retry:
                first = next((old for old, one in self._models.items() if one is model), key)
                key = f"{_first_key(first)}{_RETRY}{len(self._keys)}"
            self._keys[key] = None
            self._models[key] = model
        model.status = ModelStatus.Training
        try:
            signer = self._signer
            self._platform.add(key, signer.sign(key, parameters) if signer else parameters)
        except BaseException:
            self._end(key, ModelStatus.Failed)
            raise

    def _adopt(self, model: ExecutableModelSpace) -> bool:
        """Bind a model to a held earlier trial with its sample; return whether there was one."""
        with self._lock:
            keys = self._held_keys.get(_sample_text(model))
            if not keys:
                return False
            key = keys.pop(0)
            self._models[key] = model
            model.status = ModelStatus.Training
            self._queue.extend(self._held.pop(key))
        self._handle_queue()
        return True

    def _is_full(self) -> bool:
        with self._lock:
            limit = self._max_model_count
            return bool(self._held) and limit is not None and len(self._keys) >= limit

    def _release_held(self) -> None:
        """Handle the events held for earlier trials, although no model was submitted."""
        with self._lock:
            self._queue_held()
        self._handle_queue()

    def _queue_held(self) -> None:
        """Move the held events to the queue; the caller has the lock."""
        for events in self._held.values():
            self._queue.extend(events)
        self._held.clear()
        self._held_keys.clear()

    def _end_events(self) -> None:
        """Queue the held events and the end of all; handle the queue unless another thread does."""
        with self._lock:
            self._queue_held()
            self._queue.append(_EndOfEvents())
        self._handle_queue()

    def _check_open(self) -> None:
        if self._failure is not None:
            raise RuntimeError(f"the search has failed: {self._failure!r}") from self._failure
        if self._closed_reason:
            raise RuntimeError(f"the experiment takes no more models: {self._closed_reason}")

    def list_models(self, status: ModelStatus | None = None) -> Iterable[ExecutableModelSpace]:
        """Return models of this process and uncounted earlier ones, of one status if given.

        Args:
            status: only those of this status; None for all.

        Returns:
            The models, in the order of their submission.
        """
        with self._lock:
            found = [self._models[key] for key in self._keys if key in self._models]
        models = {id(model): model for model in found}.values()  # a retried one has several keys
        return [one for one in models if status is None or one.status == status]

    def wait_models(self, *models: ExecutableModelSpace) -> None:
        """Wait until models, or all, are completed; raise RuntimeError if the search failed.

        Args:
            *models: the models; none for all that were submitted.

        Raises:
            RuntimeError: the connection with the platform, or a callback, has failed.
        """
        if models:
            super().wait_models(*models)
        else:
            self._release_held()
            self.wait_until(lambda: self._running_count() == 0)
        if self._failure is not None:
            raise RuntimeError(f"the search has failed: {self._failure!r}") from self._failure

    def can_stop_models(self) -> bool:
        """Return True: trials can be killed.

        Returns:
            True.
        """
        return True

    def stop_models(self, *models: ExecutableModelSpace) -> None:
        """Kill the trials of running models without waiting; each ends as interrupted.

        Args:
            *models: running models; others are ignored.
        """
        wanted = {id(model) for model in models}
        with self._lock:
            keys = [key for key, model in self._models.items() if id(model) in wanted]
            running = [key for key in keys if key not in self._ended]
            self._stopping.update(running)
            trials = [self._trials[key] for key in running if key in self._trials]
        for trial_id in trials:
            self._platform.kill(trial_id)

    # Resources

    def idle_worker_available(self) -> bool:
        """Return whether fewer models run than trials may run at once.

        Returns:
            True if a worker is idle.
        """
        self._open()
        return self._running_count() < self._concurrency

    def _running_count(self) -> int:
        with self._lock:
            return len(self._keys) - len(self._ended) - len(self._held)

    def budget_available(self) -> bool:
        """Open the experiment if needed; return whether more models may be submitted.

        Returns:
            False once the limit is reached, the experiment has ended, or the search has failed.
        """
        self._open()
        with self._lock:
            limit = self._max_model_count
            fits = limit is None or len(self._keys) < limit or bool(self._held)
        return fits and not self._closed_reason and self._failure is None

    # Events of the platform

    def start(self) -> None:
        """Create the experiment, or resume that of the loaded state."""
        self._open()

    def _open(self) -> None:
        """At the first call create or resume the experiment, and follow its log in a thread."""
        with self._opening:
            if self._listener is not None or self._is_shut_down:
                return
            resumes = self._experiment_id is not None
            self._experiment_id = self._platform.open(self._experiment_id)
            # Named before the log is read: callbacks of what it holds may submit models.
            self._listener = threading.Thread(target=self._follow, name="nas trials", daemon=True)
            if resumes:
                self._catch_up()
            self._listener.start()

    def _catch_up(self) -> None:
        """Read what is in the log; hold the trials that an earlier process did not count."""
        past = list(self._platform.events(follow=False))
        self._hold_uncounted(past)
        for event in past:
            match event:
                case PlatformOpened():
                    self._closed_reason = ""
                case PlatformClosed(reason):
                    self._closed_reason = reason
                case PlatformLimits():
                    self._change_limits(event)
                case _ if event.key in self._held:
                    self._held[event.key].append(event)

    def _hold_uncounted(self, past: list[PlatformEvent]) -> None:
        """Hold a log's trials that an earlier process did not count; mark others ended."""
        ended = {event.key for event in past if isinstance(event, CandidateEnded)}
        retries: dict[str, list[CandidateAdded]] = {}
        for event in past:
            if isinstance(event, CandidateAdded) and self._is_own(event.key, event.parameters):
                self._keys[event.key] = None
                retries.setdefault(_first_key(event.key), []).append(event)
        results = {
            event.key: event.value
            for event in past
            if isinstance(event, CandidateMetric) and event.is_final
        }
        for trials in retries.values():  # of one model each
            model = model_from(trials[0].parameters)
            sample = _sample_text(model)
            keys = [trial.key for trial in trials]
            if keys[-1] in results:
                model.take_result(results[keys[-1]])
            counted = _sample_text(model)  # another one if the model was a whole search
            if keys[-1] in ended and self._restored[counted] > 0:
                self._restored[counted] -= 1
                self._ended.update(keys)
            else:
                self._held.update((key, []) for key in keys)
                self._held_keys.setdefault(sample, []).extend(keys)

    def _follow(self) -> None:
        try:
            for event in self._platform.events(follow=True):
                self._apply(event)
        except Exception as error:
            self._failure = error  # raised again in the thread of the strategy
            _logger.exception("the search has failed")
        self._end_events()
        self.notify_change()

    def _interrupt_all(self) -> None:
        with self._lock:
            left = [key for key in self._keys if key not in self._ended]
        for key in left:
            self._end(key, ModelStatus.Interrupted)

    def _apply(self, event: PlatformEvent) -> None:
        """Handle an event, or hold it until the model of its trial is known."""
        with self._lock:
            match event:
                case PlatformClosed() | PlatformOpened() | PlatformLimits():
                    self._queue.append(event)
                case _ if event.key in self._held:
                    self._held[event.key].append(event)
                    return
                case _:
                    self._queue.append(event)
        self._handle_queue()

    def _handle_queue(self) -> None:
        """Handle queued events in order, without a lock; do nothing if another call does it."""
        while True:
            with self._lock:
                if self._handling or not self._queue:
                    return
                self._handling = True
                event = self._queue.popleft()
            try:
                self._handle(event)
            finally:
                with self._lock:
                    self._handling = False

    def _is_own(self, key: str, parameters: Mapping[str, Any]) -> bool:
        """Return whether this search's secret signed a trial, else warn; True without a signer."""
        if self._signer is None or self._signer.is_signed(key, parameters):
            return True
        _logger.warning("trial %s was not added by this search; it is ignored", key)
        return False

    def _handle(self, event: PlatformEvent | _EndOfEvents) -> None:
        match event:
            case _EndOfEvents():
                self._interrupt_all()
            case PlatformClosed() | PlatformOpened() | PlatformLimits():
                self._handle_change(event)
            case CandidateAdded(key, parameters):
                if key not in self._keys and self._is_own(key, parameters):
                    with self._lock:
                        self._keys.setdefault(key)
            case _ if self._signer is None or event.key in self._keys:
                self._handle_candidate(event)

    def _handle_candidate(
        self, event: CandidateScheduled | CandidateLost | CandidateMetric | CandidateEnded
    ) -> None:
        match event:
            case CandidateScheduled(key, trial_id):
                self._schedule(key, trial_id)
            case CandidateLost(key):
                if key in self._models:
                    self._models[key].metrics.clear()
            case CandidateMetric(key, value, is_final):
                if key in self._models:
                    model = self._models[key]
                    self.dispatch_model_event(
                        FinalMetricEvent(model, model.take_result(value))
                        if is_final
                        else IntermediateMetricEvent(model, value)
                    )
            case CandidateEnded(key, succeeded):
                failed = ModelStatus.Interrupted if key in self._stopping else ModelStatus.Failed
                self._end(key, ModelStatus.Trained if succeeded else failed)

    def _handle_change(self, event: PlatformClosed | PlatformOpened | PlatformLimits) -> None:
        match event:
            case PlatformClosed(reason, is_final):
                self._close(reason, is_final=is_final)
            case PlatformOpened():
                self._reopen()
            case PlatformLimits():
                self._change_limits(event)

    def _schedule(self, key: str, trial_id: str) -> None:
        if key not in self._models:
            parameters = self._platform.parameters(trial_id)
            if not self._is_own(key, parameters):
                return
            model = model_from(parameters)
            model.status = ModelStatus.Training
            with self._lock:
                self._models[key] = model
        with self._lock:
            self._trials[key] = trial_id
            stops = key in self._stopping
        if stops:
            self._platform.kill(trial_id)

    def _end(self, key: str, status: ModelStatus) -> None:
        if key in self._ended:
            return
        model = self._models.get(key)
        if model is not None:
            self.dispatch_model_event(TrainingEndEvent(model, status))
        with self._lock:  # after the callbacks: they may decide on the next model
            self._ended.add(key)
        self.notify_change()

    def _close(self, reason: str, *, is_final: bool) -> None:
        self._closed_reason = reason
        if is_final:
            self._end_events()
        self.notify_change()

    def _change_limits(self, limits: PlatformLimits) -> None:
        with self._lock:
            if limits.max_trial_number is not None:
                self._max_model_count = limits.max_trial_number
            self._concurrency = limits.concurrency or self._concurrency
        self.notify_change()

    def _reopen(self) -> None:
        with self._opening:
            if not self._is_shut_down:
                self._closed_reason = ""
        self.notify_change()

    # End and state

    def shutdown(self) -> None:
        """Stop the experiment; wait for its events at most 10 s; may be called twice."""
        with self._opening:
            self._is_shut_down = True
            self._closed_reason = self._closed_reason or "the engine was shut down"
            listener = self._listener
        self._platform.close()
        if listener is not None and listener is not threading.current_thread():
            listener.join(_CLOSE_TIMEOUT_S)
        self.notify_change()

    def state_dict(self) -> dict[str, Any]:
        """Return the experiment's id, and the signer's secret if there is a signer.

        Returns:
            `experiment_id`; None before the first model. `trial_secret` with a signer: who has it
            can have the search run code.
        """
        state = {"experiment_id": self._experiment_id}
        if self._signer is not None:
            state["trial_secret"] = self._signer.secret
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the id of the experiment to continue, and the signer's secret.

        Args:
            state_dict: what `state_dict` of an earlier engine returned.
        """
        self._experiment_id = state_dict.get("experiment_id")
        if self._signer is not None and "trial_secret" in state_dict:
            self._signer = TrialSigner(state_dict["trial_secret"])

    def restore_models(self, models: Iterable[ExecutableModelSpace]) -> None:
        """Set the completed models of an earlier process, whose events are not reported again.

        Args:
            models: completed models, after `load_state_dict`.
        """
        self._restored = Counter(map(_sample_text, models))


def _first_key(key: str) -> str:
    """Return the key under which a model was added first; later ones name its retries."""
    return key.partition(_RETRY)[0]


def _sample_text(model: ExecutableModelSpace) -> str:
    return repr(sorted((str(label), repr(value)) for label, value in (model.sample or {}).items()))


if __name__ == "__main__":
    from nni.nas.execution.trial import main

    main()
