"""Removes everything that an experiment leaves behind."""

from collections.abc import Callable
from pathlib import Path

from svc_common.messaging.ports import Bus
from svc_manager.event_log.summaries import Summaries
from svc_manager.ports import Folders


class Deletion:
    """Deletes logs, folder and summary of an experiment that nobody runs.

    Args:
        bus: where its logs lie.
        folders: where its folder lies.
        summaries: what lists show.
        on_deleted: called afterwards: what only it referred to is garbage now.
        annotated: where the converted copies of annotated code lie; None: not on this machine.
    """

    def __init__(
        self,
        bus: Bus,
        folders: Folders,
        summaries: Summaries,
        on_deleted: Callable[[], None] = lambda: None,
        annotated: Path | None = None,
    ) -> None:
        self._annotated = annotated
        self._bus = bus
        self._folders = folders
        self._summaries = summaries
        self._on_deleted = on_deleted

    async def delete(self, experiment_id: str, directory: str, code_directory: str = "") -> None:
        """Delete it; may be repeated after a failure half-way.

        Only a folder that bears the experiment's name or its database is removed: the path came
        from outside once.
        """
        folder = Path(directory)
        if folder.name == experiment_id or (folder / "db" / "events.log").is_file():
            await self._folders.remove(folder)
        code = Path(code_directory)
        if self._annotated is not None and code.parent == self._annotated:
            await self._folders.remove(code)  # nobody else runs this copy
        await self._summaries.delete(experiment_id)
        await self._bus.inbox.delete(experiment_id)
        await self._bus.log_lines.delete(experiment_id)
        await self._bus.events.delete(experiment_id)
        self._on_deleted()
