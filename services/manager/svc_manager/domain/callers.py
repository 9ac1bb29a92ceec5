"""Asks and leases of callers, the processes that run the trials of a shared study.

They belong to one owner of the log and are not folded. A new owner grants a whole lease to each
running attempt, and callers whose asks were not answered ask again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from svc_common.errors import FailedPreconditionError
from svc_manager.domain.inputs import AskTrial
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import TrialState

LATE_MS: Final = 5_000
"""Delay after which a lapse is no longer believed: this manager was held up, not the caller."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Attempt of a trial that a caller runs."""

    trial_id: str
    attempt: int


Answer: TypeAlias = Claim | FailedPreconditionError
"""Answer to an ask: a trial, or why there is none."""


class Callers:
    """Pending asks of callers, and the leases of their attempts."""

    def __init__(self) -> None:
        self.asks: dict[str, AskTrial] = {}
        """Asks without a trial, by request id, oldest first."""
        self._expires_ms: dict[Claim, int] = {}
        self._trial_ids: dict[str, str] | None = None

    def claims(self, experiment: Experiment) -> dict[str, str]:
        """Return the cached {claim id: trial id} itself; the first call builds it from trials."""
        if self._trial_ids is None:
            trials = experiment.trials.values()
            self._trial_ids = {trial.claim_id: trial.id for trial in trials if trial.claim_id}
        return self._trial_ids

    def grant(self, experiment: Experiment, now_ms: int) -> None:
        """Grant a whole lease to each running attempt without one; end those of other attempts."""
        held = [
            Claim(trial.id, trial.attempt)
            for trial in experiment.live.values()
            if trial.state is TrialState.RUNNING
        ]
        fresh_ms = now_ms + experiment.settings.lease_ms
        self._expires_ms = {claim: self._expires_ms.get(claim, fresh_ms) for claim in held}

    def renew(
        self, experiment: Experiment, caller_id: str, claims: Iterable[Claim], now_ms: int
    ) -> list[str]:
        """Renew the leases that a caller holds; return the ids of trials that it does not hold."""
        lost = []
        for claim in claims:
            trial = experiment.trials.get(claim.trial_id)
            if (
                trial is not None
                and trial.state is TrialState.RUNNING
                and (trial.attempt, trial.runner_id) == (claim.attempt, caller_id)
            ):
                self._expires_ms[claim] = now_ms + experiment.settings.lease_ms
            else:
                lost.append(claim.trial_id)
        return lost

    def take_lapsed(self, now_ms: int) -> list[Claim]:
        """Remove expired leases; return them, or none if one is so late that this manager hung.

        If one of them has been over for longer than `LATE_MS`, this manager could not take renewals
        meanwhile: all leases that are over are removed, to be granted again, and none is returned.
        """
        over = [claim for claim, at_ms in self._expires_ms.items() if at_ms <= now_ms]
        late = any(now_ms - self._expires_ms[claim] > LATE_MS for claim in over)
        for claim in over:
            del self._expires_ms[claim]
        return [] if late else over

    def shift(self, step_ms: int) -> None:
        """Shift the expiry of all leases by a step of the clock, during which no time passed."""
        if not step_ms:
            return
        self._expires_ms = {claim: at_ms + step_ms for claim, at_ms in self._expires_ms.items()}

    @property
    def next_lapse_ms(self) -> int | None:
        """Time at which the first lease is over, ms since 1970; None: there is none."""
        return min(self._expires_ms.values(), default=None)
