"""Restoration of event logs that the bus has lost, from the folders of their experiments."""

from pathlib import Path

from svc_common.errors import (
    InvalidArgumentError,
    LostOwnershipError,
    NotFoundError,
    UnavailableError,
)
from svc_common.logs import get_logger
from svc_common.messaging.ports import Bus
from svc_manager.actors.leasing import OwnedElsewhereError, Ownership
from svc_manager.event_log.folder_import import import_folder, reconcile
from svc_manager.event_log.merging import Records, experiment_in
from svc_manager.event_log.summaries import Summaries
from svc_manager.ports import IdSource, Journals


class LogRestorer:
    """Restorer of logs that are gone from the bus, or have lost their end, from event log files.

    Args:
        bus: holds the logs.
        summaries: name the experiments that existed, and their folders.
        journals: opens the event log files.
        ids: source of ids for rebuilt logs.
        ownership: leases of this manager.
    """

    def __init__(
        self,
        bus: Bus,
        summaries: Summaries,
        journals: Journals,
        ids: IdSource,
        ownership: Ownership,
    ) -> None:
        self._bus = bus
        self._summaries = summaries
        self._journals = journals
        self._ids = ids
        self._ownership = ownership

    async def restore_missing(self) -> None:
        """Rebuild from its folder each experiment that has a summary but no log on the bus.

        A deletion removes folder and summary first, so a deleted experiment does not return. The
        log of an import that a kill interrupted counts as gone. To be called before any experiment
        has an actor here.
        """
        events = self._bus.events
        missing = await self._summaries.known()
        for experiment_id in await events.experiments():
            last = await events.last(experiment_id)
            if last is not None and not last.is_loading:
                missing.discard(experiment_id)
        summaries = await self._summaries.latest(missing) if missing else {}
        for experiment_id, summary in sorted(summaries.items()):
            if summary.directory:
                await self._restore(experiment_id, Path(summary.directory))

    async def compare(self, experiment_id: str, directory: Path, end: int) -> bool:
        """Compare a log with the folder's event file, mend both; return whether the log changed.

        A file that is no log of this experiment is set aside. Otherwise log and file get the
        records that only the other one has; an end that only the file lacks is left to the journal.

        Args:
            experiment_id: the experiment, whose lease this manager has.
            directory: its folder.
            end: sequence of the log's last message.
        """
        try:
            records = await self._journals.read(directory)
            damage = await self._journals.damage_of(directory)
        except NotFoundError:
            await self._journals.set_aside(directory, "it is missing, or no regular file")
            return False
        except InvalidArgumentError as error:
            await self._journals.set_aside(directory, error.message)
            return False
        other = experiment_in(records)
        if other not in {"", experiment_id}:
            await self._journals.set_aside(directory, f"it is of experiment {other}")
            return False
        if not damage and await self._agrees(experiment_id, records, end):
            return False
        return await self._reconcile(experiment_id, directory)

    async def _agrees(self, experiment_id: str, records: Records, end: int) -> bool:
        """Return whether an event file has as many records as the log, up to the file's last."""
        events = self._bus.events
        last = records[-1][0] if records else 0
        behind = 0
        if last < end:
            async for _ in events.read(experiment_id, last):
                behind += 1
        return last <= end and len(records) + behind == await events.count(experiment_id)

    async def _reconcile(self, experiment_id: str, directory: Path) -> bool:
        """Merge log and event file; return whether the log was replaced; log a failure: False."""
        try:
            restored = await reconcile(
                self._bus.events, self._journals, self._ids, experiment_id, directory
            )
        except (InvalidArgumentError, NotFoundError) as error:
            get_logger().error(
                "folder of an experiment cannot be read",
                experiment=experiment_id,
                folder=str(directory),
                error=error.message,
            )
            return False
        if restored:
            await self._delete_positions(experiment_id)
        return restored

    async def replace_unreadable(self, experiment_id: str, reason: str) -> bool:
        """Replace a log that cannot be read by the folder's event file; return False if that fails.

        Args:
            experiment_id: the experiment, whose lease this manager has.
            reason: why the log cannot be read, for the operator.
        """
        summaries = await self._summaries.latest({experiment_id})
        if experiment_id not in summaries or not summaries[experiment_id].directory:
            return False
        directory = Path(summaries[experiment_id].directory)
        if not await self._reconcile(experiment_id, directory):
            return False
        get_logger().error(
            "log of an experiment could not be read, and was replaced by its folder's; the "
            "experiment is stopped",
            experiment=experiment_id,
            folder=str(directory),
            reason=reason,
        )
        return True

    async def _restore(self, experiment_id: str, directory: Path) -> None:
        """Rebuild the log of one experiment from its folder; log a failure instead of raising."""
        try:
            last = await self._bus.events.last(experiment_id)
            await self._ownership.take(experiment_id, last.epoch if last else 0)
        except OwnedElsewhereError:
            return  # its owner restores it
        try:
            await import_folder(
                self._bus.events, self._journals, self._ids, experiment_id, directory, is_own=True
            )
        except NotFoundError:
            return  # the folder is gone, too
        except (InvalidArgumentError, LostOwnershipError, UnavailableError, OSError) as error:
            get_logger().error(
                "log of an experiment is gone, and its folder cannot be read",
                experiment=experiment_id,
                folder=str(directory),
                error=str(error),
            )
            return
        finally:
            await self._ownership.release(experiment_id)
        await self._delete_positions(experiment_id)
        get_logger().error(
            "log of an experiment was gone, and came back from its folder; the experiment is "
            "stopped",
            experiment=experiment_id,
            folder=str(directory),
        )

    async def _delete_positions(self, experiment_id: str) -> None:
        """Delete summary, snapshot and INBOX, which name positions of the lost log."""
        await self._summaries.delete(experiment_id)
        await self._bus.inbox.delete(experiment_id)
