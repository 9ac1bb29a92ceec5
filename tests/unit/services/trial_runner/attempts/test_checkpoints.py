"""Checkpoints of an attempt that are transferred from and to the blob store."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nni_proto.runner.v1 import task_pb2
from nni_proto.trial.v1 import report_pb2
from svc_common.clock import SystemClock
from svc_common.errors import UnavailableError
from svc_common.experiment_events.causes import LossCause, LossReason
from svc_common.storage.memory import InMemoryBlobStore
from svc_common.storage.retries import RetryingBlobExchange
from svc_trial_runner.adapters.trial_blobs import StoredTrialBlobs, TarFolders
from svc_trial_runner.attempts.checkpoints import Checkpoints
from svc_trial_runner.domain.attempt import Phase, StopTrigger
from svc_trial_runner.domain.claims import AttemptKey
from tests.support.manual_timers import ManualTimers
from tests.unit.services.trial_runner.conftest import EXPERIMENT, WAIT_S, Bench

KEY = AttemptKey(EXPERIMENT, "one", 1)
PARAMETERS = {"load_checkpoint_dir": "/c/0/0", "save_checkpoint_dir": "/c/0/1"}
SAVE = """\
params=$NNI_OUTPUT_DIR/parameter.cfg
save=$(sed 's/.*"save_checkpoint_dir": "\\([^"]*\\)".*/\\1/' $params)
load=$(sed 's/.*"load_checkpoint_dir": "\\([^"]*\\)".*/\\1/' $params)
mkdir $save && cat $load/steps > $save/steps 2>/dev/null; echo more >> $save/steps
"""


def saving(bench: Bench, command: str = SAVE, **spec: Any) -> task_pb2.TrialTask:
    return bench.task("one", command, PARAMETERS, checkpoints_travel=True, **spec)


async def packed(bench: Bench, folder: Path, text: str) -> str:
    """Store a checkpoint; return its hash."""
    folder.mkdir()
    (folder / "steps").write_text(text)
    TarFolders().pack(folder, folder.parent / "packed.tar")
    key = await bench.blobs.put_file(folder.parent / "packed.tar")
    return key.removeprefix("sha256/")


async def unpacked(bench: Bench, sha256: str) -> str:
    await bench.blobs.fetch(f"sha256/{sha256}", bench.folder / "back.tar")
    TarFolders().extract(bench.folder / "back.tar", bench.folder / "back")
    return (bench.folder / "back" / "steps").read_text()


async def test_checkpoint_is_loaded_before_and_kept_after(bench: Bench) -> None:
    task = saving(bench)
    task.load_checkpoint.sha256 = await packed(bench, bench.folder / "earlier", "one\n")

    await bench.deliver(bench.agent(), task)

    exited = (await bench.until_kind("one", "exited")).exited
    assert exited.exit_code == 0, exited.detail
    assert exited.checkpoint.directory == "/c/0/1"
    assert await unpacked(bench, exited.checkpoint.archive.sha256) == "one\nmore\n"
    size = (await bench.blobs.info(f"sha256/{exited.checkpoint.archive.sha256}")).size_bytes
    assert exited.checkpoint.archive.size_bytes == size
    assert not (bench.folder / "experiment/trials/one/checkpoints").exists()


async def test_first_checkpoint_has_nothing_to_load(bench: Bench) -> None:
    await bench.deliver(bench.agent(), saving(bench))

    exited = (await bench.until_kind("one", "exited")).exited
    assert await unpacked(bench, exited.checkpoint.archive.sha256) == "more\n"


async def test_trial_that_saves_nothing_ends_without_a_checkpoint(bench: Bench) -> None:
    await bench.deliver(bench.agent(), saving(bench, "true"))

    exited = (await bench.until_kind("one", "exited")).exited
    assert exited.exit_code == 0
    assert not exited.HasField("checkpoint")


async def test_failed_trial_keeps_no_checkpoint(bench: Bench) -> None:
    await bench.deliver(bench.agent(), saving(bench, f"{SAVE}exit 3"))

    exited = (await bench.until_kind("one", "exited")).exited
    assert exited.exit_code == 3
    assert not exited.HasField("checkpoint")
    assert await bench.blobs.keys("sha256/") == []


async def test_folders_stay_as_they_are_without_transfers(bench: Bench) -> None:
    folder = bench.folder / "shared"
    parameters = {"save_checkpoint_dir": str(folder), "load_checkpoint_dir": str(folder)}

    await bench.deliver(bench.agent(), bench.task("one", f"mkdir {folder}", parameters))

    exited = (await bench.until_kind("one", "exited")).exited
    assert not exited.HasField("checkpoint")
    assert folder.is_dir()


async def test_missing_checkpoint_is_an_error(bench: Bench) -> None:
    task = saving(bench)
    task.load_checkpoint.sha256 = "0" * 64

    await bench.deliver(bench.agent(), task)

    exited = (await bench.until_kind("one", "exited")).exited
    assert exited.cause == report_pb2.EXIT_CAUSE_NOT_STARTED
    assert "the checkpoint cannot be loaded" in exited.detail


async def test_second_attempt_does_not_see_what_the_first_has_half_saved(bench: Bench) -> None:
    left = bench.folder / "experiment/trials/one/checkpoints"
    left.mkdir(parents=True)
    (left / "half").touch()

    await bench.deliver(bench.agent(), saving(bench, f"test ! -e {left}/half"))

    assert (await bench.until_kind("one", "exited")).exited.exit_code == 0


NOTICE_AFTER_S = 7.25
"""A time that only `ManualTimers` lets pass: real time would race with the transfers."""


@pytest.fixture
async def timers(monkeypatch: pytest.MonkeyPatch) -> ManualTimers:
    return ManualTimers(monkeypatch, NOTICE_AFTER_S)


class AwayStore(InMemoryBlobStore):
    """Store that refuses files until it is ``there``."""

    def __init__(self) -> None:
        super().__init__()
        self.there = asyncio.Event()
        self.refused = asyncio.Event()

    async def put_file(self, path: Path) -> str:
        if not self.there.is_set():
            self.refused.set()
            raise UnavailableError("the store is away")
        return await super().put_file(path)


def keep_checkpoints(bench: Bench, store: InMemoryBlobStore, archives: TarFolders) -> None:
    """Make trials store their checkpoints in ``store``."""
    patient = RetryingBlobExchange(store, SystemClock(), wait_for_space=True, retry_interval_s=0.01)
    trial_bytes = StoredTrialBlobs(patient, lambda _: patient)
    checkpoints = Checkpoints(trial_bytes, archives)
    bench.dependencies = replace(
        bench.dependencies, checkpoints=checkpoints, waiting_notice_after_s=NOTICE_AFTER_S
    )


def away(bench: Bench) -> AwayStore:
    """Make the checkpoints of a bench go to a store that refuses them."""
    store = AwayStore()
    keep_checkpoints(bench, store, TarFolders())
    return store


async def waits_for(store: AwayStore, timers: ManualTimers, bench: Bench) -> report_pb2.TrialReport:
    """Let the time of the notice pass once the store has refused; return the notice."""
    await asyncio.wait_for(store.refused.wait(), WAIT_S)
    timers.fire()
    return await bench.until_kind("one", "waits")


async def test_end_waits_for_the_store_with_a_notice(bench: Bench, timers: ManualTimers) -> None:
    store = away(bench)
    await bench.deliver(bench.agent(), saving(bench))

    waits = (await waits_for(store, timers, bench)).waits
    heard = bench.kinds("one")
    store.there.set()
    exited = (await bench.until_kind("one", "exited")).exited

    assert waits.reason == (
        "waiting for room for the checkpoint that it has saved: the store is away"
    )
    assert heard == ["started", "waits"]
    assert exited.HasField("checkpoint")


async def test_stop_while_it_is_saved_ends_it_without(bench: Bench, timers: ManualTimers) -> None:
    store = away(bench)
    agent = bench.agent()
    await bench.deliver(agent, saving(bench))
    (run,) = agent.attempts
    await waits_for(store, timers, bench)

    assert run.phase is Phase.SAVING
    run.stop(StopTrigger.STOPPED)

    exited = (await bench.until_kind("one", "exited")).exited
    assert exited.cause == report_pb2.EXIT_CAUSE_STOPPED
    assert not exited.HasField("checkpoint")


async def test_hold_that_is_lost_while_it_is_saved_is_a_loss(
    bench: Bench, timers: ManualTimers
) -> None:
    store = away(bench)
    agent = bench.agent()
    await bench.deliver(agent, saving(bench))
    (run,) = agent.attempts
    await waits_for(store, timers, bench)

    run.stop(StopTrigger.LOST, LossReason(LossCause.AGENT_FAILED, detail="the bus was away"))

    assert (await bench.until_kind("one", "lost")).lost.reason == "the bus was away"


async def test_time_limit_does_not_count_while_it_is_saved(
    bench: Bench, timers: ManualTimers
) -> None:
    store = away(bench)
    agent = bench.agent()
    await bench.deliver(agent, saving(bench))
    (run,) = agent.attempts
    await waits_for(store, timers, bench)

    run.stop(StopTrigger.TIME_LIMIT)
    store.there.set()

    exited = (await bench.until_kind("one", "exited")).exited
    assert exited.cause == report_pb2.EXIT_CAUSE_ENDED
    assert exited.HasField("checkpoint")


class BadSector(TarFolders):
    def pack(self, folder: Path, archive: Path, without: frozenset[str] = frozenset()) -> int:
        raise OSError("bad sector")


async def test_checkpoint_that_cannot_be_read_is_a_loss(bench: Bench) -> None:
    keep_checkpoints(bench, bench.blobs, BadSector())

    await bench.deliver(bench.agent(), saving(bench))

    assert "bad sector" in (await bench.until_kind("one", "lost")).lost.reason
