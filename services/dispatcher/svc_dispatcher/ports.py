"""Ports of the dispatcher: what its use cases and sessions need from adapters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from svc_dispatcher.domain.answers import Output
from svc_dispatcher.domain.commands import Command
from svc_dispatcher.domain.values import Check, ExperimentSetup


class HostSink(Protocol):
    """Receiver of a host's outputs; called on the loop, never from within a call to the host."""

    def on_outputs(self, outputs: Sequence[Output]) -> None:
        """Handle outputs of the host, in order."""
        ...

    def on_end(self, reason: str) -> None:
        """Handle the end of the host; called once, after all its outputs.

        Args:
            reason: cause of the end in words, with exit code or signal.
        """
        ...


class AlgorithmHost(Protocol):
    """Host of one algorithm, built anew, that handles commands one at a time in order."""

    def send(self, commands: Sequence[Command]) -> None:
        """Queue more commands; the first of all is `Initialize`. Never waits."""
        ...

    async def aclose(self) -> None:
        """Stop the algorithm at once and wait until it has ended; may be called twice.

        The sink is not called any more.
        """
        ...


class HostLauncher(Protocol):
    """Factory of algorithm hosts."""

    async def launch(self, setup: ExperimentSetup, sink: HostSink, *, eager: bool) -> AlgorithmHost:
        """Start a host for an experiment.

        Args:
            setup: the algorithm and its experiment.
            sink: receives the outputs.
            eager: report every handled command at once, so that a crash can be attributed to the
                command that caused it.

        Raises:
            FailedPreconditionError: the host cannot be started; the message names the remedy.
            UnavailableError: a server that the host needs cannot be reached.
        """
        ...


@dataclass(frozen=True, slots=True)
class ClassChoice:
    """Class to be hosted: a registered algorithm, or a class of the user."""

    kind: str
    """tuner, assessor or advisor."""
    name: str = ""
    """Empty for a class that is not registered."""
    class_name: str = ""
    code_directory: str = ""


class ClassChecker(Protocol):
    """Checker of algorithm classes under the client's interpreter."""

    async def check(self, choice: ClassChoice, interpreter: str) -> str:
        """Import a class without constructing it.

        Args:
            choice: the class.
            interpreter: path of the interpreter; empty for the dispatcher's own.

        Returns:
            Why the class cannot be used; empty if it can.
        """
        ...


class Checks(Protocol):
    """Runner of checks whose time depends on what a user sent."""

    async def run(self, check: Check, payload: bytes, field: str) -> dict[str, Any]:
        """Return the result of a check, without holding the event loop.

        Args:
            check: kind of the check.
            payload: message of the request, serialized.
            field: field to blame when the check takes too long.

        Raises:
            InvalidArgumentError: the request was refused, or its check took too long.
            ResourceExhaustedError: too many requests wait.
            UnavailableError: the check could not be run.
        """
        ...


@dataclass(frozen=True, slots=True)
class NamedAlgorithm:
    """Algorithm in the registry."""

    name: str
    kind: str
    class_name: str
    source: str
    """`nni`, or `User` for an algorithm that a user registered."""
    space_types: tuple[str, ...]
    lookahead: bool


class AlgorithmCatalog(Protocol):
    """Catalog of the registered algorithms."""

    def algorithms(self) -> list[NamedAlgorithm]:
        """Return all algorithms in a fixed order."""
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
        """Raise ValueError unless name, arguments and space fit together; construct nothing.

        Args:
            kind: tuner, assessor or advisor.
            name: of the algorithm.
            class_args: its arguments.
            search_space: None leaves the space unchecked.
            several_outcomes: the search has several objectives, or limits on outcomes.

        Raises:
            ValueError: a value is invalid; the text names it and the rule.
        """
        ...

    def check_replaceable(self, kind: str, name: str, class_args: dict[str, object]) -> None:
        """Raise ValueError unless the algorithm accepts another search space while it runs.

        Raises:
            ValueError: the algorithm keeps its first search space.
        """
        ...

    def takes_assessor(self, tuner: str) -> bool:
        """Return whether an assessor may stop the tuner's trials; true for an unknown name."""
        ...

    def optimize_mode(self, kind: str, name: str, class_args: dict[str, object]) -> str:
        """Return `maximize` or `minimize`, as the algorithm interprets its arguments.

        Empty if it has no mode.
        """
        ...


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """Result of one trial."""

    trial_id: str
    parameters: Any
    """JSON value; None where only the metric matters."""
    metric: Any
    """Number, or map of metrics."""


@dataclass(frozen=True, slots=True)
class Importance:
    """Importance of the hyperparameters for one metric."""

    shares: tuple[tuple[str, float], ...]
    """Name and share of the variance, largest first."""
    interactions: float
    """Share of the variance that no single hyperparameter explains."""
    outcomes: int
    """Number of results that the model was fitted to."""


class ImportanceMeter(Protocol):
    """Model of hyperparameter importance, fitted outside of this process."""

    async def measure(
        self,
        search_space: object,
        outcomes: Sequence[TrialOutcome],
        metric: str,
        optimize_mode: str,
    ) -> Importance:
        """Return which hyperparameters explain a metric.

        Args:
            search_space: of the experiment.
            outcomes: results with their parameters.
            metric: name of the metric to explain.
            optimize_mode: `maximize` or `minimize`.

        Raises:
            FailedPreconditionError: there are too few results, or they are all equal.
        """
        ...
