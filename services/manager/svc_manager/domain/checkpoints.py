"""Checkpoints that trials have saved, for trials of the algorithm or for their own next attempt."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """Directory, hash and size of a trial's checkpoint that was saved in the byte store."""

    directory: str
    """As the algorithm named it; it need not exist on any machine."""
    sha256: str
    """Hash of the archive, in hexadecimal digits."""
    size_bytes: int


@dataclass(frozen=True, slots=True)
class TrialCheckpoint:
    """Step, attempt, number and archive of a trial's complete checkpoint, for its next attempt."""

    step: int
    """As the trial named it; grows as the trial makes progress."""
    attempt: int
    """Attempt that saved it."""
    number: int
    """1-based, within the attempt."""
    sha256: str = ""
    """Hash of the archive, in hexadecimal digits; empty: it lies in the trial's shared folder."""
    size_bytes: int = 0


def dead_archives(
    saved: Mapping[str, SavedCheckpoint], released: Collection[str], wanted: Collection[str]
) -> frozenset[str]:
    """Return hashes of checkpoints of released folders that no trial or suggestion still loads.

    Args:
        saved: checkpoints by folder.
        released: folders that the algorithm will not name again.
        wanted: folders that open trials load, or that suggestions without a trial name.
    """
    over = set(released) - set(wanted)
    live = {one.sha256 for directory, one in saved.items() if directory not in over}
    return frozenset(
        one.sha256
        for directory, one in saved.items()
        if directory in over and one.sha256 not in live
    )
