"""What the dispatcher needs from outside, as promises."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from svc_dispatcher.domain.answers import Output
from svc_dispatcher.domain.commands import Command
from svc_dispatcher.domain.values import ExperimentSetup


class HostSink(Protocol):
    """Hears what a host says; called on the loop, never from within a call to the host."""

    def said(self, outputs: Sequence[Output]) -> None:
        """Take what the host said, in order."""
        ...

    def ended(self, reason: str) -> None:
        """Learn that the host is gone, once, after all it said.

        Args:
            reason: in words, with exit code or signal.
        """
        ...


class AlgorithmHost(Protocol):
    """One algorithm, built anew, which handles commands one at a time in order."""

    def send(self, commands: Sequence[Command]) -> None:
        """Give more commands; the first of all is `Initialize`. Never waits."""
        ...

    async def aclose(self) -> None:
        """End the algorithm at once and wait until it is gone; may be called twice.

        The sink hears nothing any more.
        """
        ...


class HostLauncher(Protocol):
    """Starts hosts."""

    async def launch(self, setup: ExperimentSetup, sink: HostSink, *, eager: bool) -> AlgorithmHost:
        """Start a host for an experiment.

        Args:
            setup: which algorithm, where.
            sink: hears what it says.
            eager: report every handled command at once, so that a death can be blamed on the
                command that caused it.

        Raises:
            FailedPreconditionError: it cannot be started; the message says what to change.
            UnavailableError: a server that it needs is away.
        """
        ...


@dataclass(frozen=True, slots=True)
class ClassChoice:
    """A class to be hosted: a named one, or the user's own."""

    kind: str
    """tuner, assessor or advisor."""
    name: str = ""
    """Empty for a class that no registry knows."""
    class_name: str = ""
    code_directory: str = ""


class ClassChecker(Protocol):
    """Tries classes under the interpreter of the client."""

    async def check(self, choice: ClassChoice, interpreter: str) -> str:
        """Import a class without constructing it.

        Args:
            choice: the class.
            interpreter: under which; empty for the dispatcher's own.

        Returns:
            What is wrong with it; empty if nothing is.
        """
        ...


@dataclass(frozen=True, slots=True)
class NamedAlgorithm:
    """An algorithm that the registry knows."""

    name: str
    kind: str
    class_name: str
    source: str
    """`nni`, or `User` for one that was registered."""
    space_types: tuple[str, ...]
    lookahead: bool


class AlgorithmCatalog(Protocol):
    """The algorithms that have names."""

    def algorithms(self) -> list[NamedAlgorithm]:
        """Give all of them, in a fixed order."""
        ...

    def validate(
        self,
        kind: str,
        name: str,
        class_args: dict[str, object],
        search_space: object,
        *,
        several_outcomes: bool = False,
    ) -> None:
        """Check name, arguments and space without building anything.

        Args:
            kind: tuner, assessor or advisor.
            name: of the algorithm.
            class_args: its arguments.
            search_space: None leaves the space unchecked.
            several_outcomes: it is to learn several objectives, or limits on outcomes.

        Raises:
            ValueError: something is wrong; the text says what, and what would be right.
        """
        ...

    def check_replaceable(self, kind: str, name: str, class_args: dict[str, object]) -> None:
        """Check that an algorithm takes another search space while it runs.

        Raises:
            ValueError: it keeps the one that it has.
        """
        ...

    def optimize_mode(self, kind: str, name: str, class_args: dict[str, object]) -> str:
        """Give `maximize` or `minimize`, as the algorithm will understand its arguments.

        Empty if it has no mode.
        """
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """A trial that has reported its result."""

    trial_id: str
    parameters: Any
    """A JSON value; None where only the metric matters."""
    metric: Any
    """A number, or a map of metrics."""


@dataclass(frozen=True, slots=True)
class Importance:
    """Which hyperparameters matter."""

    shares: tuple[tuple[str, float], ...]
    """Name and share of the variance, largest first."""
    interactions: float
    """The share that no single one explains."""
    outcomes: int
    """How many results this was learnt from."""


class ImportanceMeter(Protocol):
    """Fits a model to results, outside of this process."""

    async def measure(
        self, search_space: object, outcomes: Sequence[Outcome], metric: str, optimize_mode: str
    ) -> Importance:
        """Say which hyperparameters explain the objective.

        Raises:
            FailedPreconditionError: there are too few results, or they are all equal.
        """
        ...
