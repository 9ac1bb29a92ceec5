"""Kernel settings of the agent, and the reaper of orphans."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
import uuid

from svc_trial_runner.adapters.process_reaper import (
    Reaper,
    machine_boot_id,
    raise_descriptor_limit,
)

ADOPTION = """
import os, subprocess
from svc_trial_runner.adapters.process_reaper import become_subreaper, kill_descendants
from svc_trial_runner.adapters.process_table import ProcessSnapshot
become_subreaper()
subprocess.run(["sh", "-c", "setsid sleep 60 >/dev/null & exit 0"], check=True)
orphans = ProcessSnapshot().descendants(os.getpid())
kill_descendants()
pid, status = os.waitpid(-1, 0)
print([entry.pid for entry in orphans] == [pid], os.waitstatus_to_exitcode(status))
"""


def test_orphans_are_adopted_and_killed() -> None:
    # In a process of its own: the setting and the signal concern all descendants.
    done = subprocess.run(
        [sys.executable, "-c", ADOPTION], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout == "True -9\n"


MOUNT = """
import os, signal, subprocess
from svc_common.storage.shared_mounts import MOUNT_MARK, MOUNT_VARIABLE
from svc_trial_runner.adapters.process_reaper import become_subreaper, kill_descendants
from svc_trial_runner.adapters.process_table import ProcessSnapshot
become_subreaper()
command = ["sh", "-c", "setsid sleep 60 >/dev/null & exit 0"]
subprocess.run(command, check=True, env={**os.environ, MOUNT_VARIABLE: MOUNT_MARK})
(daemon,) = ProcessSnapshot().descendants(os.getpid())
kill_descendants()
os.kill(daemon.pid, signal.SIGTERM)
print(os.waitstatus_to_exitcode(os.waitpid(daemon.pid, 0)[1]))
"""


def test_daemon_of_a_storage_that_stays_mounted_is_not_killed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MOUNT], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout == "-15\n"


def test_descriptor_limit_is_raised_to_the_maximum() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before[0] - 1, before[1]))

        raise_descriptor_limit()

        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (before[1], before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_boot_id_is_constant_between_boots() -> None:
    assert uuid.UUID(machine_boot_id()) == uuid.UUID(machine_boot_id())


async def test_reaper_passes_on_the_status_of_each_child() -> None:
    reaper = Reaper()
    ended: dict[int, int] = {}
    changed = asyncio.Event()

    def on_end(pid: int, status: int) -> None:
        ended[pid] = os.waitstatus_to_exitcode(status)
        changed.set()

    reaper.on_end(on_end)
    try:
        children = [
            os.posix_spawn(  # noqa: ASYNC221 - not waited for
                "/bin/sh", ["sh", "-c", f"exit {code}"], os.environ, setsid=leads
            )
            for code, leads in ((0, False), (7, True))
        ]
        async with asyncio.timeout(30):
            while not ended.keys() >= set(children):
                changed.clear()
                await changed.wait()
    finally:
        reaper.close()

    # Other tests of this process may have left children, which are reaped as well.
    assert [ended[child] for child in children] == [0, 7]


async def test_closed_reaper_leaves_children_to_their_parent() -> None:
    reaper = Reaper()
    ended: list[int] = []
    reaper.on_end(lambda pid, _: ended.append(pid))
    reaper.close()

    with subprocess.Popen(["true"]) as child:  # noqa: ASYNC220 - milliseconds
        status = child.wait()
    await asyncio.sleep(0)

    assert (status, ended) == (0, [])
    assert signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL


async def test_reaper_returns_while_other_children_run() -> None:
    reaper = Reaper()
    ended: asyncio.Queue[int] = asyncio.Queue()
    reaper.on_end(lambda pid, _: ended.put_nowait(pid))
    running = os.posix_spawn("/bin/sleep", ["sleep", "60"], {})  # noqa: ASYNC221 - not waited for
    child = os.posix_spawn("/bin/sh", ["sh", "-c", "exit"], {})  # noqa: ASYNC221 - not waited for
    seen = []
    try:
        async with asyncio.timeout(30):
            while child not in seen:
                seen.append(await ended.get())
    finally:
        reaper.close()
        os.kill(running, signal.SIGKILL)
        os.waitpid(running, 0)  # noqa: ASYNC222 - it has ended

    assert 0 not in seen
