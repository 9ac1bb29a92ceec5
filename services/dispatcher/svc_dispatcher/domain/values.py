"""Values that the parts of the dispatcher hand to each other."""

from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

Payload: TypeAlias = object
"""A value that users made, in the form of the wire. The domain only passes it on and asks whether
two are equal."""


class Position(NamedTuple):
    """Place of an event in the log of its experiment."""

    sequence: int
    """Stream sequence of its batch."""
    place: int
    """Its index in the batch."""


@dataclass(frozen=True, slots=True)
class AlgorithmChoice:
    """One algorithm as an experiment names it: exactly one of three ways."""

    name: str = ""
    """Of a built-in or registered algorithm."""
    class_name: str = ""
    """`module.Class` of the user's own."""
    code_directory: str = ""
    """Folder of that module; empty if it is installed."""
    server_address: str = ""
    """`host:port` of an external algorithm."""
    class_args: Payload = None
    """Keyword arguments of the constructor; None for none."""


@dataclass(frozen=True, slots=True)
class ExperimentSetup:
    """What a host must know of its experiment."""

    experiment_id: str
    directory: str
    """`<root>/<id>`; the host runs in its `log` folder."""
    interpreter: str
    """Of the client that created it; empty for the dispatcher's own."""
    tuner: AlgorithmChoice | None
    assessor: AlgorithmChoice | None
    advisor: AlgorithmChoice | None
    search_space: Payload
    seed: int
    log_level: str
    """trace, debug, info, warning, error or fatal."""
    gpu_indices: tuple[int, ...] = ()
    """What the host may see; empty = whatever it sees."""
    objectives: Payload = None
    """Objectives and constraints, for external algorithms."""
    trial_code_directory: str = ""
    """Where the trials' code lies; classes of the user's own often lie there, too."""

    @property
    def wants_intermediate(self) -> bool:
        """Whether anything here may read intermediate results."""
        external = self.tuner is not None and bool(self.tuner.server_address)
        return self.assessor is not None or self.advisor is not None or external

    def moved(self, directory: str, trial_code_directory: str) -> "ExperimentSetup":
        """Give the setup of the experiment after it came to another place; empty: as it was.

        Classes that lay in the folder of the trials' code have come along with it.
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
    """One configuration that an algorithm proposes."""

    parameter_id: int
    parameters: Payload
    provenance: Payload
    """Where it comes from; a map."""


def generation_seed(seed: int, generation: int) -> int:
    """Give the seed of one life of an algorithm.

    A resumed experiment would otherwise draw the configurations of its first life again.
    """
    # Any fixed odd multiplier keeps generations apart; this is the 64-bit golden ratio.
    return seed if generation <= 1 else (seed + (generation - 1) * 0x9E3779B97F4A7C15) % 2**63
