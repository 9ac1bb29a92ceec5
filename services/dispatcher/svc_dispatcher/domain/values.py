"""Values that several modules of the dispatcher share."""

import enum
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

Payload: TypeAlias = object
"""Value made by users, in wire format. The domain passes it on and compares
it for equality only."""


class Position(NamedTuple):
    """Position of an event in an experiment's log: batch sequence, and index in the batch."""

    sequence: int
    """Stream sequence of its batch."""
    place: int
    """Its index in the batch."""


@dataclass(frozen=True, slots=True)
class AlgorithmChoice:
    """Tuner, assessor or advisor as chosen: by name, by class or by server address."""

    name: str = ""
    """Name of a built-in or registered algorithm."""
    class_name: str = ""
    """`module.Class` of a user's class."""
    code_directory: str = ""
    """Folder of that module; empty if it is installed."""
    server_address: str = ""
    """`host:port` of an external algorithm."""
    class_args: Payload = None
    """Keyword arguments of the constructor; None for none."""


@dataclass(frozen=True, slots=True)
class ExperimentSetup:
    """Part of an experiment's configuration for its host: algorithms, space, seed, folders."""

    experiment_id: str
    directory: str
    """`<root>/<id>`; the host runs in its `log` folder."""
    interpreter: str
    """Interpreter of the client that created the experiment; empty for the dispatcher's own."""
    tuner: AlgorithmChoice | None
    assessor: AlgorithmChoice | None
    advisor: AlgorithmChoice | None
    search_space: Payload
    seed: int
    log_level: str
    """trace, debug, info, warning, error or fatal."""
    gpu_indices: tuple[int, ...] = ()
    """GPUs that the host may use; empty = no restriction."""
    config: Payload = None
    """Whole configuration of the experiment, in wire format."""
    trial_code_directory: str = ""
    """Folder of the trials' code; the user's classes are often there, too."""

    @property
    def wants_intermediate(self) -> bool:
        """True with an assessor, advisor or external tuner: these may read intermediate results."""
        external = self.tuner is not None and bool(self.tuner.server_address)
        return self.assessor is not None or self.advisor is not None or external

    @property
    def stops_early(self) -> bool:
        """True with an assessor and a tuner without server address: trials may be stopped early."""
        hosted = self.tuner is not None and not self.tuner.server_address
        return hosted and self.assessor is not None

    def moved(self, directory: str, trial_code_directory: str) -> "ExperimentSetup":
        """Return a copy with new folders; an empty one stays as it is.

        Class folders inside the folder of the trials' code move with it.
        """
        old, new = self.trial_code_directory, trial_code_directory or self.trial_code_directory
        return replace(
            self,
            directory=directory or self.directory,
            trial_code_directory=new,
            tuner=_moved_choice(self.tuner, old, new),
            assessor=_moved_choice(self.assessor, old, new),
            advisor=_moved_choice(self.advisor, old, new),
        )


def _moved_choice(choice: AlgorithmChoice | None, old: str, new: str) -> AlgorithmChoice | None:
    if choice is None or not old or old == new:
        return choice
    folder = choice.code_directory
    inside = folder == old or folder.startswith(f"{old}/")
    return replace(choice, code_directory=new + folder[len(old) :]) if inside else choice


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Parameters that an algorithm proposed, with their id and provenance."""

    parameter_id: int
    parameters: Payload
    provenance: Payload
    """Origin of the configuration; a map."""


def generation_seed(seed: int, generation: int) -> int:
    """Derive the seed for the n-th construction of an algorithm; the first has the experiment's.

    A resumed experiment would otherwise draw the configurations of its first generation again.
    """
    # Any fixed odd multiplier keeps generations apart; this is the 64-bit golden ratio.
    return seed if generation <= 1 else (seed + (generation - 1) * 0x9E3779B97F4A7C15) % 2**63


@dataclass(frozen=True, slots=True)
class RequestedAlgorithm:
    """Tuner, assessor or advisor that a user asks to validate, in plain values."""

    kind: str
    """tuner, assessor or advisor."""
    name: str
    class_name: str
    code_directory: str
    server_address: str
    class_args: dict[str, object]
    several_outcomes: bool = False
    """The search has several objectives, or limits on outcomes."""
    replaces_space: bool = False
    """The algorithm runs already, and the search space would replace its present one."""
    replaced_tuner: str | None = None
    """Name of the tuner whose experiment it takes over; empty: it has none; None: it takes over
    none."""


class Check(bytes, enum.Enum):
    """Kind of a check for the child process; first byte of the request."""

    ALGORITHMS = b"a"
    CONFIGURATIONS = b"c"
    FRONT = b"f"
