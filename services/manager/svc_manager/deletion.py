"""Removes everything that an experiment leaves behind."""

from pathlib import Path

from svc_common.messaging.ports import Bus
from svc_manager.ports import Folders
from svc_manager.summaries import Summaries


class Deletion:
    """Deletes logs, folder and summary of an experiment that nobody runs.

    Args:
        bus: where its logs lie.
        folders: where its folder lies.
        summaries: what lists show.
    """

    def __init__(self, bus: Bus, folders: Folders, summaries: Summaries) -> None:
        self._bus = bus
        self._folders = folders
        self._summaries = summaries

    async def delete(self, experiment_id: str, directory: str) -> None:
        """Delete it; may be repeated after a failure half-way.

        Only a folder that bears the experiment's name or its database is removed: the path came
        from outside once.
        """
        folder = Path(directory)
        if folder.name == experiment_id or (folder / "db" / "events.log").is_file():
            await self._folders.remove(folder)
        await self._summaries.delete(experiment_id)
        await self._bus.inbox.delete(experiment_id)
        await self._bus.log_lines.delete(experiment_id)
        await self._bus.events.delete(experiment_id)
