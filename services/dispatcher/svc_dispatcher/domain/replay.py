"""Comparison of a recorded log with the suggestions of fresh algorithms.

A log holds one or several generations of an algorithm: from creation to the first stop, then one
after each resume. A `RecordedGeneration` holds the commands for a fresh host, in log order, and a
`Comparison` collects the answers of that host. Only the order matters: a request was answered by
an algorithm that knew every event before it and none behind it, however many trials ran at once.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from svc_dispatcher.domain import answers, commands, events
from svc_dispatcher.domain.algorithm_state import AlgorithmState
from svc_dispatcher.domain.values import ExperimentSetup, Payload, Position


@dataclass(frozen=True, slots=True)
class RecordedGeneration:
    """One generation (construction) of an algorithm in the log: host commands, recorded answers."""

    number: int
    """1 at creation, one more at each resume and each hand-over."""
    setup: ExperimentSetup
    commands: tuple[commands.Command, ...]
    """Commands for a fresh host, beginning with `Initialize`."""
    recorded: dict[int, Payload]
    """Parameters recorded in the log, by id."""
    answered: frozenset[str]
    """Requests whose answer is in the log; deferred parameters may follow later."""
    stops: frozenset[str]
    """Trials stopped early by the algorithm."""
    marked: frozenset[int]
    """Parameters that the log itself marks as diverged."""
    provenance: tuple[tuple[str, str], ...]
    """Versions and machine of that time; empty if the algorithm never started."""

    def in_place_of(self, setup: ExperimentSetup) -> "RecordedGeneration":
        """Return the generation with its folders replaced by those of a moved experiment."""
        here = self.setup.moved(setup.directory, setup.trial_code_directory)
        moved_commands = tuple(
            replace(command, setup=here) if isinstance(command, commands.Initialize) else command
            for command in self.commands
        )
        return replace(self, setup=here, commands=moved_commands)


@dataclass(slots=True)
class _GenerationFacts:
    """Recorded parameters, stops and divergences of a generation, collected from its events."""

    recorded: dict[int, Payload] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)
    stops: set[str] = field(default_factory=set)
    marked: set[int] = field(default_factory=set)
    provenance: tuple[tuple[str, str], ...] = ()

    def note(self, event: events.Event) -> None:
        if isinstance(event, events.ParametersGenerated):
            self.recorded.update(event.parameters)
            self.answered |= {event.request_id} - {""}
        elif isinstance(event, events.TrialStopRequested) and event.early:
            self.stops.add(event.trial_id)
        elif isinstance(event, events.AlgorithmDiverged):
            self.marked.add(event.parameter_id)
        elif isinstance(event, events.AlgorithmStarted):
            self.provenance = event.provenance


class GenerationReader:
    """Reader that splits a log's events into the generations of its algorithm.

    Attributes:
        trials: id of the trial that got each set of parameters, by parameter id.
    """

    def __init__(self) -> None:
        self.trials: dict[int, str] = {}
        self._state = AlgorithmState()
        self._facts = _GenerationFacts()
        self._generations: list[RecordedGeneration] = []

    def feed(self, position: Position, event: events.Event) -> None:
        """Add the next event of the log; close the generation if a new one is requested."""
        if isinstance(event, events.AlgorithmRequested):
            self._close()
            self._facts = _GenerationFacts()
        self._facts.note(event)
        if isinstance(event, events.TrialScheduled):
            self.trials[event.parameter_id] = event.trial_id
        self._state.feed(position, event)

    def generations(self) -> list[RecordedGeneration]:
        """Close the last generation; return all, oldest first, with the experiment's folder now."""
        self._close()
        setup = self._state.setup
        return [each.in_place_of(setup) for each in self._generations] if setup is not None else []

    def _close(self) -> None:
        setup = self._state.setup
        if setup is None or not self._state.generation:
            return
        self._generations.append(
            RecordedGeneration(
                self._state.generation,
                setup,
                tuple(self._state.recorded_commands()),
                self._facts.recorded,
                frozenset(self._facts.answered),
                frozenset(self._facts.stops),
                frozenset(self._facts.marked),
                self._facts.provenance,
            )
        )


