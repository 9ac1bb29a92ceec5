"""Import of copied folders, with their positions moved to the new stream."""

from dataclasses import replace
from pathlib import Path

import pytest

from nni_proto.experiment.v1 import event_pb2
from svc_common.errors import InvalidArgumentError, NotFoundError
from svc_common.messaging.memory import InMemoryBus
from svc_manager.adapters.folder_journals import FolderJournals
from svc_manager.converters.events import Stamp, batch_to_bytes
from svc_manager.domain.experiment import ExperimentState
from svc_manager.event_log.folder_import import import_folder, reconcile
from svc_manager.event_log.reader import load
from tests.unit.services.manager.building import EXPERIMENT_ID, CountingIds, Lab, generated


def folder_of(lab: Lab, root: Path, first_sequence: int = 1_000) -> Path:
    """Write the log of a lab into a folder, with the positions of another stream."""
    (root / "db").mkdir(parents=True)
    (root / "log").mkdir()
    journal = FolderJournals().open(str(root), debug=False)
    for number, (time_ms, event) in enumerate(lab.log):
        payload = batch_to_bytes([event], Stamp(4, number, time_ms), inbox_sequence=99)
        journal.record(first_sequence + 10 * number, payload)
    journal.close()
    return root


async def test_a_running_experiment_is_imported_as_stopped(tmp_path: Path) -> None:
    lab = Lab()
    lab.finish(lab.running())
    folder = folder_of(lab, tmp_path / EXPERIMENT_ID)
    async with InMemoryBus() as bus:
        await import_folder(bus.events, FolderJournals(), CountingIds(), EXPERIMENT_ID, folder)
        folded = await load(bus.events, EXPERIMENT_ID)

    assert folded.experiment.state is ExperimentState.STOPPED
    assert not folded.experiment.live
    assert list(folded.experiment.trials) == list(lab.experiment.trials)
    assert folded.epoch == 5
    assert folded.inbox_sequence == 0


async def test_positions_inside_events_name_the_new_stream(tmp_path: Path) -> None:
    lab = Lab()
    (request_id,) = lab.experiment.algorithm.asked
    requested = next(
        number
        for number, (_, event) in enumerate(lab.log)
        if getattr(event, "request_id", None) == request_id
    )
    position = (1_000 + 10 * requested, 0)
    lab.notification(replace(generated(request_id, [0, 1]), based_on=position))
    folder = folder_of(lab, tmp_path / EXPERIMENT_ID)
    async with InMemoryBus() as bus:
        await import_folder(bus.events, FolderJournals(), CountingIds(), EXPERIMENT_ID, folder)
        batches = [message async for message in bus.events.read(EXPERIMENT_ID, 0)]

    moved = [
        event.parameters_generated.based_on.sequence
        for message in batches
        for event in event_pb2.EventBatch.FromString(message.payload).events
        if event.HasField("parameters_generated")
    ]
    assert moved == [batches[requested].sequence]


async def test_the_folder_of_another_experiment_is_refused(tmp_path: Path) -> None:
    folder = folder_of(Lab(), tmp_path / "other")
    async with InMemoryBus() as bus:
        with pytest.raises(InvalidArgumentError, match=f"its log is of experiment {EXPERIMENT_ID}"):
            await import_folder(bus.events, FolderJournals(), CountingIds(), "other123", folder)


async def test_a_folder_without_a_log_is_not_found(tmp_path: Path) -> None:
    async with InMemoryBus() as bus:
        with pytest.raises(NotFoundError):
            await import_folder(
                bus.events, FolderJournals(), CountingIds(), EXPERIMENT_ID, tmp_path
            )


async def test_file_of_an_imported_folder_has_the_new_log(tmp_path: Path) -> None:
    lab = Lab()
    lab.finish(lab.running())
    folder = folder_of(lab, tmp_path / EXPERIMENT_ID)
    async with InMemoryBus() as bus:
        await import_folder(bus.events, FolderJournals(), CountingIds(), EXPERIMENT_ID, folder)
        log = [(found.sequence, found.payload) async for found in bus.events.read(EXPERIMENT_ID)]

    assert await FolderJournals().read(folder) == log


