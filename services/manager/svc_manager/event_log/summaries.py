"""What is kept beside the logs so that they need not be folded again: summaries and snapshots."""

import asyncio
from collections.abc import Collection, Mapping

from nni_proto.experiment.v1 import experiment_pb2
from svc_common.errors import NotFoundError, ServiceError
from svc_common.logs import get_logger
from svc_common.storage.ports import BlobStore
from svc_common.telemetry.metrics import Counter
from svc_manager.event_log.reader import FoldedExperiment
from svc_manager.event_log.snapshot import Snapshot, SnapshotError, decode_snapshot
from svc_manager.ports import Views


class Summaries:
    """Views and snapshots of experiments, each with its place in the log.

    Both may be stale or missing: a view is compared with the end of the log, and a snapshot is
    folded on from where it was taken. So trouble with their stores is logged, never raised: then
    the log is folded.

    Args:
        views: where views lie.
        blobs: where snapshots lie.
        asked: counts the views that were asked for, by whether they were there.
    """

    def __init__(self, views: Views, blobs: BlobStore, asked: Counter | None = None) -> None:
        self._views = views
        self._blobs = blobs
        self._asked = asked

    async def put(self, view: experiment_pb2.Experiment, sequence: int) -> None:
        """Keep the view of an experiment as of ``sequence``."""
        try:
            await self._views.put(view.id, sequence, view.SerializeToString())
        except ServiceError as error:
            get_logger().warning("summary not written", experiment=view.id, error=error.message)

    async def get(self, ends: Mapping[str, int]) -> dict[str, experiment_pb2.Experiment]:
        """Give the views that are there and not of another time.

        Args:
            ends: stream sequence of the last batch of each experiment asked for.
        """
        try:
            kept = await self._views.get(ends.keys())
        except ServiceError as error:
            get_logger().warning("summaries not read", error=error.message)
            return {}
        found = {
            experiment_id: experiment_pb2.Experiment.FromString(view)
            for experiment_id, (sequence, view) in kept.items()
            if sequence == ends[experiment_id]
        }
        if self._asked is not None:
            self._asked.inc("hit", by=len(found))
            self._asked.inc("miss", by=len(ends) - len(found))
        return found

    async def latest(self, experiment_ids: Collection[str]) -> dict[str, experiment_pb2.Experiment]:
        """Give the views that are there, of whatever time."""
        try:
            kept = await self._views.get(experiment_ids)
        except ServiceError as error:
            get_logger().warning("summaries not read", error=error.message)
            return {}
        return {
            experiment_id: experiment_pb2.Experiment.FromString(view)
            for experiment_id, (_, view) in kept.items()
        }

    async def put_snapshot(self, experiment_id: str, snapshot: Snapshot) -> None:
        """Keep the state of an experiment."""
        data = await asyncio.to_thread(snapshot.encode)
        try:
            await self._blobs.put_named(_snapshot_key(experiment_id), data)
        except ServiceError as error:
            get_logger().warning(
                "snapshot not written", experiment=experiment_id, error=error.message
            )

    async def get_snapshot(self, experiment_id: str) -> FoldedExperiment | None:
        """Give the latest state that was kept; None if there is none that can be read."""
        try:
            data = await self._blobs.get(_snapshot_key(experiment_id))
            return await asyncio.to_thread(decode_snapshot, data)
        except NotFoundError:
            return None
        except ServiceError as error:
            get_logger().warning("snapshot not read", experiment=experiment_id, error=error.message)
            return None
        except SnapshotError as error:
            get_logger().info("snapshot passed over", experiment=experiment_id, error=str(error))
            return None

    async def delete(self, experiment_id: str) -> None:
        """Forget what is kept of an experiment."""
        try:
            await self._views.delete(experiment_id)
        except ServiceError as error:  # it is of no experiment that is listed any more
            get_logger().warning("summary left", experiment=experiment_id, error=error.message)
        await self._blobs.delete(_snapshot_key(experiment_id))


def _snapshot_key(experiment_id: str) -> str:
    return f"snapshot/{experiment_id}/state"
