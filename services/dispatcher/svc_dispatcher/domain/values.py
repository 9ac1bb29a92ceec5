"""Values that the parts of the dispatcher hand to each other."""

from dataclasses import dataclass
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

    @property
    def wants_intermediate(self) -> bool:
        """Whether anything here may read intermediate results."""
        external = self.tuner is not None and bool(self.tuner.server_address)
        return self.assessor is not None or self.advisor is not None or external


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
