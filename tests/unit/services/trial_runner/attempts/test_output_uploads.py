from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from svc_common.clock import ManualClock
from svc_common.errors import NotFoundError, ResourceExhaustedError
from svc_common.storage.memory import InMemoryBlobStore
from svc_common.storage.retries import RetryingBlobExchange
from svc_trial_runner.adapters.trial_blobs import StoredTrialBlobs, TarFolders
from svc_trial_runner.adapters.upload_spool import DirectoryUploadSpool
from svc_trial_runner.attempts.output_uploads import (
    ROOM_AGAIN_AFTER_S,
    OutputUploads,
)
from svc_trial_runner.ports import FinishedTrial
from tests.unit.services.trial_runner.conftest import Bench


class RecordingStore(InMemoryBlobStore):
    """Store that records outputs, and refuses those of an experiment over its quota."""

    def __init__(self) -> None:
        super().__init__()
        self.full = ""
        self.refused = asyncio.Event()
        self.complete: dict[str, asyncio.Event] = {}
        self.during: Callable[[str], Awaitable[None]] | None = None
        """Called with the folder while its first file is stored; once."""

    async def put_named_file(self, key: str, path: Path) -> None:
        _, experiment_id, trial_id, _, name = key.split("/")
        if experiment_id == self.full:
            self.refused.set()
            raise ResourceExhaustedError("at most 5 MB")
        if self.during is not None:
            during, self.during = self.during, None
            await during(str(path.parent))
        await super().put_named_file(key, path)
        if name == "files.tar":
            self.complete.setdefault(trial_id, asyncio.Event()).set()

    async def has(self, trial_id: str) -> None:
        async with asyncio.timeout(30):
            await self.complete.setdefault(trial_id, asyncio.Event()).wait()


@asynccontextmanager
async def uploading(
    folder: Path, store: RecordingStore, clock: ManualClock
) -> AsyncIterator[OutputUploads]:
    patient = RetryingBlobExchange(store, clock)
    bytes_ = StoredTrialBlobs(patient, lambda _: patient)
    uploads = OutputUploads(bytes_, TarFolders(), DirectoryUploadSpool(folder / "spool"), clock)
    running = asyncio.create_task(uploads.run())
    try:
        yield uploads
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def finished(folder: Path, trial_id: str = "t1", experiment_id: str = "e1") -> FinishedTrial:
    """Create a trial's folder."""
    place = folder / "trials" / trial_id
    (place / "code").mkdir(parents=True)
    (place / "code" / "trial.py").touch()
    (place / "checkpoints").mkdir()
    (place / "deep").mkdir()
    (place / "deep" / "model").write_text("model")
    (place / "stdout").write_text("out")
    (place / "stderr").write_text("err")
    os.link(place / "stdout", place / "trial.log")
    return FinishedTrial(experiment_id, trial_id, 1, str(place))


async def archived(store: RecordingStore, folder: Path) -> dict[str, bytes]:
    """Return the files in the archive of the first trial, by path."""
    await store.fetch("output/e1/t1/1/files.tar", folder / "files.tar")
    back = folder / "back"
    TarFolders().extract(folder / "files.tar", back)
    files = [path for path in back.rglob("*") if path.is_file()]
    return {str(path.relative_to(back)): path.read_bytes() for path in files}


async def test_streams_and_files_are_stored_and_the_folder_is_removed(tmp_path: Path) -> None:
    store = RecordingStore()
    trial = finished(tmp_path)

    async with uploading(tmp_path, store, ManualClock()) as uploads:
        uploads.add(trial)
        await store.has("t1")

    assert await store.keys("output/e1/") == ["output/e1/t1/1/files.tar"]
    assert await archived(store, tmp_path) == {
        "deep/model": b"model",
        "stdout": b"out",
        "stderr": b"err",
    }


async def test_stream_of_64_kib_is_stored_in_the_archive(tmp_path: Path) -> None:
    store = RecordingStore()
    trial = finished(tmp_path)
    Path(trial.directory, "stdout").write_bytes(bytes(64 * 1024))

    async with uploading(tmp_path, store, ManualClock()) as uploads:
        uploads.add(trial)
        await store.has("t1")

    assert not await store.exists("output/e1/t1/1/stdout")
    assert (await archived(store, tmp_path))["stdout"] == bytes(64 * 1024)


async def test_large_stream_is_stored_beside_the_archive(tmp_path: Path) -> None:
    store = RecordingStore()
    trial = finished(tmp_path)
    large = bytes(64 * 1024 + 1)
    Path(trial.directory, "stdout").write_bytes(large)

    async with uploading(tmp_path, store, ManualClock()) as uploads:
        uploads.add(trial)
        await store.has("t1")

    assert await store.get("output/e1/t1/1/stdout") == large
    assert (await archived(store, tmp_path)).keys() == {"deep/model", "stderr"}


