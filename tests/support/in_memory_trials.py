"""Platform of trials in memory, whose log outlives the engine, for tests of engines."""

import threading
from collections.abc import Iterator, Mapping
from typing import Any

from nni.nas.execution.trial_platform import (
    CandidateAdded,
    CandidateEnded,
    CandidateMetric,
    CandidateScheduled,
    PlatformClosed,
    PlatformEvent,
)


class InMemoryLog:
    """Log of one experiment, which several platforms read one after another."""

    def __init__(self) -> None:
        self.events: list[PlatformEvent] = []
        self.parameters: dict[str, Mapping[str, Any]] = {}
        self.killed: list[str] = []
        self.changed = threading.Condition()

    def append(self, *events: PlatformEvent) -> None:
        with self.changed:
            self.events.extend(events)
            self.changed.notify_all()

    def finish(self, trial_id: str, value: object = None, *, succeeded: bool = True) -> None:
        """End a trial, with a final metric if a value is given."""
        if value is not None:
            self.append(CandidateMetric(trial_id, value, is_final=True))
        self.append(CandidateEnded(trial_id, succeeded))


class InMemoryTrials:
    """`TrialPlatform` whose trials end when the test says so; the id of a trial is its key.

    Attributes:
        opened: ids that `open` was called with.
        broken: error that `add` raises.
    """

    def __init__(self, log: InMemoryLog | None = None) -> None:
        self.log = log or InMemoryLog()
        self.opened: list[str | None] = []
        self.broken: Exception | None = None
        self._read = 0
        self._closed = False

    def open(self, experiment_id: str | None) -> str:
        self.opened.append(experiment_id)
        return experiment_id or "experiment"

    def add(self, key: str, parameters: Mapping[str, Any]) -> None:
        if self.broken is not None:
            raise self.broken
        self.log.parameters[key] = parameters
        self.log.append(CandidateAdded(key, parameters), CandidateScheduled(key, key))

    def kill(self, trial_id: str) -> None:
        self.log.killed.append(trial_id)
        self.log.finish(trial_id, succeeded=False)

    def parameters(self, trial_id: str) -> Mapping[str, Any]:
        return self.log.parameters[trial_id]

    def events(self, *, follow: bool) -> Iterator[PlatformEvent]:
        while True:
            with self.log.changed:
                if follow:
                    self.log.changed.wait_for(
                        lambda: self._closed or self._read < len(self.log.events)
                    )
                if self._read == len(self.log.events):
                    return
                event = self.log.events[self._read]
                self._read += 1
            yield event
            if follow and isinstance(event, PlatformClosed) and event.is_final:
                return

    def close(self) -> None:
        with self.log.changed:
            self._closed = True
            self.log.changed.notify_all()
