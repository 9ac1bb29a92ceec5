"""What lists show of experiments that are over, kept so that no log need be folded for it."""

from nni_proto.experiment.v1 import experiment_pb2
from svc_common.errors import NotFoundError, ServiceError
from svc_common.logs import get_logger
from svc_common.storage.ports import BlobStore

_SEQUENCE_BYTES = 8


class Summaries:
    """Views of experiments in the byte store, each with the place in the log it speaks of.

    A summary may be stale or missing; whoever reads one compares its sequence with the log.

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

    async def delete(self, experiment_id: str) -> None:
        """Forget a summary."""
        await self._blobs.delete(_key(experiment_id))


def _key(experiment_id: str) -> str:
    return f"summary/{experiment_id}/experiment"
