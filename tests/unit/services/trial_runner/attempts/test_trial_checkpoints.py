"""Checkpoints of attempts: real trials on the socket, copies on disk, uploads to a store."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from nni_proto.runner.v1 import task_pb2
from nni_proto.trial.v1 import report_pb2
from svc_common.errors import UnavailableError
from svc_trial_runner.adapters.checkpoint_copies import DiskCheckpointCopies
from svc_trial_runner.adapters.trial_blobs import TarFolders
from svc_trial_runner.agent.agent import Agent
from svc_trial_runner.attempts.trial_checkpoints import AttemptCheckpoints, TrialCheckpoints
from svc_trial_runner.domain.claims import AttemptKey
from svc_trial_runner.domain.reports import CheckpointSaved
from svc_trial_runner.domain.tasks import BlobKey, TrialCheckpoint, TrialSpec, TrialWork
from svc_trial_runner.ports import FinishedTrial, LaunchError
from tests.unit.services.trial_runner.conftest import EXPERIMENT, WAIT_S, Bench

STEPS = """\
import json, os, pathlib, socket, sys, time
peer = socket.socket(socket.AF_UNIX)
peer.connect(os.environ["NNI_TRIAL_SOCKET"])
lines = peer.makefile("rw")
def ask(**request):
    lines.write(json.dumps(request) + "\\n")
    lines.flush()
    return json.loads(lines.readline())
ask(op="hello", token=os.environ["NNI_TRIAL_TOKEN"], pid=os.getpid())
folder = pathlib.Path(os.environ["NNI_OUTPUT_DIR"], "checkpoint")
folder.mkdir(exist_ok=True)
file = folder / "step"
done = int(file.read_text()) if file.exists() else 0
print("begins after", done, flush=True)
for step in range(done + 1, int(sys.argv[1]) + 1):
    file.write_text(str(step))
    print(ask(op="checkpoint", step=step), flush=True)
if len(sys.argv) > 2:
    file.write_text("half")
    time.sleep(60)
