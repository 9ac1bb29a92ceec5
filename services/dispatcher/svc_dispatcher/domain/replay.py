"""Whether a fresh algorithm draws again what a log says was drawn.

A log tells one or several lives of an algorithm: from creation to the first stop, then one after
each resume. Of each life a `RecordedLife` says what a fresh host is to be told, in log order, and a
`Comparison` hears what it answers. Order is all that matters: a request was answered by an
algorithm that knew every event before it and none behind it, however many trials ran at once.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from svc_dispatcher.domain import answers, commands, events
from svc_dispatcher.domain.algorithm_state import Session
from svc_dispatcher.domain.values import ExperimentSetup, Payload, Position


@dataclass(frozen=True, slots=True)
class RecordedLife:
    """One life of an algorithm as the log tells it."""

    generation: int
    setup: ExperimentSetup
    commands: tuple[commands.Command, ...]
    """What a fresh host is told, beginning with `Initialize`."""
    recorded: dict[int, Payload]
    """Parameters that the log holds, by their id."""
    answered: frozenset[str]
    """Requests whose answer the log holds; what was deferred came later, if at all."""
    stops: frozenset[str]
    """Trials that the algorithm had stopped."""
    marked: frozenset[int]
    """Parameters that the log itself says were not drawn again."""
    provenance: tuple[tuple[str, str], ...]
    """Versions and machine of that time; empty if it never started."""

    def in_place_of(self, setup: ExperimentSetup) -> "RecordedLife":
        """Give the same life of an experiment that lies where ``setup`` says."""
        here = self.setup.moved(setup.directory, setup.trial_code_directory)
        told = tuple(
            replace(command, setup=here) if isinstance(command, commands.Initialize) else command
            for command in self.commands
        )
        return replace(self, setup=here, commands=told)


@dataclass(slots=True)
class _Facts:
    """What is collected of one life beside what its host is told."""

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


class RecordedLives:
    """Reads a log from its beginning and tells the lives in it.

    Attributes:
        trials: the trial that was made of each set of parameters, by the id of these.
    """

    def __init__(self) -> None:
        self.trials: dict[int, str] = {}
        self._session = Session()
        self._facts = _Facts()
        self._lives: list[RecordedLife] = []

    def feed(self, position: Position, event: events.Event) -> None:
        """Take the next event."""
        if isinstance(event, events.AlgorithmRequested):
            self._close()
            self._facts = _Facts()
        self._facts.note(event)
        if isinstance(event, events.TrialScheduled):
            self.trials[event.parameter_id] = event.trial_id
        self._session.feed(position, event)

    def lives(self) -> list[RecordedLife]:
        """Give all lives, oldest first, where the experiment lies now; called once, at the end."""
        self._close()
        setup = self._session.setup
        return [life.in_place_of(setup) for life in self._lives] if setup is not None else []

    def _close(self) -> None:
        setup = self._session.setup
        if setup is None or not self._session.generation:
            return
        self._lives.append(
            RecordedLife(
                self._session.generation,
                setup,
                tuple(self._session.recorded_life()),
                self._facts.recorded,
                frozenset(self._facts.answered),
                frozenset(self._facts.stops),
                frozenset(self._facts.marked),
                self._facts.provenance,
            )
        )


def recorded_lives(log: Iterable[tuple[Position, events.Event]]) -> list[RecordedLife]:
    """Give the lives of a whole log, oldest first, all of them where the experiment lies now.

    Args:
        log: from its beginning.
    """
    reader = RecordedLives()
    for position, event in log:
        reader.feed(position, event)
    return reader.lives()


@dataclass(frozen=True, slots=True)
class Difference:
    """One suggestion that was not drawn again."""

    generation: int
    parameter_id: int
    recorded: Payload
    """None: the log holds nothing for this id."""
    drawn: Payload
    """None: nothing was drawn for this id."""


class Comparison:
    """Hears a fresh host and compares what it says with one recorded life.

    Args:
        life: what is compared with.
    """

    def __init__(self, life: RecordedLife) -> None:
        self.life = life
        self.provenance: tuple[tuple[str, str], ...] = ()
        self.failure = ""
        """Why the algorithm could not go on; empty: it could."""
        self._untold: list[Difference] = []
        self._differing: set[int] = set()
        self._advised: set[str] = set()
        self._sure: set[int] = set()

    @property
    def equal(self) -> int:
        """How many of the recorded suggestions were drawn again."""
        return len(self._sure)

    @property
    def different(self) -> int:
        """How many suggestions differ, those included that the log does not hold."""
        return len(self._differing)

    def take_differences(self) -> list[Difference]:
        """Give the differences found since the last call."""
        taken, self._untold = self._untold, []
        return taken

    @property
    def missing_stops(self) -> list[str]:
        """Trials that were stopped by the algorithm and would not be again, sorted."""
        return sorted(self.life.stops - self._advised)

    def heard(self, output: answers.Output) -> None:
        """Take one answer of the host, in order."""
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
        """Learn that the host has handled a command and has said all that comes of it."""
        if isinstance(command, commands.Recorded):
            self._sure.update(
                parameter_id
                for parameter_id, _ in command.parameters
                if parameter_id not in self._differing
            )

    def _generated(self, output: answers.Generated) -> None:
        if output.request_id not in self.life.answered:
            return  # the log ends before the answer, or the experiment was stopped before it
        for suggestion in output.suggestions:
            if suggestion.parameter_id not in self.life.recorded:
                self._differs(suggestion.parameter_id, None, suggestion.parameters)

    def _differs(self, parameter_id: int, recorded: Payload, drawn: Payload) -> None:
        if parameter_id not in self._differing:
            self._differing.add(parameter_id)
            self._untold.append(Difference(self.life.generation, parameter_id, recorded, drawn))


def _last_line(traceback: str) -> str:
    return traceback.rstrip().rpartition("\n")[2]


@dataclass(frozen=True, slots=True)
class ChangedVersion:
    """A version, or a fact of the machine, that is not what it was."""

    name: str
    recorded: str
    """Empty: it was not recorded."""
    present: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a replay."""

    repeatable: bool
    suggestions: int
    """How many the log holds."""
    equal: int
    """How many of them were drawn again."""
    generations: int
    stops: int
    """Trials that the algorithm had stopped."""
    missing_stops: tuple[str, ...]
    """Those of them that it would not stop again."""
    reason: str
    """Why it is not repeatable and what would make it so; empty if it is."""
    changed_versions: tuple[ChangedVersion, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a replay is, in commands handled by hosts."""

    handled: int
    total: int


@dataclass(frozen=True, slots=True)
class TrialDifference:
    """A difference, and the trial that was made of what the log holds."""

    difference: Difference
    trial_id: str
    """Empty: none."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The last word of a replay."""

    verdict: Verdict
    duration_s: float


Told: TypeAlias = Progress | TrialDifference | Outcome


def verdict_of(comparisons: Sequence[Comparison]) -> Verdict:
    """Judge a replay by the comparisons of all its lives, each at its end."""
    changed = tuple(
        dict.fromkeys(version for one in comparisons for version in _changed_versions(one))
    )
    missing = tuple(trial for one in comparisons for trial in one.missing_stops)
    reason = next((text for one in comparisons if (text := _reason(one, changed))), "")
    return Verdict(
        repeatable=not reason,
        suggestions=sum(len(one.life.recorded) for one in comparisons),
        equal=sum(one.equal for one in comparisons),
        generations=len(comparisons),
        stops=sum(len(one.life.stops) for one in comparisons),
        missing_stops=missing,
        reason=reason,
        changed_versions=changed,
    )


def _changed_versions(comparison: Comparison) -> Iterator[ChangedVersion]:
    recorded, present = dict(comparison.life.provenance), dict(comparison.provenance)
    for name in sorted(recorded.keys() & present.keys()):
        if recorded[name] != present[name]:
            yield ChangedVersion(name, recorded[name], present[name])


def _reason(one: Comparison, changed: tuple[ChangedVersion, ...]) -> str:
    """Say why a life was not repeated and what would help; nothing if it was."""
    life = one.life
    wanting = len(life.recorded) - one.equal
    where = f"generation {life.generation}: " if life.generation > 1 else ""
    if one.failure and wanting:
        return f"{where}the algorithm could not go on: {one.failure}"
    if one.different or wanting:
        count = max(one.different, wanting)
        what = f"{count} of {len(life.recorded)} suggestions were drawn differently"
    elif one.missing_stops:
        what = f"{len(one.missing_stops)} of {len(life.stops)} early stops were not advised again"
    elif life.marked:
        ids = ", ".join(str(id_) for id_ in sorted(life.marked)[:5])
        what = f"a host that was restarted drew others than the log holds (parameters {ids})"
    else:
        return ""
    return f"{where}{what}: {_remedy(life, changed)}"


def _remedy(life: RecordedLife, changed: tuple[ChangedVersion, ...]) -> str:
    setup = life.setup
    choices = [choice for choice in (setup.advisor, setup.tuner, setup.assessor) if choice]
    if changed:
        versions = ", ".join(f"{v.name} was {v.recorded} and is {v.present}" for v in changed)
        return f"{versions}; replay it with the versions of then"
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
