"""Renewal of the leases of the trials that this process runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from nni.experiment.errors import ExperimentError

_logger = logging.getLogger(__name__)

HeldTrial: TypeAlias = tuple[str, int]
"""Id and attempt of a trial."""

_RENEWALS: Final = 3
"""Renewals within one lease, so that two of them may fail."""
_RENEWED_AT_ONCE: Final = 1000
"""Limit of one call."""


class LeaseKeeper:
    """Daemon thread that renews leases while there are any.

    Call order: `hold`, `expect_end` and `release` at any time, from any thread; `close` at the end.
    A renewal that fails is tried again at the next one.

    Args:
        renew: renews the leases of trials; returns the ids of those that are lost.
    """

    def __init__(self, renew: Callable[[Sequence[HeldTrial]], Sequence[str]]) -> None:
        self._renew = renew
        self._held: dict[str, int] = {}
        self._ending: set[str] = set()
        """Held trials whose end is being reported, or was without an answer."""
        self._changed = threading.Condition()
        self._period_s = 0.0
        self._closed = False
        self._idle = False
        """The thread waits for a trial; while it waits for the time, a trial does not wake it."""
        self._thread: threading.Thread | None = None

    def hold(self, trial_id: str, attempt: int, lease_s: float) -> None:
        """Renew a trial's lease in a background thread from now on, at a third of its length."""
        with self._changed:
            self._held[trial_id] = attempt
            self._ending.discard(trial_id)
            self._period_s = lease_s / _RENEWALS
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="study leases", daemon=True)
                self._thread.start()
            if self._idle:
                self._changed.notify_all()

    def expect_end(self, trial_id: str) -> None:
        """Log no loss of a trial whose end is about to be reported; its lease is renewed further.

        A renewal between that report and its answer finds the trial ended, which is no loss. If it
        is one, the report fails.
        """
        with self._changed:
            if trial_id in self._held:
                self._ending.add(trial_id)

    def release(self, trial_id: str) -> None:
        """Stop renewing a trial's lease; the services are not called."""
        with self._changed:
            self._held.pop(trial_id, None)
            self._ending.discard(trial_id)

    @property
    def held(self) -> list[HeldTrial]:
        """New list of (id, attempt) of the trials whose leases are renewed."""
        with self._changed:
            return list(self._held.items())

    def renew_all(self) -> None:
        """Renew all leases now; forget and log the trials that are lost."""
        held = self.held
        for start in range(0, len(held), _RENEWED_AT_ONCE):
            some = held[start : start + _RENEWED_AT_ONCE]
            lost = set(self._renew(some))
            for trial_id, attempt in some:
                if trial_id in lost and self._drop(trial_id, attempt):
                    _logger.warning("this process does not hold trial %s any more", trial_id)

    def _drop(self, trial_id: str, attempt: int) -> bool:
        """Stop renewing an attempt; return True if it is lost: its end is not being reported.

        It is none if the end was, or is being, reported, or the trial was asked again meanwhile.
        """
        with self._changed:
            if self._held.get(trial_id) != attempt:
                return False
            del self._held[trial_id]
            ending = trial_id in self._ending
            self._ending.discard(trial_id)
            return not ending

    def close(self) -> None:
        """End the thread and renew no lease any more; it may be called twice."""
        with self._changed:
            self._closed = True
            self._held.clear()
            self._ending.clear()
            self._changed.notify_all()

    def _run(self) -> None:
        while self._wait_for_renewal():
            try:
                self.renew_all()
            except (ExperimentError, ValueError) as error:  # of a channel that was closed, too
                if self._is_closed():
                    return
                _logger.warning("leases could not be renewed: %s", error)

    def _wait_for_renewal(self) -> bool:
        """Wait until a renewal is due; return True then, False once closed."""
        with self._changed:
            self._idle = True
            self._changed.wait_for(lambda: self._closed or self._held)
            self._idle = False
            return not self._changed.wait_for(self._is_closed, self._period_s)

    def _is_closed(self) -> bool:
        return self._closed
