"""Checker of the invariants that every log must keep."""

from __future__ import annotations

from collections import Counter

from svc_manager.converters.event_codec import event_from
from svc_manager.converters.events import batch_from_bytes
from svc_manager.converters.scalars import to_ms
from svc_manager.domain import events
from svc_manager.domain.fold import fold
from svc_manager.domain.state import Experiment
from tests.support.simulation.bus import SimulatedBus
from tests.support.simulation.manager import ViolationError


class Auditor:
    """Fold of the log that raises `ViolationError` for events that break an invariant.

    The fold itself refuses transitions that the tables do not have.
    """

    def __init__(self, bus: SimulatedBus) -> None:
        self.experiment = Experiment()
        self.events = 0
        self.decisions = 0
        """Events other than the late answers of an algorithm."""
        self.ends: Counter[str] = Counter()
        self._bus = bus
        self._read = 0
        self._cursor = 0
        self._epoch = 0
        bus.on_log(self._log_grew)

    def _log_grew(self) -> None:
        for batch in self._bus.log[self._read :]:
            message = batch_from_bytes(batch.payload)
            if message.epoch < self._epoch:
                raise ViolationError(
                    f"a manager of epoch {message.epoch} wrote after {self._epoch}"
                )
            if message.inbox_sequence < self._cursor:
                raise ViolationError("the cursor of the INBOX went back")
            self._epoch, self._cursor = message.epoch, message.inbox_sequence
            time_ms = to_ms(message.time)
            if time_ms < self.experiment.logged_at_ms:
                raise ViolationError(f"the time of the log went back to {time_ms} ms")
            for item in message.events:
                event = event_from(item)
                assert event is not None
                self._check(event)
                fold(self.experiment, event, time_ms)
                self.events += 1
                self.decisions += not isinstance(event, events.ParametersGenerated)
        self._read = len(self._bus.log)

    def _check(self, event: events.Event) -> None:
        experiment = self.experiment
        if isinstance(event, events.TrialScheduled):
            self._check_scheduled(experiment, event)
        elif isinstance(event, events.TrialEnded):
            self.ends[event.trial_id] += 1
            if self.ends[event.trial_id] > 1:
                raise ViolationError(f"trial {event.trial_id} ended twice")
            if event.ended_at_ms < experiment.trials[event.trial_id].started_at_ms:
                raise ViolationError(f"trial {event.trial_id} ended before its start")
        elif isinstance(event, events.MetricReported | events.TrialStarted | events.TrialLost):
            trial = experiment.trials[event.trial_id]
            if trial.attempt != event.attempt or not trial.live:
                raise ViolationError(f"{type(event).__name__} of another attempt: {event}")
        if isinstance(event, events.TrialsRequested):
            budget = experiment.budget
            if budget.max_trial_number is not None:
                made = (
                    len(experiment.trials)
                    + len(experiment.algorithm.queue)
                    + experiment.algorithm.outstanding
                )
                if made + len(event.parameter_ids) > budget.max_trial_number:
                    raise ViolationError("more parameters were requested than there are trials")

    @staticmethod
    def _check_scheduled(experiment: Experiment, event: events.TrialScheduled) -> None:
        limit = experiment.budget.max_trial_number
        if limit is not None and len(experiment.trials) >= limit:
            raise ViolationError(
                f"{len(experiment.trials) + 1} trials were created of at most {limit}"
            )
        if len(experiment.live) >= experiment.budget.trial_concurrency:
            raise ViolationError(f"{len(experiment.live) + 1} trials are live at once")
        if event.trial_id in experiment.trials:
            raise ViolationError(f"two trials are called {event.trial_id}")
        if event.sequence_id != len(experiment.trials):
            raise ViolationError(
                f"sequence id {event.sequence_id} follows {len(experiment.trials) - 1}"
            )
        if any(trial.parameter_id == event.parameter_id for trial in experiment.trials.values()):
            raise ViolationError(f"parameter {event.parameter_id} has two trials")
