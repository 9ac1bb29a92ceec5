"""TensorBoard processes, with a sleeping program in place of TensorBoard."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from svc_common.errors import FailedPreconditionError, NotFoundError
from svc_manager.web.tensorboards import TensorBoardRun, TensorBoards
from tests.unit.services.manager.web.conftest import SLEEPING

WRITING_ARGUMENTS = (
    "import pathlib, sys, time; "
    "pathlib.Path({path!r}).write_text('\\0'.join(sys.argv)); time.sleep(60)"
)
"""Program that writes its arguments into a FIFO: `/proc` may not show them right after `exec`."""


@pytest.mark.claim("platform", 73)
async def test_runs_are_labelled_by_sequence_and_trial(tmp_path: Path) -> None:
    fifo = tmp_path / "arguments"
    os.mkfifo(fifo)
    boards = TensorBoards([sys.executable, "-c", WRITING_ARGUMENTS.format(path=str(fifo))])

    task = await boards.start(
        "exp", [TensorBoardRun("abcde", 7, tmp_path), TensorBoardRun("fghij", 9, tmp_path)]
    )
    words = (await asyncio.to_thread(fifo.read_text)).split("\0")
    await boards.stop_all("exp")

    assert words[words.index("--logdir_spec") + 1] == f"7-abcde:{tmp_path},9-fghij:{tmp_path}"
    assert not task.alive


async def test_task_of_another_experiment_is_unknown(tmp_path: Path) -> None:
    boards = TensorBoards([sys.executable, "-c", SLEEPING])
    task = await boards.start("exp", [TensorBoardRun("abcde", 7, tmp_path)])

    with pytest.raises(NotFoundError):
        await boards.stop("other", task.id)
    await boards.stop_all()


async def test_tasks_that_do_not_listen_yet_have_ports_of_their_own(tmp_path: Path) -> None:
    boards = TensorBoards([sys.executable, "-c", SLEEPING])

    first = await boards.start("exp", [TensorBoardRun("abcde", 7, tmp_path)])
    second = await boards.start("exp", [TensorBoardRun("fghij", 9, tmp_path)])

    assert first.port != second.port
    await boards.stop_all()


async def test_path_that_tensorboard_cannot_take_is_refused(tmp_path: Path) -> None:
    odd = tmp_path / "a,b"
    odd.mkdir()

    with pytest.raises(FailedPreconditionError, match="comma"):
        await TensorBoards([sys.executable]).start("exp", [TensorBoardRun("abcde", 7, odd)])
