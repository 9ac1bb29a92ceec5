"""Shared storage of an experiment, which an agent of its pool mounts on its machine."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from nni_wire.pools import experiment_of_pool
from svc_common.errors import FailedPreconditionError, InvalidArgumentError
from svc_common.storage.shared_mounts import SharedMount
from svc_common.storage.shared_storage import ROOT, SharedStorage
from svc_trial_runner.ports import LaunchError


class MountedStorage:
    """Storage that is mounted before the first trial, and unmounted with the end of the agent.

    Args:
        storage: what is mounted.
        pool: of the agent, which belongs to one experiment.
        folder: the agent's own one, for files of the mount.
        variables: environment of the commands that mount it.

    Raises:
        InvalidArgumentError: it would be mounted in the agent's own folder, which is removed.
    """

    def __init__(
        self, storage: SharedStorage, pool: str, folder: Path, variables: Mapping[str, str]
    ) -> None:
        place = Path.home() / storage.remote_mount_point
        experiment_id = experiment_of_pool(pool)
        if experiment_id is None:
            raise InvalidArgumentError("sharedStorage", "must be of an experiment's own pool", pool)
        if folder == place or folder in place.parents:
            raise InvalidArgumentError(
                "sharedStorage.remoteMountPoint",
                "must be a folder outside that of NNI's agents",
                str(place),
            )
        self.root = place / ROOT
        """Folder of all experiments in the storage."""
        self._mount = SharedMount(storage, experiment_id, place, folder, variables)

    async def ensure(self) -> None:
        """Mount the storage unless it is mounted; raise LaunchError if that fails.

        Raises:
            LaunchError: it cannot be mounted, or is not the one that the manager sees.
        """
        try:
            await asyncio.to_thread(self._mount.ensure)
        except FailedPreconditionError as error:
            raise LaunchError(error.message) from error

    async def aclose(self) -> None:
        """Unmount the storage, if this agent has mounted it and no other agent uses it."""
        await asyncio.to_thread(self._mount.unmount)