def recorded_generations(log: Iterable[tuple[Position, events.Event]]) -> list[RecordedGeneration]:
    """Split a whole log into its algorithm's generations; return them oldest first.

    Args:
        log: all events, from the first one.
    """
    reader = GenerationReader()
    for position, event in log:
        reader.feed(position, event)
    return reader.generations()


@dataclass(frozen=True, slots=True)
class SuggestionDifference:
    """Suggestion of which a replay drew another value than the log has."""

    generation: int
    parameter_id: int
    recorded: Payload
    """None: the log has no parameters for this id."""
    drawn: Payload
    """None: the fresh host drew nothing for this id."""


class Comparison:
    """Comparison of a replayed host's outputs with the suggestions and stops in the log.

    Args:
        generation: the recorded side.
    """

    def __init__(self, generation: RecordedGeneration) -> None:
        self.generation = generation
        self.provenance: tuple[tuple[str, str], ...] = ()
        self.failure = ""
        """Why the algorithm could not continue; empty: it could."""
        self._untaken: list[SuggestionDifference] = []
        self._differing: set[int] = set()
        self._advised: set[str] = set()
        self._confirmed: set[int] = set()

    @property
    def equal(self) -> int:
        """Number of recorded suggestions that were reproduced."""
        return len(self._confirmed)

    @property
    def different(self) -> int:
        """Number of suggestions that differ, including those missing in the log."""
        return len(self._differing)

    def take_differences(self) -> list[SuggestionDifference]:
        """Return the differences found since the last call."""
        taken, self._untaken = self._untaken, []
        return taken

    @property
    def missing_stops(self) -> list[str]:
        """Trials stopped by the recorded algorithm but not by the fresh one, sorted."""
        return sorted(self.generation.stops - self._advised)

    def add_output(self, output: answers.Output) -> None:
        """Compare an output of the replayed host with the log; note differences and failures."""
        if isinstance(output, answers.Generated):
            self._generated(output)
        elif isinstance(output, answers.Diverged):
            self._differs(output.parameter_id, output.recorded, output.replayed)
        elif isinstance(output, answers.StopAdvised):
            self._advised.add(output.trial_id)
        elif isinstance(output, answers.Ready):
            self.provenance = tuple(sorted(output.provenance))
        elif isinstance(output, answers.Unbuildable):
            self.failure = output.reason
        elif isinstance(output, answers.CallFailed) and not output.skipped:
            self.failure = f"{output.call} raised {_last_line(output.traceback)}"

    def handled(self, command: commands.Command) -> None:
        """Count a handled `Recorded` command's parameters as equal unless they differed."""
        if isinstance(command, commands.Recorded):
            self._confirmed.update(
                parameter_id
                for parameter_id, _ in command.parameters
                if parameter_id not in self._differing
            )

    def _generated(self, output: answers.Generated) -> None:
        if output.request_id not in self.generation.answered:
            return  # the log ends before the answer, or the experiment was stopped before it
        for suggestion in output.suggestions:
            if suggestion.parameter_id not in self.generation.recorded:
                self._differs(suggestion.parameter_id, None, suggestion.parameters)

    def _differs(self, parameter_id: int, recorded: Payload, drawn: Payload) -> None:
        if parameter_id not in self._differing:
            self._differing.add(parameter_id)
            self._untaken.append(
                SuggestionDifference(self.generation.number, parameter_id, recorded, drawn)
            )


def _last_line(traceback: str) -> str:
    return traceback.rstrip().rpartition("\n")[2]


@dataclass(frozen=True, slots=True)
class ChangedVersion:
    """Package version or machine property that differs between recording and replay."""

    name: str
    recorded: str
    """Empty: it was not recorded."""
    present: str


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """Verdict of a replay: counts of equal suggestions and stops, changed versions, the reason."""

    repeatable: bool
    suggestions: int
    """Number of suggestions in the log."""
    equal: int
    """Number of suggestions that were reproduced."""
    generations: int
    stops: int
    """Number of trials stopped early by the algorithm."""
    missing_stops: tuple[str, ...]
    """Early stops that were not reproduced, by trial id."""
    reason: str
    """Why the log is not repeatable, with the remedy; empty if it is."""
    changed_versions: tuple[ChangedVersion, ...]


