"""Files of trials in the blob store."""

import asyncio
from pathlib import Path

from svc_common.clock import ManualClock
from svc_common.errors import UnavailableError
from svc_common.storage.memory import InMemoryBlobStore
from svc_common.storage.retries import RetryingBlobExchange
from svc_trial_runner.adapters.trial_blobs import (
    CHECKPOINT_LIMITS,
    StoredTrialBlobs,
    TarFolders,
)
from svc_trial_runner.domain.claims import AttemptKey
from svc_trial_runner.ports import FinishedTrial

ATTEMPT = AttemptKey("e1", "t1", 1)


class FailingStore(InMemoryBlobStore):
    failing = True

    async def put_file(self, path: Path) -> str:
        if self.failing:
            raise UnavailableError("the store is away")
        return await super().put_file(path)


def blobs(store: InMemoryBlobStore, clock: ManualClock) -> StoredTrialBlobs:
    common = RetryingBlobExchange(store, clock)
    return StoredTrialBlobs(common, lambda _: RetryingBlobExchange(store, clock))


async def test_checkpoint_is_stored_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "saved").write_bytes(b"weights")
    stored = blobs(InMemoryBlobStore(), ManualClock())

    key = await stored.keep_checkpoint(ATTEMPT, tmp_path / "saved")
    await stored.fetch(ATTEMPT, key, tmp_path / "loaded")

    assert key.size_bytes == 7
    assert (tmp_path / "loaded").read_bytes() == b"weights"


async def test_checkpoints_are_moved_as_those_of_their_attempt(tmp_path: Path) -> None:
    (tmp_path / "saved").write_bytes(b"weights")
    store, clock, seen = InMemoryBlobStore(), ManualClock(), list[AttemptKey]()

    def of_attempt(attempt: AttemptKey) -> RetryingBlobExchange:
        seen.append(attempt)
        return RetryingBlobExchange(store, clock)

    stored = StoredTrialBlobs(RetryingBlobExchange(InMemoryBlobStore(), clock), of_attempt)
    key = await stored.keep_checkpoint(ATTEMPT, tmp_path / "saved")
    await stored.fetch(AttemptKey("e1", "t1", 2), key, tmp_path / "loaded")

    assert seen == [ATTEMPT, AttemptKey("e1", "t1", 2)]


async def test_output_has_the_name_of_its_attempt(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_bytes(b"line")
    store = InMemoryBlobStore()

    trial = FinishedTrial("e1", "t1", 3, str(tmp_path))
    await blobs(store, ManualClock()).keep_output(trial, "stdout", tmp_path / "stdout")

    assert await store.get("output/e1/t1/3/stdout") == b"line"


async def test_trouble_is_shown_while_a_checkpoint_waits_for_the_store(tmp_path: Path) -> None:
    (tmp_path / "saved").write_bytes(b"weights")
    clock, store = ManualClock(), FailingStore()
    stored = blobs(store, clock)
    saving = asyncio.ensure_future(stored.keep_checkpoint(ATTEMPT, tmp_path / "saved"))
    while not clock.sleepers:  # noqa: ASYNC110 - the retry begins to sleep
        await asyncio.sleep(0)

    waiting_for = stored.trouble
    store.failing = False
    clock.advance(60.0)
    await saving

    assert waiting_for == "the store is away"
    assert stored.trouble == ""


def test_folder_is_packed_without_the_named_entries(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "model").write_text("m")
    (folder / "stdout").write_text("o")

    count = TarFolders().pack(folder, tmp_path / "files.tar", frozenset({"stdout"}))
    TarFolders().extract(tmp_path / "files.tar", tmp_path / "back")

    assert count == 2  # the folder and the file in it
    assert [path.name for path in (tmp_path / "back").rglob("*") if path.is_file()] == ["model"]


def test_checkpoint_of_megabytes_comes_back(tmp_path: Path) -> None:
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "weights").write_bytes(bytes(10_000_000))

    TarFolders().pack(tmp_path / "saved", tmp_path / "files.tar")
    TarFolders().extract(tmp_path / "files.tar", tmp_path / "loaded")

    assert (tmp_path / "loaded" / "weights").stat().st_size == 10_000_000


def test_checkpoint_is_as_large_as_s3_takes_in_one_piece() -> None:
    assert CHECKPOINT_LIMITS.size_bytes == 5 << 30
