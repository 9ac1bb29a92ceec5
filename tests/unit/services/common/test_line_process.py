"""Processes that exchange lines with their service; scripts stand in for user code."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from svc_common.errors import FailedPreconditionError
from svc_common.line_process import (
    LINE_LIMIT_BYTES,
    LineProcess,
    ProcessPlan,
    start_process,
)
from svc_common.process_log import ProcessLog

PRELUDE = """\
import os, signal, sys
source, target = open(int(sys.argv[1])), int(sys.argv[2])
"""


class Lines:
    """`LineSink` that records lines and reasons, and refuses the line `bad`."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.threads: set[threading.Thread] = set()
        self.reasons: list[str] = []
        self._ended = asyncio.Event()
        self._more = asyncio.Event()

    def decode(self, line: bytes) -> bytes:
        self.threads.add(threading.current_thread())
        if line == b"bad":
            raise ValueError("bad line")
        if line == b"deep":
            raise RecursionError("nested too deeply")
        return line

    def on_values(self, values: Sequence[bytes]) -> None:
        assert threading.current_thread() is threading.main_thread()
        if b"unusable" in values:
            raise KeyError("unusable value")
        self.lines += values
        self._more.set()

    def on_end(self, reason: str) -> None:
        self.reasons.append(reason)
        self._ended.set()

    async def arrived(self, count: int) -> None:
        async with asyncio.timeout(60):
            while len(self.lines) < count:
                self._more.clear()
                await self._more.wait()

    async def end(self) -> str:
        async with asyncio.timeout(60):
            await self._ended.wait()
        return self.reasons[0]


async def started(
    folder: Path,
    script: str,
    sink: Lines,
    program: str = "",
    line_limit_bytes: int = LINE_LIMIT_BYTES,
) -> LineProcess[bytes]:
    def command(child_in: int, child_out: int) -> list[str]:
        code = PRELUDE + script
        return [program or sys.executable, "-S", "-c", code, str(child_in), str(child_out)]

    plan = ProcessPlan(
        label="the script",
        command=command,
        environment={"PATH": os.defpath},
        directory=folder,
        log=ProcessLog(folder, "script.log", "svc_test"),
        line_limit_bytes=line_limit_bytes,
    )
    return await start_process(plan, sink)


async def test_lines_go_both_ways_in_order(tmp_path: Path) -> None:
    sink = Lines()
    process = await started(
        tmp_path,
        "for line in iter(source.readline, 'end\\n'):\n os.write(target, line.encode())",
        sink,
    )
    # More than a pipe holds: the rest is written when there is room.
    process.send("".join(f"line {number}\n" for number in range(20_000)))
    process.send("end\n")

    assert await sink.end() == "the script's process ended with exit code 0"
    assert sink.lines == [b"line %d" % number for number in range(20_000)]


async def test_line_that_the_sink_refuses_ends_the_process(tmp_path: Path) -> None:
    sink = Lines()
    process = await started(
        tmp_path, "os.write(target, b'good\\nbad\\nlater\\n')\nsource.read()", sink
    )

    reason = await sink.end()

    assert sink.lines == [b"good"]
    assert reason == "the script's output cannot be used: bad line"
    await process.aclose()


async def test_line_that_is_nested_too_deeply_ends_the_process(tmp_path: Path) -> None:
    sink = Lines()
    process = await started(tmp_path, "os.write(target, b'deep\\n')\nsource.read()", sink)

    assert await sink.end() == "the script's output cannot be used: nested too deeply"
    await process.aclose()


async def test_value_that_the_sink_cannot_use_ends_the_process(tmp_path: Path) -> None:
    sink = Lines()
    process = await started(tmp_path, "os.write(target, b'unusable\\n')\nsource.read()", sink)

    assert await sink.end() == "the script's output cannot be used: 'unusable value'"
    await process.aclose()


LARGE = """\
with open(target, 'wb') as file:
    file.write(b'first\\n' + b'x' * 10_000_000 + b'\\nlast\\n')
"""


async def test_large_line_is_decoded_off_the_loop_and_keeps_its_place(tmp_path: Path) -> None:
    sink = Lines()
    process = await started(tmp_path, LARGE + "source.read()", sink)

    await sink.arrived(3)

    assert sink.lines == [b"first", b"x" * 10_000_000, b"last"]
    assert sink.threads - {threading.main_thread()}
    await process.aclose()


async def test_large_line_counts_that_a_process_has_written_before_its_end(tmp_path: Path) -> None:
    sink = Lines()
    process = await started(tmp_path, LARGE, sink)

    assert await sink.end() == "the script's process ended with exit code 0"
    assert [len(line) for line in sink.lines] == [5, 10_000_000, 4]
    await process.aclose()


async def test_daemon_that_writes_on_does_not_delay_the_end(tmp_path: Path) -> None:
    sink = Lines()
    script = (
        "if os.fork() == 0:\n"
        " os.setsid()\n"
        " os.write(target, b'ready\\n')\n"
        " while True: os.write(target, b'more\\n' * 10_000)\n"
        "source.readline()"
    )
    process = await started(tmp_path, script, sink)
    await sink.arrived(1)

    process.send("end\n")

    assert await sink.end() == "the script's process ended with exit code 0"
    await process.aclose()  # the daemon ends by SIGPIPE


async def test_line_without_end_ends_the_process(tmp_path: Path) -> None:
    sink = Lines()
    script = "while True: os.write(target, b'x' * 1000)"
    process = await started(tmp_path, script, sink, line_limit_bytes=100_000)

    reason = await sink.end()

    assert reason == "the script's output cannot be used: a line must have at most 100,000 bytes"
    assert sink.lines == []
    await process.aclose()


async def test_end_is_reported_with_the_last_line_of_the_log(tmp_path: Path) -> None:
    sink = Lines()
    await started(tmp_path, "sys.exit('no module m')", sink)

    assert await sink.end() == "the script's process ended with exit code 1: no module m"
    assert "exit code 1" in (tmp_path / "script.log").read_text()


async def test_signal_is_reported_by_its_name(tmp_path: Path) -> None:
    sink = Lines()
    await started(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)", sink)

    assert await sink.end() == "the script's process was killed by SIGKILL"


async def test_closed_process_takes_no_lines_and_reports_no_end(tmp_path: Path) -> None:
    sink = Lines()
    process = await started(tmp_path, "source.read()", sink)

    await process.aclose()
    process.send("late\n")

    assert sink.reasons == []


async def test_program_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(FailedPreconditionError, match="the script cannot be started with '/none'"):
        await started(tmp_path, "", Lines(), program="/none")


async def test_start_that_is_cancelled_leaves_no_pipe_open(tmp_path: Path) -> None:
    await (await started(tmp_path, "", Lines())).aclose()  # what the loop itself opens once
    before = list(Path("/proc/self/fd").iterdir())

    starting = asyncio.create_task(started(tmp_path, "source.read()", Lines()))
    await asyncio.sleep(0)
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)

    assert starting.cancelled()
    assert len(list(Path("/proc/self/fd").iterdir())) == len(before)
