"""Store of summaries and snapshots of experiments, so that their logs need not be folded again."""

import asyncio
from collections.abc import Collection, Mapping

from nni_proto.experiment.v1 import experiment_pb2
from svc_common.errors import NotFoundError, ServiceError
from svc_common.logs import get_logger
from svc_common.storage.ports import BlobStore
from svc_common.telemetry.metrics import Counter
from svc_manager.domain.garbage import SNAPSHOT_KIND, SUMMARY_KIND
from svc_manager.event_log.reader import FoldedExperiment
from svc_manager.event_log.snapshot import Snapshot, SnapshotError, decode_snapshot
from svc_manager.ports import Views


class Summaries:
    """Store of experiments' summaries for lists and snapshots for loading; both may be lost.

    Both may be stale or missing: a summary is compared with the end of the log, and a snapshot is
    the start of a fold. So failures of their stores are logged, never raised: the log is folded
    then.

    Args:
        views: store of summaries.
        blobs: store of snapshots.
        asked: counts the requested summaries, by hit and miss; None: nothing is counted.
    """

    def __init__(self, views: Views, blobs: BlobStore, asked: Counter | None = None) -> None:
        self._views = views
        self._blobs = blobs
        self._asked = asked

    async def put(self, view: experiment_pb2.Experiment, sequence: int) -> None:
        """Store an experiment's summary as of log position ``sequence``; a failure is logged."""
        try:
            await self._views.put(view.id, sequence, view.SerializeToString())
        except ServiceError as error:
            get_logger().warning("summary not written", experiment=view.id, error=error.message)

    async def get(self, ends: Mapping[str, int]) -> dict[str, experiment_pb2.Experiment]:
        """Return {id: stored summary} of those made at their log's end; empty if the store fails.

        Args:
            ends: last sequence in the log of each requested experiment.
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
        """Return {id: stored summary} of these experiments, even stale ones; empty on failure."""
        try:
            kept = await self._views.get(experiment_ids)
        except ServiceError as error:
            get_logger().warning("summaries not read", error=error.message)
            return {}
        return {
            experiment_id: experiment_pb2.Experiment.FromString(view)
            for experiment_id, (_, view) in kept.items()
        }

    async def known(self) -> set[str]:
        """Return ids of experiments with a summary or snapshot as a blob; empty on failure."""
        try:
            return {
                key.split("/")[1]
                for kind in (SUMMARY_KIND, SNAPSHOT_KIND)
                for key in await self._blobs.keys(f"{kind}/")
            }
        except ServiceError as error:
            get_logger().warning("summaries not listed", error=error.message)
            return set()

    async def put_snapshot(self, experiment_id: str, snapshot: Snapshot) -> None:
        """Encode an experiment's snapshot in a thread and store it; a failure is logged."""
        data = await asyncio.to_thread(snapshot.encode)
        try:
            await self._blobs.put_named(_snapshot_key(experiment_id), data)
        except ServiceError as error:
            get_logger().warning(
                "snapshot not written", experiment=experiment_id, error=error.message
            )

    async def get_snapshot(self, experiment_id: str) -> FoldedExperiment | None:
        """Load and decode an experiment's latest snapshot; None: missing, damaged or old format."""
        try:
            data = await self._blobs.get(_snapshot_key(experiment_id))
            return await asyncio.to_thread(decode_snapshot, data)
        except NotFoundError:
            return None
        except ServiceError as error:
            get_logger().warning("snapshot not read", experiment=experiment_id, error=error.message)
            return None
        except SnapshotError as error:
            get_logger().info("snapshot ignored", experiment=experiment_id, error=str(error))
            return None

    async def delete(self, experiment_id: str) -> None:
        """Delete an experiment's summary (a failure is logged) and its snapshot."""
        try:
            await self._views.delete(experiment_id)
        except ServiceError as error:  # harmless: the experiment is no longer listed
            get_logger().warning(
                "summary not deleted", experiment=experiment_id, error=error.message
            )
        await self._blobs.delete(_snapshot_key(experiment_id))


def _snapshot_key(experiment_id: str) -> str:
    return f"{SNAPSHOT_KIND}/{experiment_id}/state"
