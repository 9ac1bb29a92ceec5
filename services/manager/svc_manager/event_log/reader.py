"""Experiments from their logs."""

from collections.abc import Callable
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from svc_common.errors import FailedPreconditionError
from svc_common.messaging.ports import EventLog
from svc_manager.converters.events import batch_from_bytes, event_from
from svc_manager.converters.scalars import to_ms
from svc_manager.domain.fold import fold
from svc_manager.domain.state import Experiment
from svc_manager.ports import Journal


@dataclass(slots=True)
class FoldedExperiment:
    """An experiment and the place in its log up to which it is folded."""

    experiment: Experiment
    sequence: int = 0
    """Stream sequence of the last batch; 0: there is none."""
    epoch: int = 0
    """Largest epoch of a writer."""
    inbox_sequence: int = 0
    """Last message of the INBOX whose consequences are in the log."""


def fold_batch(folded: FoldedExperiment, sequence: int, payload: bytes) -> None:
    """Take in one batch.

    Raises:
        ValueError: the log tells of an impossible change.
        google.protobuf.message.DecodeError: it is no batch.
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


async def load(
    events: EventLog, experiment_id: str, snapshot: FoldedExperiment | None = None
) -> FoldedExperiment:
    """Fold the log of an experiment; an empty one gives an experiment that is not created.

    Args:
        events: the logs.
        experiment_id: which one.
        snapshot: state to go on from; it is changed. None: from the beginning.

    Raises:
        FailedPreconditionError: the log cannot be read.
    """
    folded = snapshot or FoldedExperiment(Experiment())
    async for message in events.read(experiment_id, folded.sequence):
        try:
            fold_batch(folded, message.sequence, message.payload)
        except (DecodeError, ValueError) as error:
            raise FailedPreconditionError(
                f"the log of experiment {experiment_id} cannot be read at {message.sequence}: "
                f"{error}; resume it from a copy of its folder on another installation"
            ) from error
    return folded


async def complete_journal(
    events: EventLog, experiment_id: str, open_journal: Callable[[], Journal], sequence: int
) -> Journal:
    """Open a journal and give it what it lacks of the log up to ``sequence``.

    A kill between an append and its write leaves the file behind the log.
    """
    journal = open_journal()
    if journal.last_sequence < sequence:
        async for message in events.read(experiment_id, journal.last_sequence):
            journal.record(message.sequence, message.payload)
        journal.flush()
    return journal
