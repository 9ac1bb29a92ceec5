"""Ports of the dispatcher: what its use cases and sessions need from adapters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from svc_dispatcher.domain.answers import Output
from svc_dispatcher.domain.commands import Command
from svc_dispatcher.domain.values import Check, ExperimentSetup


class HostSink(Protocol):
    """Interface that receives a host's outputs and its end, on the event loop."""

    def on_outputs(self, outputs: Sequence[Output]) -> None:
        """Handle outputs of the host, in order."""
        ...

    def on_end(self, reason: str) -> None:
        """Handle the host's end, once, after its last output, with the cause as text.

        Args:
            reason: cause of the end in words, with exit code or signal.
        """
        ...


class AlgorithmHost(Protocol):
    """Interface of a running algorithm that handles commands one at a time, in order."""

    def send(self, commands: Sequence[Command]) -> None:
        """Queue more commands; the first of all is `Initialize`. Never waits."""
        ...

    async def aclose(self) -> None:
        """Stop the algorithm at once, without a report to the sink; wait for its end.

        The sink is not called any more.
        """
        ...


class HostLauncher(Protocol):
    """Interface that starts algorithm hosts, in child processes or at servers."""

    async def launch(self, setup: ExperimentSetup, sink: HostSink, *, eager: bool) -> AlgorithmHost:
        """Start an algorithm host for an experiment; its outputs are passed to ``sink``.

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
    """Algorithm class to import: by registered name, or a user's class in a folder."""

    kind: str
    """tuner, assessor or advisor."""
    name: str = ""
    """Empty for a class that is not registered."""
    class_name: str = ""
    code_directory: str = ""


class ClassChecker(Protocol):
    """Interface that tries to import an algorithm class under the client's interpreter."""

    async def check(self, choice: ClassChoice, interpreter: str) -> str:
        """Import an algorithm class under an interpreter; return why it fails; empty: it does not.

        Args:
            choice: the class.
            interpreter: path of the interpreter; empty for the dispatcher's own.

        Returns:
            Why the class cannot be used; empty if it can.
        """
        ...


class Checks(Protocol):
    """Interface of CPU-bound input checks outside the event loop: a result dict, or it raises."""

    async def run(self, check: Check, payload: bytes, field: str) -> dict[str, Any]:
        """Run a check of an encoded request elsewhere; return its result; raise at the deadline.

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
    """Name, kind, class, source and capabilities of an algorithm in the registry."""

    name: str
    kind: str
    class_name: str
    source: str
    """`nni`, or `User` for an algorithm that a user registered."""
    space_types: tuple[str, ...]
    lookahead: bool


class AlgorithmCatalog(Protocol):
    """Interface of the registered algorithms: listing, validation, capabilities."""

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
        """Raise ValueError unless an algorithm's name, arguments and search space fit together.

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
        """Raise ValueError unless a running algorithm can take another search space.

        Raises:
            ValueError: the algorithm keeps its first search space.
        """
        ...

    def check_hand_over(self, present: str, successor: str) -> None:
        """Raise ValueError if a tuner cannot take over the trials of another.

        Args:
            present: name of the tuner that has proposed them; empty: it has none.
            successor: name of the tuner that is to learn them; empty: it has none.

        Raises:
            ValueError: one of them is not for a hand-over; the text says why, without a remedy.
        """
        ...

    def takes_assessor(self, tuner: str) -> bool:
        """Return whether an assessor may stop the tuner's trials; true for an unknown name."""
        ...

    def optimize_mode(self, kind: str, name: str, class_args: dict[str, object]) -> str:
        """Return an algorithm's `optimize_mode`: its argument, else the default, else empty."""
        ...


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """Trial id, parameters and metrics of one finished trial, for analyses."""

    trial_id: str
    parameters: Any
    """JSON value; None where only the metric matters."""
    metric: Any
    """Number, or map of metrics."""


@dataclass(frozen=True, slots=True)
class Importance:
    """Shares of a metric's variance: by hyperparameter, largest first, and of interactions."""

    shares: tuple[tuple[str, float], ...]
    """Name and share of the variance, largest first."""
    interactions: float
    """Share of the variance that no single hyperparameter explains."""
    outcomes: int
    """Number of results that the model was fitted to."""


class ImportanceMeter(Protocol):
    """Interface that computes hyperparameter importance outside of this process."""

    async def measure(
        self,
        search_space: object,
        outcomes: Sequence[TrialOutcome],
        metric: str,
        optimize_mode: str,
    ) -> Importance:
        """Compute each hyperparameter's share of a metric's variance from trials' results.

        Args:
            search_space: of the experiment.
            outcomes: results with their parameters.
            metric: name of the metric to explain.
            optimize_mode: `maximize` or `minimize`.

        Raises:
            FailedPreconditionError: there are too few results, or they are all equal.
        """
        ...
