"""An experiment from a copied folder: its `events.log` becomes a log of this installation."""

from pathlib import Path

from nni_proto.experiment.v1 import event_pb2
from svc_common.errors import InvalidArgumentError
from svc_common.messaging.ports import EventLog
from svc_manager.converters.events import batch_from_bytes
from svc_manager.ports import Journals


async def import_folder(
    events: EventLog, journals: Journals, experiment_id: str, directory: Path
) -> None:
    """Append the batches of a folder to the log of an experiment that is unknown here.

    Positions inside the batches are rewritten to the new ones, and the cursor of the INBOX begins
    anew, for both name places in streams that stayed behind.

    Raises:
        NotFoundError: the folder holds no log.
        InvalidArgumentError: it is the log of another experiment.
        LostOwnershipError: somebody else is importing it at the same time.
    """
    records = await journals.read(directory)
    batches = [(sequence, batch_from_bytes(payload)) for sequence, payload in records]
    _check_id(batches, experiment_id, directory)
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
            append_id=f"import-{count}",
        )
        places[old_sequence] = last


def _check_id(
    batches: list[tuple[int, event_pb2.EventBatch]], experiment_id: str, directory: Path
) -> None:
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
    if event.HasField("parameters_generated"):
        position = event.parameters_generated.based_on
    elif event.HasField("algorithm_failed"):
        position = event.algorithm_failed.position
    else:
        return
    position.sequence = places.get(position.sequence, position.sequence)