@dataclass(frozen=True, slots=True)
class ReplayProgress:
    """Update of a replay: handled and total commands of the hosts."""

    handled: int
    total: int


@dataclass(frozen=True, slots=True)
class TrialDifference:
    """Update of a replay: a suggestion that differs, and the trial that ran it."""

    difference: SuggestionDifference
    trial_id: str
    """Empty: no trial was made."""


@dataclass(frozen=True, slots=True)
class ReplayFinished:
    """Last update of a replay: its verdict and duration."""

    result: ReplayResult
    duration_s: float


ReplayUpdate: TypeAlias = ReplayProgress | TrialDifference | ReplayFinished


def replay_result(comparisons: Sequence[Comparison]) -> ReplayResult:
    """Sum the comparisons of all generations to the verdict whether a log is repeatable."""
    changed = tuple(
        dict.fromkeys(version for one in comparisons for version in _changed_versions(one))
    )
    missing = tuple(trial for one in comparisons for trial in one.missing_stops)
    reason = next((text for one in comparisons if (text := _reason(one, changed))), "")
    return ReplayResult(
        repeatable=not reason,
        suggestions=sum(len(one.generation.recorded) for one in comparisons),
        equal=sum(one.equal for one in comparisons),
        generations=len(comparisons),
        stops=sum(len(one.generation.stops) for one in comparisons),
        missing_stops=missing,
        reason=reason,
        changed_versions=changed,
    )


def _changed_versions(comparison: Comparison) -> Iterator[ChangedVersion]:
    recorded, present = dict(comparison.generation.provenance), dict(comparison.provenance)
    for name in sorted(recorded.keys() & present.keys()):
        if recorded[name] != present[name]:
            yield ChangedVersion(name, recorded[name], present[name])


def _reason(one: Comparison, changed: tuple[ChangedVersion, ...]) -> str:
    """Return a sentence why a replayed generation differs, with a remedy; empty: it does not."""
    generation = one.generation
    missing = len(generation.recorded) - one.equal
    where = f"generation {generation.number}: " if generation.number > 1 else ""
    if one.failure and missing:
        return f"{where}the algorithm could not go on: {one.failure}"
    if one.different or missing:
        count = max(one.different, missing)
        what = f"{count} of {len(generation.recorded)} suggestions were drawn differently"
    elif one.missing_stops:
        what = (
            f"{len(one.missing_stops)} of {len(generation.stops)} early stops "
            "were not advised again"
        )
    elif generation.marked:
        ids = ", ".join(str(id_) for id_ in sorted(generation.marked)[:5])
        what = f"a restarted host drew parameters that differ from the log (parameters {ids})"
    else:
        return ""
    return f"{where}{what}: {_remedy(generation, changed)}"


def _remedy(generation: RecordedGeneration, changed: tuple[ChangedVersion, ...]) -> str:
    setup = generation.setup
    choices = [choice for choice in (setup.advisor, setup.tuner, setup.assessor) if choice]
    if changed:
        versions = ", ".join(f"{v.name} was {v.recorded} and is {v.present}" for v in changed)
        return f"{versions}; replay with the recorded versions"
    own = next((choice for choice in choices if choice.class_name), None)
    if own is not None:
        return (
            f"{own.class_name} does not repeat itself; let it draw from the modules random and "
            "numpy.random, which are seeded before it is built, and depend on no clock or thread"
        )
    server = next((choice for choice in choices if choice.server_address), None)
    if server is not None:
        return (
            f"the server at {server.server_address} does not repeat itself; let it draw from the "
            "seed that OpenSession brings"
        )
    return "a built-in algorithm must repeat itself, so this is a defect of NNI; please report it"