async def test_unfinished_uploads_are_done_by_the_next_agent(tmp_path: Path) -> None:
    store = RecordingStore()
    spool = DirectoryUploadSpool(tmp_path / "spool")
    for trial_id in ("t1", "t2"):
        spool.add(finished(tmp_path, trial_id))

    async with uploading(tmp_path, store, ManualClock()):
        await store.has("t1")
        await store.has("t2")

    assert len(await store.keys("output/e1/")) == 2


async def test_end_waits_for_the_last_output(tmp_path: Path) -> None:
    store = RecordingStore()

    async with uploading(tmp_path, store, ManualClock()) as uploads:
        for trial_id in ("t1", "t2"):
            uploads.add(finished(tmp_path, trial_id))
        await uploads.wait_stored()

    assert len(await store.keys("output/e1/")) == 2


async def test_end_waits_no_longer_than_its_patience_for_a_full_store(tmp_path: Path) -> None:
    store = RecordingStore()
    store.full = "e1"

    async with uploading(tmp_path, store, ManualClock()) as uploads:
        uploads.add(finished(tmp_path))
        await uploads.wait_stored(patience_s=0.0)

        assert uploads.waiting == 1


async def test_end_waits_no_longer_than_its_limit(tmp_path: Path) -> None:
    store = RecordingStore()
    store.full = "e1"

    async with uploading(tmp_path, store, ManualClock()) as uploads:
        uploads.add(finished(tmp_path))
        await uploads.wait_stored(limit_s=-1.0)

        assert uploads.waiting == 1


async def test_missing_folder_is_dropped(tmp_path: Path) -> None:
    store = RecordingStore()

    async with uploading(tmp_path, store, ManualClock()) as uploads:
        uploads.add(FinishedTrial("e1", "gone", 1, str(tmp_path / "nowhere")))
        uploads.add(finished(tmp_path))
        await store.has("t1")

    assert await store.keys("output/e1/gone/") == []


class ForgetfulStore(RecordingStore):
    """Store of an installation that has deleted the experiment `e9`."""

    async def put_named_file(self, key: str, path: Path) -> None:
        if key.startswith("output/e9/"):
            raise NotFoundError("experiment", "e9")
        await super().put_named_file(key, path)


async def test_output_of_a_deleted_experiment_is_removed(tmp_path: Path) -> None:
    store = ForgetfulStore()
    deleted, kept = finished(tmp_path, "t9", "e9"), finished(tmp_path)

    async with uploading(tmp_path, store, ManualClock()) as uploads:
        uploads.add(deleted)
        uploads.add(kept)
        await store.has("t1")

    assert not Path(deleted.directory).exists()


async def test_experiment_over_its_quota_does_not_block_the_others(tmp_path: Path) -> None:
    store, clock = RecordingStore(), ManualClock()
    store.full = "e1"

    async with uploading(tmp_path, store, clock) as uploads:
        uploads.add(finished(tmp_path, "t1", "e1"))
        uploads.add(finished(tmp_path, "t2", "e2"))
        async with asyncio.timeout(30):
            await store.refused.wait()
        store.full = ""
        while uploads.waiting:
            await asyncio.sleep(0)
            clock.advance(ROOM_AGAIN_AFTER_S)

    assert await store.exists("output/e1/t1/1/files.tar")
    assert await store.exists("output/e2/t2/1/files.tar")


async def test_full_store_is_tried_again_after_five_seconds(tmp_path: Path) -> None:
    store, clock = RecordingStore(), ManualClock()
    store.full = "e1"

    async with uploading(tmp_path, store, clock) as uploads:
        trial = finished(tmp_path)
        uploads.add(trial)
        async with asyncio.timeout(30):
            await store.refused.wait()
        for _ in range(100):  # turns of the loop, of which a few are needed
            await asyncio.sleep(0)
        spooled = DirectoryUploadSpool(tmp_path / "spool").inherited()
        store.full = ""
        store.refused.clear()
        clock.advance(4.9)
        for _ in range(20):
            await asyncio.sleep(0)
        asleep = clock.sleepers
        clock.advance(0.1)
        await asyncio.wait_for(uploads.wait_stored(), 30)

    assert (asleep, spooled) == (1, [trial])
    assert DirectoryUploadSpool(tmp_path / "spool").inherited() == []


