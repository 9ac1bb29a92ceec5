"""Which bytes nothing refers to any more.

Mark and sweep: the logs of all experiments say what is referred to, and the rest is garbage once
it is old enough. Bytes come before the fact that names them, so what is young may be named soon.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from nni_wire.trial_blobs import OUTPUT_KIND

CONTENT_KIND: Final = "sha256"
"""First part of the names of what is found by its content; the rest is the hash."""
OWNED_KINDS: Final = (OUTPUT_KIND, "snapshot", "summary")
"""First parts of the names of what belongs to the experiment that the second part names."""
TOMBSTONE_KIND: Final = "tombstone"
"""First part of the names of what is left of deletions."""
TOMBSTONE_MS: Final = 7 * 24 * 3600 * 1000
"""How long a deletion is remembered: nobody asks for the same one again after a week."""


@dataclass(frozen=True, slots=True)
class StoredBlob:
    """One blob as the store lists it."""

    key: str
    size_bytes: int
    stored_at_ms: int
    """When it was written last, by the clock of the store; ms since 1970."""


@dataclass(frozen=True, slots=True)
class Marks:
    """What is still wanted."""

    content: Collection[str]
    """Hashes that the logs name."""
    experiments: Collection[str]
    """Ids of all experiments that there are."""


@dataclass(frozen=True, slots=True)
class Garbage:
    """What nothing refers to."""

    old: tuple[StoredBlob, ...]
    """May be deleted."""
    young: tuple[StoredBlob, ...]
    """A fact that names it may be on its way."""


def garbage(blobs: Iterable[StoredBlob], marks: Marks, now_ms: int, grace_ms: int) -> Garbage:
    """Find the blobs that nothing refers to.

    What is of a kind that is not known here stays: somebody else knows it.

    Args:
        blobs: listed before the marks were made, so that what was stored since is not among them.
        marks: what is wanted.
        now_ms: the time by the clock of the store.
        grace_ms: what was stored so lately is young.
    """
    old: list[StoredBlob] = []
    young: list[StoredBlob] = []
    for blob in blobs:
        if not _is_wanted(blob, marks, now_ms):
            (old if now_ms - blob.stored_at_ms >= grace_ms else young).append(blob)
    return Garbage(tuple(old), tuple(young))


def _is_wanted(blob: StoredBlob, marks: Marks, now_ms: int) -> bool:
    kind, _, rest = blob.key.partition("/")
    if kind == CONTENT_KIND:
        return rest in marks.content
    if kind in OWNED_KINDS:
        return rest.partition("/")[0] in marks.experiments
    if kind == TOMBSTONE_KIND:
        return now_ms - blob.stored_at_ms < TOMBSTONE_MS
    return True
