"""Intermediate results of ended trials, for the algorithms of later generations."""

from collections import deque
from typing import Final

from svc_dispatcher.domain.commands import PastCurve
from svc_dispatcher.domain.values import Payload

_COMPLETED: Final = 200
"""Newest completed trials, which stopped ones are compared with ..."""
_STOPPED: Final = 1000
"""... and newest stopped ones."""
_STEPS: Final = 200
"""First intermediate results of each that are kept: all curves are one message to the host."""


class PastCurves:
    """Collector of first intermediate results of the newest completed and early-stopped trials."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[int, list[Payload]]] = {}
        """Attempt and its intermediate results, by trial."""
        self._completed: deque[PastCurve] = deque(maxlen=_COMPLETED)
        self._stopped: deque[PastCurve] = deque(maxlen=_STOPPED)

    def report(self, trial_id: str, attempt: int, value: Payload) -> None:
        """Add an intermediate result, up to a limit; those of earlier attempts are dropped."""
        known, values = self._running.get(trial_id, (attempt, []))
        if known != attempt:
            values = []
        if len(values) < _STEPS:
            values.append(value)
        self._running[trial_id] = (attempt, values)

    def end(
        self, trial_id: str, parameters: Payload, state: str, final: tuple[Payload] | None
    ) -> None:
        """Keep a trial's curve if it has a final result or was stopped early; else drop it.

        Args:
            trial_id: of the trial.
            parameters: its configuration.
            state: in which it has ended.
            final: its final result; None without one.
        """
        _, values = self._running.pop(trial_id, (0, []))
        if not values:
            return
        if final is not None:
            self._completed.append(PastCurve(parameters, final, tuple(values)))
        elif state == "EARLY_STOPPED":
            self._stopped.append(PastCurve(parameters, None, tuple(values)))

    def found(self) -> tuple[PastCurve, ...]:
        """Return the curves, those of completed trials first."""
        return (*self._completed, *self._stopped)

    def clear(self) -> None:
        """Drop all curves."""
        self._running.clear()
        self._completed.clear()
        self._stopped.clear()
