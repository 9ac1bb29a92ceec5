import asyncio
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.isolated import child_process
from svc_trial_runner.fleet.adapters.isolated.child_process import ChildProcess
from svc_trial_runner.fleet.adapters.isolated.messages import write_context
from svc_trial_runner.fleet.ports import PlatformError
from tests.support.fleet_pools import INSTALLATION, POOL
from tests.support.isolated_platforms import COMMAND, ROOT
from tests.support.local_platforms import local_context

SILENT = (sys.executable, "-S", "-c", "import time; time.sleep(1_000)")
PARENT = f"""\
import asyncio, sys
sys.path.insert(0, {str(ROOT)!r})
from svc_trial_runner.fleet.adapters.isolated.child_process import ChildProcess
from tests.support.isolated_platforms import COMMAND

async def main():
    child = await ChildProcess.start(COMMAND, None)
    try:
        await child.call("agents")
    except Exception:
        print(child.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def refuse(method: str, params: Any) -> Any:
    raise PlatformError("no requests are handled")


async def test_child_serves_calls_and_ends_when_it_is_closed(tmp_path: Path) -> None:
    child = await ChildProcess.start(COMMAND, refuse)
    await child.call("open", write_context(local_context(tmp_path, INSTALLATION, POOL)))

    capacity = await child.call("capacity")
    await child.aclose()
    await child.aclose()

    assert capacity == 1
    assert child.ended
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)


async def test_program_that_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="cannot be started"):
        await ChildProcess.start([str(tmp_path / "missing")], refuse)


async def test_killed_child_fails_calls_with_the_signal() -> None:
    child = await ChildProcess.start(SILENT, refuse)
    call = asyncio.ensure_future(child.call("agents"))

    child.kill()

    with pytest.raises(PlatformError, match="killed by signal 9"):
        await call
    assert child.ended
    await child.aclose()


@pytest.mark.parametrize("code", [0, 3])
async def test_exit_code_is_named(code: int) -> None:
    command = (sys.executable, "-S", "-c", f"raise SystemExit({code})")
    child = await ChildProcess.start(command, refuse)

    with pytest.raises(PlatformError, match=f"exit code {code};"):
        await child.call("agents")
    await child.aclose()


def test_child_ends_when_the_fleet_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()

    try:
        readable, _, _ = select.select([child], [], [], 30)
    finally:
        os.close(child)

    assert readable == [child]


CLOSING = "import os, sys, time; os.close(int(sys.argv[1])); time.sleep(1_000)"


async def test_child_that_closes_the_connection_is_named_and_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(child_process, "END_S", 0.0)
    child = await ChildProcess.start((sys.executable, "-S", "-c", CLOSING), refuse)

    with pytest.raises(PlatformError, match="has closed the connection"):
        await child.call("agents")
    ended = child.ended
    await child.aclose()

    assert ended
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)


async def test_running_child_has_neither_ended_nor_is_it_stuck() -> None:
    child = await ChildProcess.start(SILENT, refuse)

    assert (child.ended, child.stuck) == (False, False)
    child.kill()
    await child.aclose()


async def test_output_of_a_child_is_in_the_log_of_the_fleet(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The fleet's own standard output says when it is ready."""
    child = await ChildProcess.start((sys.executable, "-S", "-c", "print('words')"), refuse)
    with pytest.raises(PlatformError, match="exit code 0"):
        await child.call("agents")
    await child.aclose()

    assert capfd.readouterr() == ("", "words\n")


async def test_child_that_cannot_be_started_leaves_no_descriptor_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))

    with pytest.raises(PlatformError):
        await ChildProcess.start([str(tmp_path / "missing")], refuse)

    assert len(list(Path("/proc/self/fd").iterdir())) == before


async def test_interrupt_of_the_terminal_does_not_end_a_child(tmp_path: Path) -> None:
    child = await ChildProcess.start(COMMAND, refuse)
    await child.call("open", write_context(local_context(tmp_path, INSTALLATION, POOL)))

    os.kill(child.pid, signal.SIGINT)

    assert await child.call("capacity") == 1
    await child.aclose()


async def test_end_by_the_first_signal_is_named() -> None:
    ours = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup` has it ignored, also in children
    child = await ChildProcess.start(SILENT, refuse)
    signal.signal(signal.SIGHUP, ours)
    os.kill(child.pid, signal.SIGHUP)

    with pytest.raises(PlatformError, match=r"killed by signal 1 \("):
        await child.call("agents")
    await child.aclose()


FAMILY = """\
import subprocess, sys, time
trial = subprocess.Popen(["sleep", "600"])
with open(sys.argv[1], "w") as pipe:
    pipe.write(str(trial.pid))
time.sleep(600)
"""


async def test_processes_of_a_killed_child_are_killed_as_well(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    child = await ChildProcess.start((sys.executable, "-S", "-c", FAMILY, str(pipe)), refuse)
    grandchild = os.pidfd_open(int(await asyncio.to_thread(pipe.read_text)))

    child.kill()

    readable, _, _ = await asyncio.to_thread(select.select, [grandchild], [], [], 30)
    os.close(grandchild)
    assert readable
    await child.aclose()


async def test_closed_child_leaves_no_task_behind_though_the_connection_is_open() -> None:
    before = asyncio.all_tasks()
    # The process ends at once; its own child keeps its end of the connection.
    child = await ChildProcess.start(("bash", "-c", "sleep 600 & exit 0"), refuse)
    async with asyncio.timeout(30):
        while not child.ended:  # noqa: ASYNC110 - the process has no event
            await asyncio.sleep(0)
    begun = asyncio.all_tasks() - before

    await child.aclose()

    left = asyncio.all_tasks() - before
    child.kill()
    assert len(begun) == 1
    assert left == set()
