"""Mark and sweep of the byte store: which blobs no log refers to.

The logs of all experiments name the reachable blobs; the others are garbage once they are old
enough. A blob is stored before the event that names it, so a young blob may be named soon.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from nni_wire.trial_blobs import OUTPUT_KIND
from svc_manager.domain.blob_access import UPLOADED_KIND

CONTENT_KIND: Final = "sha256"
"""First key part of blobs that are named by their hash."""
SNAPSHOT_KIND: Final = "snapshot"
"""First key part of snapshots."""
SUMMARY_KIND: Final = "summary"
"""First key part of summaries."""
OWNED_KINDS: Final = (OUTPUT_KIND, SNAPSHOT_KIND, SUMMARY_KIND)
"""First key parts of blobs that belong to the experiment that the second part names."""
STAGING_KIND: Final = "staging"
"""First key part of content that was uploaded, and is not checked yet."""
TOMBSTONE_KIND: Final = "tombstone"
"""First key part of the tombstones of deleted experiments."""
TOMBSTONE_MS: Final = 7 * 24 * 3600 * 1000
"""Lifetime of a tombstone: a request is not repeated after a week."""


@dataclass(frozen=True, slots=True)
class StoredBlob:
    """Key, size and age of a blob, from the listing of the byte store."""

    key: str
    size_bytes: int
    stored_at_ms: int
    """Time of the last write, by the clock of the store; ms since 1970."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Blob hashes that logs name and ids of existing experiments: what keeps blobs alive."""

    content: Collection[str]
    """Hashes that the logs name."""
    experiments: Collection[str]
    """Ids of all existing experiments."""


@dataclass(frozen=True, slots=True)
class Garbage:
    """Unreachable blobs, split into those old enough to delete and those still too young."""

    old: tuple[StoredBlob, ...]
    """May be deleted."""
    young: tuple[StoredBlob, ...]
    """An event that names them may follow."""


def garbage(blobs: Iterable[StoredBlob], marks: Marks, now_ms: int, grace_ms: int) -> Garbage:
    """Return the blobs that no log or experiment needs, split by age into old and young garbage.

    Blobs of an unknown kind count as reachable.

    Args:
        blobs: listed before the marks are made, so that later blobs are not among them.
        marks: the reachable blobs.
        now_ms: time by the clock of the store.
        grace_ms: age below which a blob is young.
    """
    old: list[StoredBlob] = []
    young: list[StoredBlob] = []
    for blob in blobs:
        if not _is_reachable(blob, marks, now_ms):
            (old if now_ms - blob.stored_at_ms >= grace_ms else young).append(blob)
    return Garbage(tuple(old), tuple(young))


def _is_reachable(blob: StoredBlob, marks: Marks, now_ms: int) -> bool:
    kind, _, rest = blob.key.partition("/")
    if kind == CONTENT_KIND:
        return rest in marks.content
    if kind in OWNED_KINDS:
        return rest.partition("/")[0] in marks.experiments
    if kind == UPLOADED_KIND:
        experiment_id, _, sha256 = rest.partition("/")
        return experiment_id in marks.experiments and sha256 in marks.content
    if kind == STAGING_KIND:
        return False  # an upload without a completion, or the use of a URL after it
    if kind == TOMBSTONE_KIND:
        return now_ms - blob.stored_at_ms < TOMBSTONE_MS
    return True
