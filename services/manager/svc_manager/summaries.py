"""What is kept beside the logs so that they need not be folded again: summaries and snapshots."""

from nni_proto.experiment.v1 import experiment_pb2
from svc_common.errors import NotFoundError, ServiceError
from svc_common.logs import get_logger
from svc_common.storage.ports import BlobStore
from svc_manager.loading import Folded
from svc_manager.snapshot import SnapshotError, decode_snapshot, encode_snapshot

_SEQUENCE_BYTES = 8


class Summaries:
    """Views and snapshots of experiments in the byte store, each with its place in the log.

    Both may be stale or missing: a view is compared with the end of the log, and a snapshot is
    folded on from where it was taken.

    Args:
        blobs: where they lie.
    """

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs

    async def put(self, view: experiment_pb2.Experiment, sequence: int) -> None:
        """Keep the view of an experiment as of ``sequence``; failing is logged, not raised."""
        data = sequence.to_bytes(_SEQUENCE_BYTES, "big") + view.SerializeToString()
        try:
            await self._blobs.put_named(_key(view.id), data)
        except ServiceError as error:
            get_logger().warning("summary not written", experiment=view.id, error=error.message)

    async def get(self, experiment_id: str, sequence: int) -> experiment_pb2.Experiment | None:
        """Give the view as of ``sequence``; None if there is none, or it is of another time."""
        try:
            data = await self._blobs.get(_key(experiment_id))
        except NotFoundError:
            return None
        if int.from_bytes(data[:_SEQUENCE_BYTES], "big") != sequence:
            return None
        return experiment_pb2.Experiment.FromString(data[_SEQUENCE_BYTES:])

    async def put_snapshot(self, folded: Folded) -> None:
        """Keep the state of an experiment; failing is logged, not raised."""
        data = encode_snapshot(folded)
        try:
            await self._blobs.put_named(_snapshot_key(folded.experiment.id), data)
        except ServiceError as error:
            get_logger().warning(
                "snapshot not written", experiment=folded.experiment.id, error=error.message
            )

    async def get_snapshot(self, experiment_id: str) -> Folded | None:
        """Give the latest state that was kept; None if there is none that can be read."""
        try:
            return decode_snapshot(await self._blobs.get(_snapshot_key(experiment_id)))
        except NotFoundError:
            return None
        except SnapshotError as error:
            get_logger().info("snapshot passed over", experiment=experiment_id, error=str(error))
            return None

    async def delete(self, experiment_id: str) -> None:
        """Forget what is kept of an experiment."""
        await self._blobs.delete(_key(experiment_id))
        await self._blobs.delete(_snapshot_key(experiment_id))


def _key(experiment_id: str) -> str:
    return f"summary/{experiment_id}/experiment"


def _snapshot_key(experiment_id: str) -> str:
    return f"snapshot/{experiment_id}/state"
