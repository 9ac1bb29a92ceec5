"""Reads the log as it grows and checks what must hold of every log, whatever happened."""

from __future__ import annotations

from collections import Counter

from svc_manager.converters.event_codec import event_from
from svc_manager.converters.events import batch_from_bytes
from svc_manager.converters.scalars import to_ms
from svc_manager.domain import events as e
from svc_manager.domain.fold import fold
from svc_manager.domain.state import Experiment
from tests.support.simulation.bus import SimulatedBus
from tests.support.simulation.manager import ViolationError


class Auditor:
    """A fresh fold of the log that refuses impossible facts.

    The fold itself refuses transitions that the tables do not have.
    """

    def __init__(self, bus: SimulatedBus) -> None:
        self.experiment = Experiment()
        self.events = 0
        self.decisions = 0
        """Events that are not merely an algorithm's late answer."""
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
            for item in message.events:
                event = event_from(item)
                assert event is not None
                self._check(event)
                fold(self.experiment, event, time_ms)
                self.events += 1
                self.decisions += not isinstance(event, e.ParametersGenerated)
        self._read = len(self._bus.log)

    def _check(self, event: e.Event) -> None:
        x = self.experiment
        if isinstance(event, e.TrialScheduled):
            self._check_scheduled(x, event)
        elif isinstance(event, e.TrialEnded):
            self.ends[event.trial_id] += 1
            if self.ends[event.trial_id] > 1:
                raise ViolationError(f"trial {event.trial_id} ended twice")
        elif isinstance(event, e.MetricReported | e.TrialStarted | e.TrialLost):
            trial = x.trials[event.trial_id]
            if trial.attempt != event.attempt or not trial.live:
                raise ViolationError(f"{type(event).__name__} of another attempt: {event}")
        if isinstance(event, e.TrialsRequested):
            budget = x.budget
            if budget.max_trial_number is not None:
                made = len(x.trials) + len(x.algorithm.queue) + x.algorithm.outstanding
                if made + len(event.parameter_ids) > budget.max_trial_number:
                    raise ViolationError("more parameters were asked for than there are trials")

    @staticmethod
    def _check_scheduled(x: Experiment, event: e.TrialScheduled) -> None:
        limit = x.budget.max_trial_number
        if limit is not None and len(x.trials) >= limit:
            raise ViolationError(f"{len(x.trials) + 1} trials were created of at most {limit}")
        if len(x.live) >= x.budget.trial_concurrency:
            raise ViolationError(f"{len(x.live) + 1} trials live at once")
        if event.trial_id in x.trials:
            raise ViolationError(f"two trials are called {event.trial_id}")
        if event.sequence_id != len(x.trials):
            raise ViolationError(f"sequence id {event.sequence_id} follows {len(x.trials) - 1}")
        if any(trial.parameter_id == event.parameter_id for trial in x.trials.values()):
            raise ViolationError(f"parameter {event.parameter_id} has two trials")