async def test_of_two_folders_the_second_is_next_while_the_first_has_no_room(
    tmp_path: Path,
) -> None:
    store, clock = RecordingStore(), ManualClock()
    store.full = "e1"

    async with uploading(tmp_path, store, clock) as uploads:
        uploads.add(finished(tmp_path, "t1", "e1"))
        uploads.add(finished(tmp_path, "t2", "e2"))
        async with asyncio.timeout(30):
            while uploads.waiting == 2:
                await asyncio.sleep(0)
                clock.advance(ROOM_AGAIN_AFTER_S)

        assert await store.exists("output/e2/t2/1/files.tar")
        assert uploads.waiting == 1


async def test_attempt_has_its_output_stored_when_it_is_over(bench: Bench) -> None:
    running = asyncio.create_task(bench.dependencies.outputs.run())
    task = bench.task("one", "echo out; echo kept > $NNI_OUTPUT_DIR/model", outputs_travel=True)

    await bench.deliver(bench.agent(), task)
    await bench.until_kind("one", "exited")
    await bench.tasks.drain()
    folder = bench.folder / "experiment/trials/one"
    async with asyncio.timeout(30):
        while folder.exists():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert await bench.blobs.keys("output/exp/") == ["output/exp/one/1/files.tar"]


@pytest.mark.parametrize(("travels", "waiting"), [(True, 0), (False, 1)])
async def test_attempt_whose_outputs_travel_takes_the_folder_from_a_waiting_upload(
    bench: Bench, *, travels: bool, waiting: int
) -> None:
    outputs, agent = bench.dependencies.outputs, bench.agent()
    folder = str(bench.folder / "experiment/trials/one")
    outputs.add(FinishedTrial("exp", "one", 0, folder))

    await bench.deliver(agent, bench.task("one", "sleep 30", outputs_travel=travels))
    await bench.until_kind("one", "started")
    found = outputs.waiting
    agent.lose_all()
    await asyncio.wait_for(agent.wait_drained(), 30)

    assert found == waiting
    assert outputs.waiting == 1


async def test_links_of_a_trial_disclose_and_overwrite_nothing(tmp_path: Path) -> None:
    store = RecordingStore()
    (tmp_path / "secret").write_text("the agent's")
    trial = finished(tmp_path)
    folder = Path(trial.directory)
    (folder / "stdout").unlink(missing_ok=True)
    (folder / "stdout").symlink_to(tmp_path / "secret")
    (folder / ".files.tar").symlink_to(tmp_path / "secret")

    async with uploading(tmp_path, store, ManualClock()) as uploads:
        uploads.add(trial)
        await store.has("t1")

    assert not await store.exists("output/e1/t1/1/stdout")
    assert "stdout" not in await archived(store, tmp_path)
    assert (tmp_path / "secret").read_text() == "the agent's"


async def test_folder_in_which_another_attempt_has_begun_is_left_to_its_end(
    tmp_path: Path,
) -> None:
    store = RecordingStore()
    spool = DirectoryUploadSpool(tmp_path / "spool")
    first = finished(tmp_path)
    spool.add(first)
    patient = RetryingBlobExchange(store, ManualClock())
    blobs = StoredTrialBlobs(patient, lambda _: patient)
    uploads = OutputUploads(blobs, TarFolders(), spool, ManualClock())

    await uploads.begin(first.directory)
    waiting, spooled = uploads.waiting, spool.inherited()
    uploads.end(first.directory)
    uploads.add(replace(first, attempt=2))
    running = asyncio.create_task(uploads.run())
    await store.has("t1")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert (waiting, spooled) == (0, [])
    assert await store.keys("output/e1/t1/1/") == []
    assert await store.keys("output/e1/t1/2/") == ["output/e1/t1/2/files.tar"]


async def test_folder_is_not_removed_if_another_attempt_begins_during_the_upload(
    tmp_path: Path,
) -> None:
    store = RecordingStore()

    async with uploading(tmp_path, store, ManualClock()) as uploads:
        store.during = uploads.begin
        uploads.add(finished(tmp_path))
        uploads.add(finished(tmp_path, "t2"))
        await store.has("t2")

    assert (tmp_path / "trials/t1/stdout").exists()
    assert await store.keys("output/e1/t2/") == ["output/e1/t2/1/files.tar"]


async def test_output_of_an_attempt_that_ends_during_the_upload_of_an_earlier_one_is_stored(
    tmp_path: Path,
) -> None:
    store = RecordingStore()
    first = finished(tmp_path)

    async with uploading(tmp_path, store, ManualClock()) as uploads:

        async def retry(directory: str) -> None:
            await uploads.begin(directory)
            uploads.end(directory)
            uploads.add(replace(first, attempt=2))

        store.during = retry
        uploads.add(first)
        await asyncio.wait_for(uploads.wait_stored(), 30)

    assert await store.keys("output/e1/t1/2/") == ["output/e1/t1/2/files.tar"]
    assert not Path(first.directory).exists()
