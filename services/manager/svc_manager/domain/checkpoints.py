"""What trials have saved, by the folder that their algorithm named, and what is over of it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """A checkpoint folder, packed, in the byte store."""

    directory: str
    """As the algorithm named it; no machine need have it."""
    sha256: str
    """Of the archive, in hexadecimal digits."""
    size_bytes: int


def dead_archives(
    saved: Mapping[str, SavedCheckpoint], released: Collection[str], wanted: Collection[str]
) -> frozenset[str]:
    """Give the hashes of archives that no trial will load any more.

    Args:
        saved: by folder.
        released: folders that the algorithm will not name again.
        wanted: folders that trials which are not over load, or that suggestions which are no
            trial yet name.
    """
    over = set(released) - set(wanted)
    live = {one.sha256 for directory, one in saved.items() if directory not in over}
    return frozenset(
        one.sha256
        for directory, one in saved.items()
        if directory in over and one.sha256 not in live
    )