async def test_damaged_folder_is_imported_up_to_the_damage_with_a_warning(tmp_path: Path) -> None:
    lab = Lab()
    lab.finish(lab.running())
    folder = folder_of(lab, tmp_path / EXPERIMENT_ID)
    file = folder / "db" / "events.log"
    records = await FolderJournals().read(folder)
    data = bytearray(file.read_bytes())
    data[-len(records[-1][1]) - 16 - 1] ^= 1  # the last byte of the record before the last one
    file.write_bytes(data)

    async with InMemoryBus() as bus:
        (warning,) = await import_folder(
            bus.events, FolderJournals(), CountingIds(), EXPERIMENT_ID, folder
        )

        folded = await load(bus.events, EXPERIMENT_ID)

    assert f"{len(records) - 2} records before are whole, 1 of those in the last" in warning
    assert list(folded.experiment.trials) == list(lab.experiment.trials)


async def test_folder_whose_log_was_cut_in_a_record_is_imported_with_a_warning(
    tmp_path: Path,
) -> None:
    lab = Lab()
    lab.finish(lab.running())
    folder = folder_of(lab, tmp_path / EXPERIMENT_ID)
    file = folder / "db" / "events.log"
    count = len(await FolderJournals().read(folder))
    file.write_bytes(file.read_bytes()[:-1])

    async with InMemoryBus() as bus:
        (warning,) = await import_folder(
            bus.events, FolderJournals(), CountingIds(), EXPERIMENT_ID, folder
        )

    assert "is not whole: db/events.log ends in the middle of a record" in warning
    assert f"{count - 1} records before are whole" in warning


def schedules(payload: bytes) -> bool:
    """Return whether a batch schedules a trial."""
    events = event_pb2.EventBatch.FromString(payload).events
    return any(event.HasField("trial_scheduled") for event in events)


async def test_log_that_cannot_be_folded_leaves_no_half_import(tmp_path: Path) -> None:
    lab = Lab()
    lab.finish(lab.running())
    folder = folder_of(lab, tmp_path / EXPERIMENT_ID)
    records = await FolderJournals().read(folder)
    missing = [record for record in records if not schedules(record[1])]
    await FolderJournals().rewrite(folder, missing)

    async with InMemoryBus() as bus:
        with pytest.raises(InvalidArgumentError, match="must be a log that can be read"):
            await import_folder(bus.events, FolderJournals(), CountingIds(), EXPERIMENT_ID, folder)
        assert await bus.events.experiments() == []


async def test_own_log_that_lacks_records_comes_back_up_to_the_first_that_needs_them(
    tmp_path: Path,
) -> None:
    lab = Lab()
    lab.finish(lab.running())
    folder = folder_of(lab, tmp_path / EXPERIMENT_ID)
    records = await FolderJournals().read(folder)
    await FolderJournals().rewrite(folder, [found for found in records if not schedules(found[1])])

    async with InMemoryBus() as bus:
        (warning,) = await import_folder(
            bus.events, FolderJournals(), CountingIds(), EXPERIMENT_ID, folder, is_own=True
        )
        folded = await load(bus.events, EXPERIMENT_ID)

    assert "records need others that are lost" in warning
    assert folded.experiment.state is ExperimentState.STOPPED


@pytest.mark.parametrize("kept", [1, 4, -1])
async def test_log_that_has_lost_its_end_comes_back_from_the_folder(
    tmp_path: Path, kept: int
) -> None:
    lab = Lab()
    lab.finish(lab.running())
    folder = folder_of(lab, tmp_path / EXPERIMENT_ID)
    records = await FolderJournals().read(folder)
    async with InMemoryBus() as bus:
        last = 0
        for number, (_, payload) in enumerate(records[:kept]):
            last = await bus.events.append(
                EXPERIMENT_ID, payload, expected_sequence=last, epoch=4, append_id=f"{number}"
            )

        restored = await reconcile(
            bus.events, FolderJournals(), CountingIds(), EXPERIMENT_ID, folder
        )
        again = await reconcile(bus.events, FolderJournals(), CountingIds(), EXPERIMENT_ID, folder)
        folded = await load(bus.events, EXPERIMENT_ID)

    assert (restored, again) == (True, False)
    assert folded.experiment.state is ExperimentState.STOPPED
    assert list(folded.experiment.trials) == list(lab.experiment.trials)


