"""Publication of trial output."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from nni_proto.trial.v1 import output_pb2
from svc_common.clock import SystemClock
from svc_common.messaging.memory import InMemoryBus
from svc_common.tasks import TaskOwner
from svc_trial_runner.adapters.trial_folders import DiskTrialFolders
from svc_trial_runner.attempts.output_stream import (
    BACKLOG_BYTES,
    PIECE_BYTES,
    OutputStreamer,
    _Stream,
)
from svc_trial_runner.domain.claims import AttemptKey
from svc_trial_runner.domain.resource_use import RESOURCES
from svc_trial_runner.ports import TrialFilesRequest, TrialOutput

KEY = AttemptKey("exp", "trial", 2)
OUT, ERR = output_pb2.OUTPUT_STREAM_STDOUT, output_pb2.OUTPUT_STREAM_STDERR


class Trial:
    """Folder of a trial that a test writes to in place of its process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        request = TrialFilesRequest(folder, "", "", 2 * BACKLOG_BYTES)
        self.output: TrialOutput = DiskTrialFolders(2 * BACKLOG_BYTES).open(request)

    def write(self, name: str, data: bytes) -> None:
        """Append to a file as the pipe's reader does, and notify the watchers."""
        with (self.folder / name).open("ab") as file:
            file.write(data)
        self.output.announce()

    def end(self) -> None:
        self.output.cut()


@pytest.fixture
async def bus() -> AsyncIterator[InMemoryBus]:
    async with InMemoryBus() as opened:
        yield opened


@pytest.fixture
async def begin(bus: InMemoryBus, tmp_path: Path) -> AsyncIterator[Callable[[], Trial]]:
    failures: list[BaseException] = []
    tasks = TaskOwner(lambda _name, error: failures.append(error))
    streamer = OutputStreamer(bus.log_lines, bus.wait_connected, SystemClock(), tasks)

    def start() -> Trial:
        trial = Trial(tmp_path)
        streamer.begin(KEY, str(tmp_path), trial.output)
        return trial

    yield start
    await tasks.aclose()
    assert failures == []


async def received(bus: InMemoryBus) -> list[output_pb2.TrialOutput]:
    """Return all messages until the end of the streams."""
    pieces: list[output_pb2.TrialOutput] = []
    async with asyncio.timeout(10), aclosing(bus.log_lines.follow("exp", "trial")) as feed:
        async for chunk in feed:
            pieces.append(output_pb2.TrialOutput.FromString(chunk.payload))
            if pieces[-1].at_end:
                break
    return pieces


def text(pieces: list[output_pb2.TrialOutput], stream: int) -> bytes:
    return b"".join(piece.data for piece in pieces if piece.stream == stream)


async def test_both_streams_are_sent_and_end_with_one_message(
    bus: InMemoryBus, begin: Callable[[], Trial]
) -> None:
    trial = begin()
    trial.write("stdout", b"one ")
    trial.write("stderr", b"oh")
    trial.write("stdout", b"two")
    trial.end()

    pieces = await received(bus)

    assert (text(pieces, OUT), text(pieces, ERR)) == (b"one two", b"oh")
    assert {piece.attempt for piece in pieces} == {2}
    assert [piece.stream for piece in pieces if piece.at_end] == [
        output_pb2.OUTPUT_STREAM_UNSPECIFIED
    ]


async def test_samples_of_its_use_are_a_stream_of_their_own(
    bus: InMemoryBus, begin: Callable[[], Trial]
) -> None:
    trial = begin()
    trial.write(RESOURCES, b"{}\n")
    trial.end()

    pieces = await received(bus)

    assert text(pieces, output_pb2.OUTPUT_STREAM_RESOURCES) == b"{}\n"


async def test_output_comes_while_the_trial_runs(
    bus: InMemoryBus, begin: Callable[[], Trial]
) -> None:
    trial = begin()
    async with asyncio.timeout(10), aclosing(bus.log_lines.follow("exp", "trial")) as feed:
        trial.write("stdout", b"first")
        first = output_pb2.TrialOutput.FromString((await anext(feed)).payload)
        trial.write("stdout", b"second")
        second = output_pb2.TrialOutput.FromString((await anext(feed)).payload)

    assert (first.data, second.data, second.offset) == (b"first", b"second", 5)
    trial.end()


async def test_many_lines_travel_in_few_messages(
    bus: InMemoryBus, begin: Callable[[], Trial]
) -> None:
    trial = begin()
    for number in range(1000):
        trial.write("stdout", b"line %d\n" % number)
    trial.end()

    pieces = await received(bus)

    assert text(pieces, OUT).count(b"\n") == 1000
    assert len(pieces) < 10


async def test_an_outage_of_the_bus_loses_nothing(
    bus: InMemoryBus, begin: Callable[[], Trial]
) -> None:
    bus.broker.stop()
    trial = begin()
    trial.write("stdout", b"written while it was away")
    trial.end()
    await bus.wait_connected(False)
    bus.broker.start()

    assert text(await received(bus), OUT) == b"written while it was away"


async def test_a_trial_that_is_far_ahead_is_skipped_ahead(
    bus: InMemoryBus, begin: Callable[[], Trial]
) -> None:
    trial = begin()
    (trial.folder / "stdout").write_bytes(b"x" * (BACKLOG_BYTES + 10 * PIECE_BYTES))
    trial.write("stderr", b"go")
    async with asyncio.timeout(10), aclosing(bus.log_lines.follow("exp", "trial")) as feed:
        first = output_pb2.TrialOutput.FromString((await anext(feed)).payload)

    assert (first.offset, len(first.data)) == (10 * PIECE_BYTES, PIECE_BYTES)
    trial.end()


def test_link_in_the_place_of_an_output_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the agent's")
    (tmp_path / "stdout").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "stderr")

    assert _Stream(1, OUT, str(tmp_path / "stdout")).next_piece() is None
    assert _Stream(1, ERR, str(tmp_path / "stderr")).next_piece() is None


@pytest.mark.parametrize(("ahead_bytes", "offset"), [(0, 0), (1, 1)])
def test_stream_lags_by_four_mebibytes_at_most_in_pieces_of_64_kib(
    tmp_path: Path, ahead_bytes: int, offset: int
) -> None:
    (tmp_path / "stdout").touch()
    os.truncate(tmp_path / "stdout", 4 * 2**20 + ahead_bytes)
    stream = _Stream(1, OUT, str(tmp_path / "stdout"))

    pieces = [stream.next_piece() for _ in range(2)]

    found = [(piece.offset, len(piece.data)) for piece in pieces if piece is not None]
    assert found == [(offset, 65536), (offset + 65536, 65536)]
    assert not [
        link
        for link in Path("/proc/self/fd").iterdir()
        if os.path.realpath(link) == str(tmp_path / "stdout")
    ]


def test_every_new_byte_is_a_piece_and_nothing_else_is(tmp_path: Path) -> None:
    stream = _Stream(1, OUT, str(tmp_path / "stdout"))

    sizes = []
    for written in (b"", b"a", b"ab", b"ab", b""):  # the last: the trial has truncated its file
        (tmp_path / "stdout").write_bytes(written)
        piece = stream.next_piece()
        sizes.append(None if piece is None else (piece.offset, len(piece.data)))

    assert sizes == [None, (0, 1), (1, 1), None, None]
