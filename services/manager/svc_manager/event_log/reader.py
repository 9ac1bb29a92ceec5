"""Reading of event logs into the state of experiments."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError

from svc_common.errors import FailedPreconditionError
from svc_common.messaging.ports import EventLog
from svc_manager.converters.event_codec import event_from
from svc_manager.converters.events import batch_from_bytes
from svc_manager.converters.scalars import to_ms
from svc_manager.domain.fold import fold
from svc_manager.domain.state import Experiment
from svc_manager.ports import Journal

FOLD_ERRORS: Final = (
    DecodeError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    AssertionError,
)
"""Errors of a fold of batches that are damaged or lack others: it trusts the order of events."""


@dataclass(slots=True)
class FoldedExperiment:
    """State of an experiment, and the position in its log up to which it is folded."""

    experiment: Experiment
    sequence: int = 0
    """Stream sequence of the last folded batch; 0: there is none."""
    epoch: int = 0
    """Largest epoch of a writer."""
    inbox_sequence: int = 0
    """Sequence of the last INBOX message whose consequences are in the log."""


def fold_batch(folded: FoldedExperiment, sequence: int, payload: bytes) -> None:
    """Apply a batch's known events to the state; advance sequence, epoch, INBOX cursor; or raise.

    Raises:
        ValueError: the batch holds an impossible transition.
        google.protobuf.message.DecodeError: the payload is not a batch.
    """
    batch = batch_from_bytes(payload)
    time_ms = to_ms(batch.time)
    for message in batch.events:
        event = event_from(message)
        if event is not None:
            fold(folded.experiment, event, time_ms)
    folded.sequence = sequence
    folded.epoch = max(folded.epoch, batch.epoch)
    folded.inbox_sequence = max(folded.inbox_sequence, batch.inbox_sequence)


def cursor_of(payload: bytes) -> int:
    """Return the INBOX sequence that an encoded batch records as consumed; 0: unreadable."""
    try:
        return batch_from_bytes(payload).inbox_sequence
    except DecodeError:
        return 0  # its log cannot be loaded, which is reported then


async def load(
    events: EventLog, experiment_id: str, snapshot: FoldedExperiment | None = None
) -> FoldedExperiment:
    """Return the state folded from an experiment's log, onto a snapshot (in place) if given.

    Args:
        events: the logs.
        experiment_id: the experiment.
        snapshot: state to start from; it is changed. None: start from the first event.

    Raises:
        FailedPreconditionError: the log cannot be read.
    """
    folded = snapshot or FoldedExperiment(Experiment())
    async for message in events.read(experiment_id, folded.sequence):
        try:
            fold_batch(folded, message.sequence, message.payload)
        except FOLD_ERRORS as error:
            raise FailedPreconditionError(
                f"the log of experiment {experiment_id} cannot be read at {message.sequence}: "
                f"{error!r:.200}; resume it from a copy of its folder on another installation"
            ) from error
    return folded


async def complete_journal(
    events: EventLog, experiment_id: str, open_journal: Callable[[], Journal], sequence: int
) -> Journal:
    """Open and return an experiment's journal; append batches of the log that its file lacks.

    A kill between an append to the log and the write of the file leaves the file behind.
    """
    journal = open_journal()
    if journal.last_sequence < sequence:
        async for message in events.read(experiment_id, journal.last_sequence):
            journal.record(message.sequence, message.payload)
        journal.flush()
    return journal
