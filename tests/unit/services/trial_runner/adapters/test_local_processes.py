import asyncio
import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from svc_common.storage.shared_mounts import MOUNT_MARK, MOUNT_VARIABLE
from svc_trial_runner.adapters.agent_folder import trial_sdk_folder
from svc_trial_runner.adapters.local_processes import LocalProcesses
from svc_trial_runner.adapters.process_table import identity_of, read_entry
from svc_trial_runner.domain.claims import ProcessIdentity
from svc_trial_runner.domain.command import parse_python_command
from svc_trial_runner.ports import LaunchError, LaunchRequest, TrialProcess

WAIT_S = 30.0
PYTHON = str(Path(sys.executable).parent)


class Stage:
    """Launcher with warm interpreters, and the process servers that it started."""

    def __init__(self) -> None:
        self.servers: list[ProcessIdentity] = []
        self.processes = LocalProcesses(
            trial_sdk_folder() / "warm.py", self.servers.append, os.getpid()
        )

    async def run(self, command: str, folder: Path, base: dict[str, str]) -> tuple[bool, int]:
        """Run a command to its end; return whether it was warm, and its wait status."""
        null = os.open(os.devnull, os.O_WRONLY)
        request = LaunchRequest(
            label="t",
            command=command,
            python=parse_python_command(command),
            code=str(folder),
            directory=str(folder),
            base=base,
            variables={},
            stdout=null,
            stderr=null,
        )
        process = await asyncio.wait_for(self.processes.launch(request), WAIT_S)
        os.close(null)
        status = await asyncio.wait_for(process.ended, WAIT_S)
        assert status is not None
        return process.warm, status


@pytest_asyncio.fixture
async def stage() -> AsyncIterator[Stage]:
    made = Stage()
    yield made
    await made.processes.aclose()


def base(**variables: str) -> dict[str, str]:
    return {"PATH": f"{PYTHON}:/usr/bin:/bin", **variables}


