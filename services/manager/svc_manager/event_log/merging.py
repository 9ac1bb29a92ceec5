"""Merging of the two copies of an experiment's log: on the bus, and in the experiment's folder.

Each may have lost records that the other one still has.
"""

from collections.abc import Sequence
from typing import TypeAlias

from google.protobuf.message import DecodeError

from svc_manager.converters.events import batch_from_bytes
from svc_manager.domain.state import Experiment
from svc_manager.event_log.reader import FOLD_ERRORS, FoldedExperiment, fold_batch

Records: TypeAlias = Sequence[tuple[int, bytes]]
"""(stream sequence, encoded batch) in the order of the log; no batch occurs twice."""


def experiment_in(records: Records) -> str:
    """Return the id in a log's first event; empty: there is none, for its start is lost."""
    try:
        events = batch_from_bytes(records[0][1]).events if records else ()
    except DecodeError:
        return ""
    return events[0].experiment_created.experiment_id if events else ""


def merged(log: Records, file: Records) -> list[tuple[int, bytes]]:
    """Return both copies' records by sequence; only the longer copy if their positions disagree.

    The file may have positions of another stream, if an import of it was not completed: then the
    copies cannot be merged, and the longer one is returned.

    Args:
        log: records on the bus.
        file: records in the folder.
    """
    if not _positions_agree(log, file):
        return list(file if len(file) > len(log) else log)
    sequences = {sequence for sequence, _ in log}
    payloads = {payload for _, payload in log}
    # A batch of the log at another sequence is one whose sequence in the file is damaged.
    missing = [
        (sequence, payload)
        for sequence, payload in file
        if sequence not in sequences and payload not in payloads
    ]
    return sorted([*log, *missing])


def _positions_agree(log: Records, file: Records) -> bool:
    """Return whether a file has the positions of the log: most common positions hold one batch."""
    batches = dict(log)
    common = [batches[sequence] == payload for sequence, payload in file if sequence in batches]
    if common:
        return sum(common) * 2 > len(common)
    return not log or not experiment_in(file)  # two starts of one log are two numberings of it


def readable_start(records: Records) -> list[tuple[int, bytes]]:
    """Return the records before the first that cannot be folded, for one before it is missing."""
    folded = FoldedExperiment(Experiment())
    for count, (sequence, payload) in enumerate(records):
        try:
            fold_batch(folded, sequence, payload)
        except FOLD_ERRORS:
            return list(records[:count])
    return list(records)
