"""Port to a platform whose trials evaluate models, and the events of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class CandidateAdded:
    """Event: the platform has stored a model that was added, with its trial parameters."""

    key: str
    """Key under which the engine added it."""
    parameters: Mapping[str, Any]
    """Parameters that its trial will have."""


@dataclass(frozen=True, slots=True)
class CandidateScheduled:
    """Event: a trial, named by its id, was created for a model."""

    key: str
    """Key under which the engine added it."""
    trial_id: str
    """Id of the trial on the platform."""


@dataclass(frozen=True, slots=True)
class CandidateLost:
    """Event: an attempt of a trial was lost, and the trial may be tried again."""

    key: str
    """Key under which the engine added it."""


@dataclass(frozen=True, slots=True)
class CandidateMetric:
    """Event: the trial of a model reported an intermediate or the final metric."""

    key: str
    """Key under which the engine added it."""
    value: Any
    """Number, or what else JSON can express."""
    is_final: bool
    """Whether it is the result of the trial."""


@dataclass(frozen=True, slots=True)
class CandidateEnded:
    """Event: the trial of a model has succeeded or failed, and is not tried again."""

    key: str
    """Key under which the engine added it."""
    succeeded: bool
    """Whether its command ended without an error."""


@dataclass(frozen=True, slots=True)
class PlatformClosed:
    """Event: the platform takes no more trials, for a reason; finally, or until it opens again."""

    reason: str
    """State of the experiment."""
    is_final: bool
    """Whether no trial runs any more."""


@dataclass(frozen=True, slots=True)
class PlatformOpened:
    """Event: the platform takes trials again, as a limit was raised or a user resumed it."""


@dataclass(frozen=True, slots=True)
class PlatformLimits:
    """Event: limits on trials or concurrency were changed; None where unchanged."""

    max_trial_number: int | None
    """Number of trials; None: as before."""
    concurrency: int | None
    """Number of trials that run at once; None: as before."""


PlatformEvent: TypeAlias = (
    CandidateAdded
    | CandidateScheduled
    | CandidateLost
    | CandidateMetric
    | CandidateEnded
    | PlatformClosed
    | PlatformOpened
    | PlatformLimits
)


class TrialPlatform(Protocol):
    """Interface of a platform's experiment: open, add and kill trials, follow events, close.

    Methods may be called from any thread; `events` by one only.
    """

    def open(self, experiment_id: str | None) -> str:
        """Create an experiment, or resume one; return its id.

        Args:
            experiment_id: that of an earlier process; None for a new one.
        """
        ...

    def add(self, key: str, parameters: Mapping[str, Any]) -> None:
        """Add a trial; a key that was added before adds none.

        Raises:
            nni.experiment.errors.WrongStateError: the experiment takes no more trials.
        """
        ...

    def kill(self, trial_id: str) -> None:
        """Stop a trial; do nothing if it has ended."""
        ...

    def parameters(self, trial_id: str) -> Mapping[str, Any]:
        """Return the parameters of a trial."""
        ...

    def events(self, *, follow: bool) -> Iterator[PlatformEvent]:
        """Yield the events not yielded before, in order; with `follow` later ones, until the end.

        Args:
            follow: yield later ones, too, until the experiment has ended or was closed.
        """
        ...

    def close(self) -> None:
        """Stop the experiment, and end `events`; may be called twice."""
        ...
