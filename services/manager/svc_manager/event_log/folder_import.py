"""Import of an experiment from a copied folder.

Its `events.log` becomes a log of this installation.
"""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

from nni_proto.experiment.v1 import config_pb2, event_pb2
from svc_common.errors import InvalidArgumentError, LostOwnershipError
from svc_common.logs import get_logger
from svc_common.messaging.ports import LOADING, EventLog
from svc_common.subjects import check_id
from svc_manager.converters.events import Stamp, batch_from_bytes, batch_to_bytes
from svc_manager.converters.scalars import to_ms
from svc_manager.domain.decide_commands import cut_off
from svc_manager.domain.decision_round import Round
from svc_manager.domain.events import ExperimentMoved
from svc_manager.domain.state import Experiment
from svc_manager.domain.values import TrialIds
from svc_manager.event_log.merging import Records, merged, readable_start
from svc_manager.event_log.reader import FOLD_ERRORS, FoldedExperiment, fold_batch, load
from svc_manager.ports import Journals

_EVENTS: Final = "events.log"
CheckConfig: TypeAlias = Callable[[config_pb2.ExperimentConfig], object]
"""Raises InvalidArgumentError unless the caller may name the folders in a configuration."""


async def import_folder(
    events: EventLog,
    journals: Journals,
    ids: TrialIds,
    experiment_id: str,
    directory: Path,
    check_config: CheckConfig | None = None,
    *,
    is_own: bool = False,
) -> list[str]:
    """Rebuild an unknown experiment's log from its folder, then STOPPED; return damage warnings.

    An experiment that was running when its folder was copied is stopped here. Positions inside the
    batches are rewritten to the new ones, and the INBOX cursor restarts at 0: both name places in
    streams that were not copied. Afterwards the file has the positions of the new log.

    Args:
        events: the logs.
        journals: event log files in the folders of experiments.
        ids: source of ids.
        experiment_id: the experiment.
        directory: its folder.
        check_config: checks the configuration in the log; None: no caller has asked for the import.
        is_own: whether this installation wrote the folder. Of its log, whole or not, the records
            that can be folded are taken; the log of another one has to be whole or be damaged.

    Returns:
        Warnings: of a damaged file, the records that can be read and folded are imported.

    Raises:
        NotFoundError: the folder holds no log.
        InvalidArgumentError: the log is of another experiment, or its configuration is refused.
        LostOwnershipError: another import of it is under way.
    """
    found = await journals.experiment_of(directory)
    records = await journals.read(directory)
    damage = await journals.damage_of(directory)
    if found != experiment_id:
        reason = f"its log is of experiment {found or 'none'}"
        raise InvalidArgumentError(
            "experiment_directory",
            f"must be the folder of experiment {experiment_id}",
            str(directory),
            f"{reason}; {damage}" if damage else reason,
        )
    if damage or is_own:
        readable = readable_start(records)
        if len(readable) < len(records):
            lost = f"{len(records) - len(readable)} records need others that are lost"
            damage = f"{damage}; {lost}" if damage else lost
        records = readable
    torn = await journals.torn_end_of(directory)
    damage = "; ".join(text for text in (damage, torn) if text)
    if damage:
        get_logger().warning(
            "imported log is damaged",
            experiment=experiment_id,
            folder=str(directory),
            error=damage,
            batches=len(records),
        )
    batches = checked_batches(records, experiment_id, check_config)
    last = await events.last(experiment_id)
    if last is not None and last.is_loading:
        await events.delete(experiment_id)  # of an import that a kill interrupted
    await _append_stopped(events, ids, experiment_id, directory, batches)
    await rewrite_file(events, journals, experiment_id, directory)
    return [f"the folder {directory} is not whole: {damage}"] if damage else []


async def _append_stopped(
    events: EventLog,
    ids: TrialIds,
    experiment_id: str,
    directory: Path,
    batches: list[tuple[int, event_pb2.EventBatch]],
) -> None:
    """Append batches to an empty log, stop the experiment in its folder; undo after an error."""

    def move(round_: Round) -> None:
        # Whatever the log says: it comes from outside, and the manager writes where it tells.
        round_.emit(ExperimentMoved(str(directory)))

    try:
        await append_batches(events, ids, experiment_id, batches, move)
    except LostOwnershipError:
        raise  # the log is that of the other import
    except BaseException:
        await events.delete(experiment_id)
        raise


async def rewrite_file(
    events: EventLog, journals: Journals, experiment_id: str, directory: Path
) -> None:
    """Replace the event log file in a folder by the experiment's log on the bus."""
    records = [(found.sequence, found.payload) async for found in events.read(experiment_id)]
    await journals.rewrite(directory, records)