"""
"""Trial of some steps, each with a checkpoint; with a second argument it then waits for its end."""


def steps(
    bench: Bench, count: int, attempt: int = 1, *, hang: bool = False, **spec: Any
) -> task_pb2.TrialTask:
    script = bench.folder / "steps.py"
    script.write_text(STEPS)
    command = f"{sys.executable} {script} {count}{' hang' if hang else ''}"
    return bench.task("one", command, attempt=attempt, **spec)


def saved(bench: Bench, attempt: int = 1) -> list[report_pb2.TrialCheckpoint]:
    return [
        report.checkpoint_saved.checkpoint
        for report in bench.heard
        if report.attempt == attempt and report.WhichOneof("kind") == "checkpoint_saved"
    ]


def folder(bench: Bench) -> Path:
    return bench.folder / "experiment/trials/one"


async def lost_after(bench: Bench, agent: Agent, task: task_pb2.TrialTask, step: int) -> None:
    """Run a trial until it has saved a step, then lose it as a stopped agent does."""
    await bench.deliver(agent, task)
    await bench.until(lambda: [one for one in saved(bench, task.attempt) if one.step == step])
    agent.lose_all()
    await bench.until_kind("one", "lost")


async def test_each_checkpoint_is_reported_in_the_sequence_of_the_attempt(bench: Bench) -> None:
    await bench.deliver(bench.agent(), steps(bench, 3))

    await bench.until_kind("one", "exited")
    assert bench.kinds("one") == ["started", *["checkpoint_saved"] * 3, "exited"]
    assert [(one.step, one.attempt, one.number) for one in saved(bench)] == [
        (1, 1, 1),
        (2, 1, 2),
        (3, 1, 3),
    ]
    assert not any(one.HasField("archive") for one in saved(bench))
    assert await bench.blobs.keys("sha256/") == []


async def test_next_attempt_goes_on_in_the_same_folder(bench: Bench) -> None:
    await lost_after(bench, bench.agent(), steps(bench, 3, hang=True), 3)

    await bench.deliver(bench.agent(), steps(bench, 5, attempt=2))

    await bench.until_kind("one", "exited")
    assert [one.step for one in saved(bench, 2)] == [4, 5]
    assert (folder(bench) / "stdout").read_text().startswith("begins after 3\n")


async def test_next_attempt_goes_on_elsewhere_from_the_store(bench: Bench) -> None:
    await lost_after(bench, bench.agent(), steps(bench, 3, hang=True, outputs_travel=True), 3)
    folder(bench).rename(bench.folder / "another machine")
    task = steps(bench, 5, attempt=2, outputs_travel=True)
    task.resume_from.CopyFrom(saved(bench)[-1])

    await bench.deliver(bench.agent(), task)

    await bench.until_kind("one", "exited")
    assert (folder(bench) / "stdout").read_text().startswith("begins after 3\n")


async def test_copy_of_this_machine_counts_if_it_is_newer_than_the_stored_one(
    bench: Bench,
) -> None:
    await lost_after(bench, bench.agent(), steps(bench, 2, hang=True), 2)
    task = steps(bench, 3, attempt=2, outputs_travel=True)
    task.resume_from.step, task.resume_from.attempt, task.resume_from.number = 1, 1, 1

    await bench.deliver(bench.agent(), task)

    await bench.until_kind("one", "exited")
    assert (folder(bench) / "stdout").read_text().startswith("begins after 2\n")


async def test_checkpoint_that_the_store_has_lost_lets_the_trial_begin_anew(bench: Bench) -> None:
    task = steps(bench, 1, attempt=2, outputs_travel=True)
    task.resume_from.step, task.resume_from.attempt, task.resume_from.number = 7, 1, 7
    task.resume_from.archive.sha256 = "0" * 64

    await bench.deliver(bench.agent(), task)

    exited = (await bench.until_kind("one", "exited")).exited
    assert exited.exit_code == 0
    assert (folder(bench) / "stdout").read_text().startswith("begins after 0\n")


async def test_copies_of_a_trial_that_has_succeeded_are_removed(bench: Bench) -> None:
    await bench.deliver(bench.agent(), steps(bench, 2))

    await bench.until_kind("one", "exited")
    assert not (folder(bench) / ".checkpoint").exists()
    assert (folder(bench) / "checkpoint/step").read_text() == "2"


async def test_checkpoint_that_cannot_be_copied_is_a_warning_only(bench: Bench) -> None:
    folder(bench).mkdir(parents=True)
    (folder(bench) / ".checkpoint").write_text("in the way")

    await bench.deliver(bench.agent(), steps(bench, 1))

    exited = (await bench.until_kind("one", "exited")).exited
    assert exited.exit_code == 0
    assert "the checkpoint is not saved" in (folder(bench) / "stdout").read_text()
    assert saved(bench) == []


class GatedBlobs:
    """`TrialBlobs` whose uploads wait for a gate."""

    trouble = ""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.begun = 0
        self.has_begun = asyncio.Event()
        self.stored: list[bytes] = []

    async def fetch(self, attempt: AttemptKey, blob: BlobKey, path: Path) -> None:
        raise UnavailableError(f"no store for {path}")

    async def keep_checkpoint(self, attempt: AttemptKey, path: Path) -> BlobKey:
        self.begun += 1
        self.has_begun.set()
        content = path.read_bytes()
        await self.gate.wait()
        self.stored.append(content)
        return BlobKey(f"{len(self.stored):064d}", len(content))

    async def keep_output(self, trial: FinishedTrial, file_name: str, path: Path) -> None:
        raise AssertionError(file_name)


def attempt(
    tmp_path: Path,
    blobs: GatedBlobs,
    reports: list[CheckpointSaved],
    grace_s: float = WAIT_S,
    number: int = 1,
) -> AttemptCheckpoints:
    (tmp_path / "checkpoint").mkdir(exist_ok=True)
    spec = TrialSpec("true", outputs_travel=True)
    work = TrialWork(AttemptKey(EXPERIMENT, "one", number), 0, 0, {}, "", spec, b"")

    def report(one: CheckpointSaved) -> bool:
        reports.append(one)
        return True

    copies = DiskCheckpointCopies(TarFolders())
    return TrialCheckpoints(copies, blobs, grace_s).of_attempt(work, str(tmp_path), report)


async def test_one_upload_at_a_time_and_of_those_that_wait_the_newest(tmp_path: Path) -> None:
    blobs, reports = GatedBlobs(), list[CheckpointSaved]()
    checkpoints = attempt(tmp_path, blobs, reports)
    steps = [await checkpoints.save(None)]
    async with asyncio.timeout(WAIT_S):
        await blobs.has_begun.wait()

    steps += [await checkpoints.save(None) for _ in range(3)]
    blobs.gate.set()
    await checkpoints.finish(wanted=True)

    assert steps == [1, 2, 3, 4]
    assert [one.checkpoint.step for one in reports] == [1, 4]
    assert blobs.begun == 2


async def test_an_end_waits_for_an_upload_for_the_grace_only(tmp_path: Path) -> None:
    blobs, reports = GatedBlobs(), list[CheckpointSaved]()
    checkpoints = attempt(tmp_path, blobs, reports, grace_s=0.0)
    await checkpoints.save(1)

    await checkpoints.finish(wanted=True)
    checkpoints.cancel()

    assert reports == []


async def test_next_attempt_counts_on_from_the_step_of_the_last_one(tmp_path: Path) -> None:
    blobs, reports = GatedBlobs(), list[CheckpointSaved]()
    first = attempt(tmp_path, blobs, reports)
    await first.save(41)
    first.cancel()

    second = attempt(tmp_path, blobs, reports, number=2)
    await second.restore()

    assert await second.save(None) == 42
    second.cancel()


async def test_copies_of_an_earlier_attempt_are_removed_after_a_success(tmp_path: Path) -> None:
    blobs, reports = GatedBlobs(), list[CheckpointSaved]()
    first = attempt(tmp_path, blobs, reports)
    await first.save(1)
    first.cancel()

    second = attempt(tmp_path, blobs, reports, number=2)
    await second.restore()
    await second.finish(wanted=False)

    assert not (tmp_path / ".checkpoint").exists()


async def test_success_ends_the_upload(tmp_path: Path) -> None:
    blobs, reports = GatedBlobs(), list[CheckpointSaved]()
    checkpoints = attempt(tmp_path, blobs, reports)
    await checkpoints.save(1)
    async with asyncio.timeout(WAIT_S):
        await blobs.has_begun.wait()

    await checkpoints.finish(wanted=False)
    blobs.gate.set()
    await checkpoints.finish(wanted=True)
    for _ in range(10):
        await asyncio.sleep(0)

    assert (reports, blobs.stored) == ([], [])


async def test_nothing_is_uploaded_after_a_cancellation(tmp_path: Path) -> None:
    blobs, reports = GatedBlobs(), list[CheckpointSaved]()
    checkpoints = attempt(tmp_path, blobs, reports)
    blobs.gate.set()

    checkpoints.cancel()
    await checkpoints.save(1)
    await checkpoints.finish(wanted=True)

    assert (reports, blobs.begun) == ([], 0)


def at_step(tmp_path: Path, step: int) -> None:
    """Let the trial write a checkpoint."""
    (tmp_path / "checkpoint").mkdir(exist_ok=True)
    (tmp_path / "checkpoint/step").write_text(str(step))


async def test_older_copy_of_this_machine_is_restored_if_the_store_has_lost_the_newest(
    tmp_path: Path,
) -> None:
    copies = TrialCheckpoints(DiskCheckpointCopies(TarFolders()), GatedBlobs(), WAIT_S)
    first = attempt(tmp_path, GatedBlobs(), [])
    at_step(tmp_path, 3)
    await first.save(3)
    first.cancel()
    at_step(tmp_path, 4)
    stored = TrialCheckpoint(9, 1, 5, BlobKey("0" * 64, 1))
    spec = TrialSpec("true", outputs_travel=True)
    key = AttemptKey(EXPERIMENT, "one", 2)
    work = TrialWork(key, 0, 0, {}, "", spec, b"", resume_from=stored)
    second = copies.of_attempt(work, str(tmp_path), lambda _: True)

    await second.restore()

    assert (tmp_path / "checkpoint/step").read_text() == "3"
    assert await second.save(None) == 4
    second.cancel()


async def test_folder_that_cannot_be_replaced_keeps_the_trial_from_starting(
    tmp_path: Path,
) -> None:
    checkpoints = attempt(tmp_path, GatedBlobs(), [], number=2)
    (tmp_path / "checkpoint").rmdir()
    (tmp_path / "checkpoint").write_text("in the way")

    with pytest.raises(LaunchError, match="the last checkpoint cannot be restored"):
        await checkpoints.restore()


async def test_checkpoint_that_could_not_be_copied_takes_no_step_and_no_number(
    tmp_path: Path,
) -> None:
    blobs, reports = GatedBlobs(), list[CheckpointSaved]()
    blobs.gate.set()
    checkpoints = attempt(tmp_path, blobs, reports)
    (tmp_path / "checkpoint").rmdir()

    with pytest.raises(OSError, match="checkpoint"):
        await checkpoints.save(7)
    at_step(tmp_path, 1)
    step = await checkpoints.save(None)
    await checkpoints.finish(wanted=True)

    assert step == 1
    assert [(one.checkpoint.step, one.checkpoint.number) for one in reports] == [(1, 1)]


class RefusingBlobs(GatedBlobs):
    """`TrialBlobs` that refuse the first upload."""

    async def keep_checkpoint(self, attempt: AttemptKey, path: Path) -> BlobKey:
        if not self.begun:
            self.begun += 1
            raise UnavailableError("the store is away")
        return await super().keep_checkpoint(attempt, path)


async def test_upload_that_fails_is_not_reported_and_the_next_one_is(tmp_path: Path) -> None:
    blobs, reports = RefusingBlobs(), list[CheckpointSaved]()
    blobs.gate.set()
    checkpoints = attempt(tmp_path, blobs, reports)

    for step in (1, 2):
        await checkpoints.save(step)
        await checkpoints.finish(wanted=True)

    assert [one.checkpoint.step for one in reports] == [2]
    assert reports[0].checkpoint.archive is not None


async def test_copies_of_a_failed_trial_are_kept_and_those_of_a_stopped_one_removed(
    bench: Bench,
) -> None:
    task = steps(bench, 2)
    task.spec.command += "; exit 3"
    await bench.deliver(bench.agent(), task)
    await bench.until_kind("one", "exited")
    kept = (folder(bench) / ".checkpoint").exists()

    agent = bench.agent()
    await bench.deliver(agent, steps(bench, 3, attempt=2, hang=True))
    await bench.until(lambda: [one for one in saved(bench, 2) if one.step == 3])
    agent.stop_trial(AttemptKey(EXPERIMENT, "one", 2))
    await bench.until(lambda: bench.kinds("one").count("exited") == 2)

    assert kept
    assert not (folder(bench) / ".checkpoint").exists()
