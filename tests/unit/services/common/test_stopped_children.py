"""Child processes that a signal has stopped go on; their ends are left to those who wait."""

import asyncio
import os
import signal
import sys

import pytest
from structlog.testing import capture_logs

from svc_common.stopped_children import stopped_children_continued

STOPS_ITSELF = """
import os, signal, sys
for _ in range(int(sys.argv[1])):
    os.kill(os.getpid(), signal.SIGSTOP)
print("went on")
"""


async def started(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", *arguments, stdin=-1, stdout=-1
    )


async def test_child_that_stops_itself_again_and_again_comes_to_its_end() -> None:
    with capture_logs() as logs, stopped_children_continued():
        child = await started(STOPS_ITSELF, "5")
        async with asyncio.timeout(60):
            output, _ = await child.communicate()

    assert (output, child.returncode) == (b"went on\n", 0)
    assert [(line["log_level"], line["pid"]) for line in logs] == [("warning", child.pid)]


async def test_child_that_was_stopped_before_goes_on() -> None:
    child = await started("input(); print('went on')")
    os.kill(child.pid, signal.SIGSTOP)
    await asyncio.to_thread(os.waitid, os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)

    with stopped_children_continued():
        async with asyncio.timeout(60):
            output, _ = await child.communicate(b"\n")

    assert output == b"went on\n"


async def test_exit_code_of_each_child_is_left_to_its_waiter() -> None:
    with stopped_children_continued():
        children = [await started(f"raise SystemExit({code})") for code in range(1, 6)]
        async with asyncio.timeout(60):
            codes = [await child.wait() for child in children]

    assert codes == [1, 2, 3, 4, 5]


async def test_afterwards_children_stay_stopped() -> None:
    with stopped_children_continued():
        pass
    child = await started(STOPS_ITSELF, "1")

    found = await asyncio.to_thread(os.waitid, os.P_PID, child.pid, os.WSTOPPED)

    assert found is not None
    child.kill()
    await child.wait()
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)
