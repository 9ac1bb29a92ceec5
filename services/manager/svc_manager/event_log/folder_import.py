"""Import of an experiment from a copied folder.

Its `events.log` becomes a log of this installation.
"""

import secrets
from collections.abc import Callable
from pathlib import Path

from nni_proto.experiment.v1 import event_pb2
from svc_common.errors import InvalidArgumentError
from svc_common.messaging.ports import LOADING, EventLog
from svc_manager.converters.events import Stamp, batch_from_bytes, batch_to_bytes
from svc_manager.converters.scalars import to_ms
from svc_manager.domain.decide_commands import cut_off
from svc_manager.domain.decision_round import Round
from svc_manager.domain.values import TrialIds
from svc_manager.event_log.reader import load
from svc_manager.ports import Journals


async def import_folder(
    events: EventLog, journals: Journals, ids: TrialIds, experiment_id: str, directory: Path
) -> None:
    """Append the batches of a folder's log to the log of an experiment that is unknown here.

    An experiment that was running when its folder was copied is stopped here. Positions inside the
    batches are rewritten to the new ones, and the INBOX cursor restarts at 0: both name places in
    streams that were not copied.

    Raises:
        NotFoundError: the folder holds no log.
        InvalidArgumentError: the log is of another experiment.
        LostOwnershipError: another import of it is under way.
    """
    records = await journals.read(directory)
    batches = [(sequence, batch_from_bytes(payload)) for sequence, payload in records]
    _check_id(batches, experiment_id, directory)
    await append_batches(events, ids, experiment_id, batches)


def _nothing_more(_round: Round) -> None:
    """Add no events."""


async def append_batches(
    events: EventLog,
    ids: TrialIds,
    experiment_id: str,
    batches: list[tuple[int, event_pb2.EventBatch]],
    close: Callable[[Round], None] = _nothing_more,
) -> None:
    """Append the batches of another installation's log, and the events that stop the experiment.

    Args:
        events: the logs.
        ids: source of ids.
        experiment_id: the experiment; its log must be empty.
        batches: with their old positions, in order; they are changed.
        close: emits further events after the experiment is stopped.

    Raises:
        LostOwnershipError: another import of it is under way.
    """
    # The bus remembers append ids for a while, even those of a deleted log.
    load_id = secrets.token_hex(4)
    places: dict[int, int] = {}
    last = 0
    for count, (old_sequence, batch) in enumerate(batches):
        for event in batch.events:
            _move_positions(event, places)
        batch.inbox_sequence = 0
        last = await events.append(
            experiment_id,
            batch.SerializeToString(),
            expected_sequence=last,
            epoch=batch.epoch,
            append_id=f"{LOADING}{load_id}-{count}",
        )
        places[old_sequence] = last
    await _cut_off(events, ids, experiment_id, to_ms(batches[-1][1].time), load_id, close)


async def _cut_off(
    events: EventLog,
    ids: TrialIds,
    experiment_id: str,
    time_ms: int,
    load_id: str,
    close: Callable[[Round], None],
) -> None:
    """Append the events that stop the experiment at the time of its last batch."""
    folded = await load(events, experiment_id)
    round_ = Round(folded.experiment, time_ms, ids)
    cut_off(round_)
    close(round_)
    # Appended even if it is empty: it marks the log as complete.
    stamp = Stamp(folded.epoch + 1, 0, time_ms)
    await events.append(
        experiment_id,
        batch_to_bytes(round_.events, stamp, 0),
        expected_sequence=folded.sequence,
        epoch=stamp.epoch,
        append_id=f"loaded-{load_id}",
    )


def _check_id(
    batches: list[tuple[int, event_pb2.EventBatch]], experiment_id: str, directory: Path
) -> None:
    """Raise InvalidArgumentError unless the log is of ``experiment_id``."""
    first = batches[0][1].events[0] if batches and batches[0][1].events else event_pb2.Event()
    if first.experiment_created.experiment_id != experiment_id:
        found = first.experiment_created.experiment_id or "none"
        raise InvalidArgumentError(
            "experiment_directory",
            f"must be the folder of experiment {experiment_id}",
            str(directory),
            f"its log is of experiment {found}",
        )


def _move_positions(event: event_pb2.Event, places: dict[int, int]) -> None:
    """Replace positions of the old stream by those of the new one."""
    if event.HasField("parameters_generated"):
        position = event.parameters_generated.based_on
    elif event.HasField("algorithm_failed"):
        position = event.algorithm_failed.position
    else:
        return
    position.sequence = places.get(position.sequence, position.sequence)