async def test_trials_of_one_kind_share_an_interpreter(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("pass")

    for variables in ({}, {"ORDINARY": "1"}, {"ORDINARY": "2"}):
        assert await stage.run("python3 t.py", tmp_path, base(**variables)) == (True, 0)

    assert len(stage.servers) == stage.processes.warm_count == 1


async def test_load_time_variables_and_folders_need_interpreters_of_their_own(
    stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    for folder in (tmp_path, tmp_path / "other"):
        (folder / "t.py").write_text("pass")

    await stage.run("python3 t.py", tmp_path, base())
    await stage.run("python3 t.py", tmp_path, base(OMP_NUM_THREADS="1"))
    await stage.run("python3 t.py", tmp_path / "other", base())

    assert len(stage.servers) == 3


async def test_command_that_needs_a_shell_starts_plain(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("pass")

    assert await stage.run("python3 t.py && exit 4", tmp_path, base()) == (False, 4 << 8)
    assert stage.processes.warm_count == 0


async def test_interpreter_that_cannot_be_warm_is_run_plainly(stage: Stage, tmp_path: Path) -> None:
    """Here `python3` is a script, which cannot become a warm interpreter."""
    fake = tmp_path / "python3"
    fake.write_text("#!/bin/sh\n[ $1 = t.py ] && exit 5\nexit 1\n")
    fake.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}

    results = [await stage.run("python3 t.py", tmp_path, environment) for _ in range(5)]

    assert results == [(False, 5 << 8)] * 5
    # Three tries, then plain starts; the spawner is the fourth process.
    assert len(stage.servers) == 4


async def test_unknown_interpreter_is_left_to_the_shell(stage: Stage, tmp_path: Path) -> None:
    warm, status = await stage.run("python3.99 t.py", tmp_path, base())

    assert (warm, status) == (False, 127 << 8)


async def test_idle_interpreter_ends_and_a_busy_one_stays(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("pass")
    await stage.run("python3 t.py", tmp_path, base())

    stage.processes.release_idle(60)
    assert stage.processes.warm_count == 1
    stage.processes.release_idle(0)

    assert stage.processes.warm_count == 0
    assert await stage.run("python3 t.py", tmp_path, base()) == (True, 0)


DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    parent = os.getpid()
    if os.fork() == 0:
        for number in range(3):
            os.close(number)
        while os.getppid() == parent:
            time.sleep(0.001)
        with open("daemon", "w") as file:
            file.write(f"{os.getpid()}\\n")
        if "clean" in sys.argv:
            os.execve("/bin/sleep", ["sleep", "600"], {})
        time.sleep(600)
    os._exit(0)
while not os.path.exists("daemon") or not open("daemon").read().endswith("\\n"):
    time.sleep(0.01)
"""
SUBREAPER = 36


@pytest_asyncio.fixture
async def adopting() -> AsyncIterator[Stage]:
    """Stage in a process that adopts orphans, as the agent does."""
    libc = ctypes.CDLL(None)
    libc.prctl(SUBREAPER, 1, 0, 0, 0)
    made = Stage()
    made.processes = LocalProcesses(
        trial_sdk_folder() / "warm.py", made.servers.append, os.getpid(), adopts=True
    )
    yield made
    await made.processes.aclose()
    libc.prctl(SUBREAPER, 0, 0, 0, 0)


async def launch(
    stage: Stage, command: str, folder: Path, label: str = "t", *, isolated: bool = False
) -> TrialProcess:
    null = os.open(os.devnull, os.O_WRONLY)
    request = LaunchRequest(
        label=label,
        command=command,
        python=parse_python_command(command),
        code=str(folder),
        directory=str(folder),
        base=BASE,
        variables={"NNI_TRIAL_TOKEN": f"token of {label}"},
        stdout=null,
        stderr=null,
        isolated=isolated,
    )
    process = await asyncio.wait_for(stage.processes.launch(request), WAIT_S)
    os.close(null)
    return process


STARTER_OF_SHELL = "int(open(f'/proc/{os.getppid()}/stat').read().split()[3])"


async def until_zombie(pid: int) -> None:
    """Wait until a process has ended, which its parent has not reaped."""
    descriptor = os.pidfd_open(pid)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, ended.set)
    try:
        await asyncio.wait_for(ended.wait(), WAIT_S)
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def wait_killed(pid: int) -> None:
    """Wait for the end of an adopted process and reap it."""
    _, status = os.waitpid(pid, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


BASE = base()


@pytest.mark.parametrize("command", ["python3 t.py", "true && python3 t.py"])
async def test_daemon_that_has_left_its_session_is_killed_with_its_trial(
    adopting: Stage, tmp_path: Path, command: str
) -> None:
    (tmp_path / "t.py").write_text(DAEMON)
    process = await launch(adopting, command, tmp_path)
    await asyncio.wait_for(process.ended, WAIT_S)
    daemon = int((tmp_path / "daemon").read_text())

    assert adopting.processes.has_leftovers(process)
    adopting.processes.kill(process, "token of t")

    wait_killed(daemon)
    assert not adopting.processes.has_leftovers(process)


async def test_daemon_without_the_token_is_killed_as_an_orphan(
    adopting: Stage, tmp_path: Path
) -> None:
    (tmp_path / "t.py").write_text(DAEMON)
    process = await launch(adopting, "python3 t.py clean", tmp_path)
    await asyncio.wait_for(process.ended, WAIT_S)
    daemon = int((tmp_path / "daemon").read_text())

    assert adopting.processes.kill_orphans(None) == 1

    wait_killed(daemon)


@pytest.mark.parametrize(
    ("variables", "killed"),
    [({}, 1), ({MOUNT_VARIABLE: MOUNT_MARK}, 0), ({MOUNT_VARIABLE: "1"}, 1)],
    ids=["of a trial", "of a mount", "of a trial that claims to be one"],
)
async def test_daemon_of_a_mounted_storage_is_no_orphan(
    adopting: Stage, tmp_path: Path, variables: dict[str, str], killed: int
) -> None:
    (tmp_path / "t.py").write_text(DAEMON)
    # Its parent ends once the daemon is adopted, as that of blobfuse2 does.
    subprocess.run(  # noqa: ASYNC221 - milliseconds
        [sys.executable, "t.py"], cwd=tmp_path, check=True, env={**os.environ, **variables}
    )
    daemon = int((tmp_path / "daemon").read_text())

    found = adopting.processes.kill_orphans(None)

    os.kill(daemon, signal.SIGKILL)
    wait_killed(daemon)
    assert found == killed


SUBREAPER_DAEMON = """
import ctypes, os, sys, time
def leave(name, work):
    if os.fork() == 0:
        os.setsid()
        with open(name + ".new", "w") as file:
            file.write(str(os.getpid()))
        os.rename(name + ".new", name)
        work()
        os.execve("/bin/sleep", ["sleep", "600"], {})
def adopt():
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    if os.fork() == 0:
        leave("child", lambda: None)
        os._exit(0)
    while not os.path.exists("child"):
        time.sleep(0.001)
leave("daemon", adopt)
while not os.path.exists("child"):
    time.sleep(0.001)
"""


async def test_daemon_that_adopts_its_own_descendants_is_killed_with_them(
    adopting: Stage, tmp_path: Path
) -> None:
    (tmp_path / "t.py").write_text(SUBREAPER_DAEMON)
    process = await launch(adopting, "python3 t.py", tmp_path)
    await asyncio.wait_for(process.ended, WAIT_S)

    assert adopting.processes.kill_orphans(None) == 2

    wait_killed(int((tmp_path / "daemon").read_text()))
    wait_killed(int((tmp_path / "child").read_text()))


async def test_daemon_older_than_the_trials_that_run_is_an_orphan(
    adopting: Stage, tmp_path: Path
) -> None:
    (tmp_path / "t.py").write_text(DAEMON)
    process = await launch(adopting, "python3 t.py clean", tmp_path)
    await asyncio.wait_for(process.ended, WAIT_S)
    daemon = read_entry(int((tmp_path / "daemon").read_text()))
    assert daemon is not None

    assert adopting.processes.kill_orphans(daemon.start_time) == 0
    assert adopting.processes.kill_orphans(daemon.start_time + 1) == 1

    wait_killed(daemon.pid)


@pytest.mark.parametrize("command", ["python3 t.py", "python3 t.py; true"])
async def test_starter_that_a_trial_has_stopped_goes_on(
    stage: Stage, tmp_path: Path, command: str
) -> None:
    stop = "import os, signal; os.kill({}, signal.SIGSTOP)"
    parent = "os.getppid()" if command == "python3 t.py" else STARTER_OF_SHELL
    (tmp_path / "t.py").write_text(stop.format(parent))
    process = await launch(stage, command, tmp_path)
    leader = process.identity.pid
    await until_zombie(leader)

    stage.processes.continue_stopped()

    assert await asyncio.wait_for(process.ended, WAIT_S) == 0


async def test_running_trials_and_servers_are_no_orphans(adopting: Stage, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("import time; time.sleep(600)")
    running = [
        await launch(adopting, "python3 t.py", tmp_path, "warm"),
        await launch(adopting, "sleep 600", tmp_path, "plain"),
        await launch(adopting, "sleep 600", tmp_path, "alone", isolated=True),
    ]

    assert adopting.processes.kill_orphans(None) == 0
    assert not any(process.ended.done() for process in running)


async def test_isolated_trial_that_kills_its_starter_ends_no_other(
    stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / "t.py").write_text("import time; time.sleep(600)")
    others = [
        await launch(stage, "python3 t.py", tmp_path, "warm"),
        await launch(stage, "sleep 600", tmp_path, "plain"),
    ]

    process = await launch(stage, "kill -9 $PPID; sleep 600", tmp_path, "killer", isolated=True)

    assert await asyncio.wait_for(process.ended, WAIT_S) is None
    assert not any(other.ended.done() for other in others)
    again = await launch(stage, "true", tmp_path, "next", isolated=True)
    assert await asyncio.wait_for(again.ended, WAIT_S) == 0


async def test_end_of_a_starter_is_passed_on(stage: Stage, tmp_path: Path) -> None:
    begun: list[ProcessIdentity] = []
    ended: asyncio.Queue[ProcessIdentity] = asyncio.Queue()
    stage.processes = LocalProcesses(
        None, begun.append, os.getpid(), on_server_end=ended.put_nowait
    )

    process = await launch(stage, "true", tmp_path, isolated=True)
    await asyncio.wait_for(process.ended, WAIT_S)

    assert [await asyncio.wait_for(ended.get(), WAIT_S)] == begun


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_processes_that_start_trials_outlive_the_end_of_a_session(
    stage: Stage, tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "t.py").write_text("import time; time.sleep(600)")
    running = [
        await launch(stage, "python3 t.py", tmp_path, "warm"),
        await launch(stage, "sleep 600", tmp_path, "plain"),
    ]
    servers = [server.pid for server in stage.servers]

    for pid in servers:
        os.kill(pid, number)
    for process in running:
        os.kill(process.identity.pid, signal.SIGTERM)

    ends = [await asyncio.wait_for(process.ended, WAIT_S) for process in running]
    assert ends == [signal.SIGTERM, signal.SIGTERM]
    assert await stage.run("true", tmp_path, BASE) == (False, 0)


async def test_interpreter_that_has_worked_is_replaced_after_each_accident(
    stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / "t.py").write_text("pass")

    for count in range(1, 5):
        assert await stage.run("python3 t.py", tmp_path, BASE) == (True, 0)
        assert len(stage.servers) == count
        os.kill(stage.servers[-1].pid, signal.SIGKILL)
        await asyncio.wait_for(until_no_interpreter(stage), WAIT_S)


async def until_no_interpreter(stage: Stage) -> None:
    while True:
        if not stage.processes.warm_count:
            return
        await asyncio.sleep(0.001)  # another process: nothing to await here


async def test_trials_of_one_interpreter_have_their_own_environments(
    stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / "t.py").write_text(
        "import os, sys; sys.exit(10 * int(os.environ.get('A', 0)) + int(os.environ.get('B', 0)))"
    )

    ends = [
        await stage.run("python3 t.py", tmp_path, base(**variables))
        for variables in ({"A": "1"}, {"B": "2"}, {"A": "3", "B": "4"}, {})
    ]

    assert ends == [(True, status << 8) for status in (10, 2, 34, 0)]
    assert len(stage.servers) == 1


async def test_interpreter_with_a_trial_is_not_idle(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("import time; time.sleep(600)")
    process = await launch(stage, "python3 t.py", tmp_path)

    stage.processes.release_idle(0)

    assert stage.processes.warm_count == 1
    assert not process.ended.done()


@pytest.mark.parametrize("ends", [False, True], ids=["goes on", "ends"])
async def test_released_folder_keeps_interpreters_whose_trials_go_on(
    stage: Stage, tmp_path: Path, ends: bool
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for folder in (tmp_path, other):
        (folder / "t.py").write_text("import time; time.sleep(600)")
    process = await launch(stage, "python3 t.py", tmp_path)
    await launch(stage, "python3 t.py", other)

    stage.processes.release(str(tmp_path), [process.identity.pid] if ends else [])

    assert stage.processes.warm_count == (1 if ends else 2)
    assert not process.ended.done()
    await stage.processes.aclose()
    assert process.ended.done()
    assert stage.processes.warm_count == 0


async def test_released_folder_is_used_again(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("pass")
    for _ in range(2):
        assert await stage.run("python3 t.py", tmp_path, BASE) == (True, 0)
        assert await stage.run("exit 3", tmp_path, BASE) == (False, 3 << 8)

        stage.processes.release(str(tmp_path))

        assert stage.processes.warm_count == 0
    assert len(stage.servers) == 3  # two interpreters and one spawner


async def test_interpreter_is_looked_for_again_after_a_release(
    stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / "t.py").write_text("pass")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    results = [await stage.run("python3.99 t.py", tmp_path, environment)]
    (tmp_path / "python3.99").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / "python3.99").chmod(0o755)

    results.append(await stage.run("python3.99 t.py", tmp_path, environment))
    stage.processes.release("another folder")
    results.append(await stage.run("python3.99 t.py", tmp_path, environment))
    stage.processes.release(str(tmp_path))
    results.append(await stage.run("python3.99 t.py", tmp_path, environment))

    assert results == [(False, 127 << 8), (False, 0), (False, 0), (True, 0)]


async def test_isolated_trial_that_cannot_start_leaves_no_starter(
    stage: Stage, tmp_path: Path
) -> None:
    ended: list[ProcessIdentity] = []
    begun: list[ProcessIdentity] = []
    stage.processes = LocalProcesses(None, begun.append, os.getpid(), on_server_end=ended.append)

    with pytest.raises(LaunchError):
        await launch(stage, "true", tmp_path / "missing", isolated=True)

    assert len(begun) == 1
    assert ended == begun


@pytest.mark.parametrize("command", ["python3 t.py", "sleep 600"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_trial_is_ended_by_a_signal(
    stage: Stage, tmp_path: Path, command: str, number: signal.Signals
) -> None:
    (tmp_path / "t.py").write_text("import time; time.sleep(600)")
    process = await launch(stage, command, tmp_path)
    assert stage.processes.has_leftovers(process)
    end = stage.processes.terminate if number == signal.SIGTERM else stage.processes.kill

    end(process, "token of t")

    assert await asyncio.wait_for(process.ended, WAIT_S) == number
    assert not stage.processes.has_leftovers(process)
    assert stage.processes.kill_orphans(None) == 0


async def test_end_of_an_adopted_trial_is_passed_to_its_starter(
    stage: Stage, tmp_path: Path
) -> None:
    plain = await launch(stage, "sleep 600", tmp_path, "plain")
    alone = await launch(stage, "sleep 600", tmp_path, "alone", isolated=True)

    for status, process in enumerate((plain, alone)):
        stage.processes.orphan_ended(process.identity.pid, status << 8)
        assert await asyncio.wait_for(process.ended, WAIT_S) == status << 8


async def test_closed_launcher_has_ended_all_trials_and_starters(
    stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / "t.py").write_text("import time; time.sleep(600)")
    trials = [
        await launch(stage, "python3 t.py", tmp_path, "warm"),
        await launch(stage, "sleep 600", tmp_path, "plain"),
        await launch(stage, "sleep 600", tmp_path, "alone", isolated=True),
    ]

    await stage.processes.aclose()

    assert [process.ended.done() for process in trials] == [True] * 3
    assert [identity_of(server.pid) for server in stage.servers] == [None] * 3
    assert await stage.run("true; exit 0", tmp_path, BASE) == (False, 0)


async def test_command_line_of_a_warm_trial_is_the_one_that_was_written(
    stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / "t.py").write_text(
        "import json, sys\n"
        "words = open('/proc/self/cmdline').read().rstrip('\\0')\n"
        "json.dump([words, sys.stdout.write_through], open('shown', 'w'))\n"
    )
    shown = []
    for command in ("python3 t.py a", "python3 -u t.py"):
        assert await stage.run(command, tmp_path, BASE) == (True, 0)
        shown.append(json.loads((tmp_path / "shown").read_text()))

    assert shown == [["python3 t.py a", False], ["python3 -u t.py", True]]


async def test_waiters_know_the_ends_of_trials_when_the_launcher_is_closed(
    stage: Stage, tmp_path: Path
) -> None:
    process = await launch(stage, "sleep 600", tmp_path)
    known: list[asyncio.Future[int | None]] = []
    process.ended.add_done_callback(known.append)

    await stage.processes.aclose()

    assert known == [process.ended]