async def test_log_is_not_touched_if_the_folder_cannot_be_read(tmp_path: Path) -> None:
    folder = folder_of(Lab(), tmp_path / EXPERIMENT_ID)
    records = await FolderJournals().read(folder)
    (folder / "db" / "events.log").write_bytes(b"something else altogether")
    async with InMemoryBus() as bus:
        await bus.events.append(
            EXPERIMENT_ID, records[0][1], expected_sequence=0, epoch=4, append_id="0"
        )

        with pytest.raises(InvalidArgumentError):
            await reconcile(bus.events, FolderJournals(), CountingIds(), EXPERIMENT_ID, folder)

        assert [found.payload async for found in bus.events.read(EXPERIMENT_ID)] == [records[0][1]]


async def test_records_of_the_file_that_cannot_be_folded_replace_no_log(tmp_path: Path) -> None:
    folder = folder_of(Lab(), tmp_path / EXPERIMENT_ID)
    records = await FolderJournals().read(folder)
    await FolderJournals().rewrite(folder, [*records[:1], (10**6, b"\xff"), (10**6 + 1, b"\xff")])
    async with InMemoryBus() as bus:
        await bus.events.append(
            EXPERIMENT_ID, records[0][1], expected_sequence=0, epoch=4, append_id="0"
        )

        replaced = await reconcile(
            bus.events, FolderJournals(), CountingIds(), EXPERIMENT_ID, folder
        )
        log = [(found.sequence, found.payload) async for found in bus.events.read(EXPERIMENT_ID)]

    assert not replaced
    assert [payload for _, payload in log] == [records[0][1]]
    assert await FolderJournals().read(folder) == log


async def test_what_another_manager_appends_meanwhile_is_no_lost_record(tmp_path: Path) -> None:
    folder = folder_of(Lab(), tmp_path / EXPERIMENT_ID, first_sequence=1)
    records = await FolderJournals().read(folder)

    class Growing(FolderJournals):
        """Event file that another manager appends to, as to the log, before it is read."""

        async def read(self, directory: Path) -> list[tuple[int, bytes]]:
            await append(len(records) - 1)
            log = [(one.sequence, one.payload) async for one in bus.events.read(EXPERIMENT_ID)]
            await self.rewrite(directory, log)
            return await super().read(directory)

    async def append(number: int) -> None:
        last = await bus.events.last(EXPERIMENT_ID)
        await bus.events.append(
            EXPERIMENT_ID,
            records[number][1],
            expected_sequence=last.sequence if last else 0,
            epoch=4,
            append_id=f"{number}",
        )

    async with InMemoryBus() as bus:
        for number in range(len(records) - 1):
            await append(number)

        assert not await reconcile(bus.events, Growing(), CountingIds(), EXPERIMENT_ID, folder)
        log = [found.payload async for found in bus.events.read(EXPERIMENT_ID)]

    assert log == [payload for _, payload in records]


@pytest.mark.parametrize("hole", [4, -2])
async def test_log_and_file_that_lack_different_records_are_merged(
    tmp_path: Path, hole: int
) -> None:
    lab = Lab()
    lab.finish(lab.running())
    folder = folder_of(lab, tmp_path / EXPERIMENT_ID, first_sequence=1)
    async with InMemoryBus() as bus:
        last = 0
        for number, (_, payload) in enumerate(await FolderJournals().read(folder)):
            last = await bus.events.append(
                EXPERIMENT_ID, payload, expected_sequence=last, epoch=4, append_id=f"{number}"
            )
        whole = [(found.sequence, found.payload) async for found in bus.events.read(EXPERIMENT_ID)]
    kept = len(whole) - 3
    file = [record for record in whole if record != whole[hole]]
    await FolderJournals().rewrite(folder, file)
    async with InMemoryBus() as bus:
        last = 0
        for number, (_, payload) in enumerate(whole[:kept]):
            last = await bus.events.append(
                EXPERIMENT_ID, payload, expected_sequence=last, epoch=4, append_id=f"{number}"
            )

        await reconcile(bus.events, FolderJournals(), CountingIds(), EXPERIMENT_ID, folder)
        log = [found.payload async for found in bus.events.read(EXPERIMENT_ID)]

    lost = {whole[hole][1]} - {payload for _, payload in whole[:kept]}
    assert len(log) == len(whole) - len(lost) + 1  # the last one stops the experiment