async def reconcile(
    events: EventLog,
    journals: Journals,
    ids: TrialIds,
    experiment_id: str,
    directory: Path,
) -> bool:
    """Merge log and event file; return True if the log was replaced, False if only the file.

    A log that has lost records, as by a cut of power, gets those that the folder's event file still
    has, damaged or not: the experiment is STOPPED then, and no trial of it runs again. A file that
    has no more than the log is rewritten.

    Returns:
        Whether the log was replaced.

    Raises:
        NotFoundError: the folder holds no log.
        InvalidArgumentError: the file cannot be read; nothing has changed.
    """
    # First the file: what another manager appends to both meanwhile is no lost record of the log.
    file = await journals.read(directory)
    log = [(found.sequence, found.payload) async for found in events.read(experiment_id)]
    records = readable_start(merged(log, file))
    if len(records) <= len(log) and len(log) == len(readable_start(log)):
        get_logger().warning(
            "event file rewritten from the log", experiment=experiment_id, folder=str(directory)
        )
        await rewrite_file(events, journals, experiment_id, directory)
        return False
    if not await replace_log(events, journals, ids, experiment_id, directory, records):
        return False
    get_logger().error(
        "log restored from the experiment's folder: records of it were lost; the experiment is "
        "stopped",
        experiment=experiment_id,
        folder=str(directory),
        batches=len(records),
        lost=len(records) - len(log),
    )
    return True


async def replace_log(
    events: EventLog,
    journals: Journals,
    ids: TrialIds,
    experiment_id: str,
    directory: Path,
    records: Records,
) -> bool:
    """Replace log and file by records, STOPPED then; return False if the file cannot be written.

    The file comes first: if a kill interrupts the rest, the log is rebuilt from it.

    Returns:
        False: the file cannot be written, and nothing has changed.

    Raises:
        InvalidArgumentError: the records cannot be read, or are of another experiment; nothing has
            changed.
    """
    batches = checked_batches(records, experiment_id)
    if not await journals.rewrite(directory, records):
        return False
    await events.delete(experiment_id)
    await _append_stopped(events, ids, experiment_id, directory, batches)
    await rewrite_file(events, journals, experiment_id, directory)
    return True


def _nothing_more(_round: Round) -> None:
    """Add no events."""


async def append_batches(
    events: EventLog,
    ids: TrialIds,
    experiment_id: str,
    batches: list[tuple[int, event_pb2.EventBatch]],
    close: Callable[[Round], None] = _nothing_more,
) -> None:
    """Move foreign batches to new positions (in place), append them, then stop the experiment.

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
    """Append the events that stop an imported experiment, at the time of its last batch."""
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


def checked_batches(
    records: Records,
    experiment_id: str,
    check_config: CheckConfig | None = None,
) -> list[tuple[int, event_pb2.EventBatch]]:
    """Decode another installation's log; raise InvalidArgumentError unless it folds and fits.

    Raises:
        InvalidArgumentError: it cannot be folded, is of another experiment, names trials that
            could not be names of folders, or `check_config` refuses its configuration.
    """
    folded = FoldedExperiment(Experiment())
    last = 0
    for sequence, payload in records:
        if sequence <= last:
            raise InvalidArgumentError(_EVENTS, "must have positions that grow", sequence)
        try:
            fold_batch(folded, sequence, payload)
        except FOLD_ERRORS as error:  # the file comes from outside
            raise InvalidArgumentError(
                _EVENTS,
                f"must be a log that can be read; at {sequence} it cannot",
                str(error)[:200],
            ) from error
        last = sequence
    if folded.experiment.id != experiment_id or not folded.experiment.created:
        raise InvalidArgumentError(
            _EVENTS, f"must be the log of experiment {experiment_id}", folded.experiment.id
        )
    for trial_id in folded.experiment.trials:
        check_id("trial_id", trial_id)
    if check_config is not None:
        check_config(config_pb2.ExperimentConfig.FromString(folded.experiment.config))
    return [(sequence, batch_from_bytes(payload)) for sequence, payload in records]


def _move_positions(event: event_pb2.Event, places: dict[int, int]) -> None:
    """Rewrite the log position inside an event from the old stream to the new one."""
    if event.HasField("parameters_generated"):
        position = event.parameters_generated.based_on
    elif event.HasField("algorithm_failed"):
        position = event.algorithm_failed.position
    else:
        return
    position.sequence = places.get(position.sequence, position.sequence)
