"""A manager's right to decide on something, for a while."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of one owner, until it expires or is released."""

    name: str
    """What it is on, e.g. the id of an experiment."""
    owner: str
    """Who has it; differs between two starts of one process."""
    epoch: int
    """Number of this ownership, >= 1. Each new one has a larger number than all before it, so what
    an owner writes after its lease has expired can be told from what its successor writes."""
