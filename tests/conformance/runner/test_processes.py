"""Conformance of `ports.Processes`, for warm and plain starts."""

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio

from svc_trial_runner.adapters.agent_folder import trial_sdk_folder
from svc_trial_runner.adapters.local_processes import LocalProcesses
from svc_trial_runner.domain.claims import ProcessIdentity
from svc_trial_runner.domain.command import parse_python_command
from svc_trial_runner.domain.reports import split_wait_status
from svc_trial_runner.ports import LaunchError, LaunchRequest, TrialProcess

WAIT_S = 30.0
PATH = os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin:/usr/bin:/bin"])


@dataclass
class Stage:
    """Launcher under test, and a folder for the scripts."""

    processes: LocalProcesses
    folder: Path
    warm: bool
    servers: list[ProcessIdentity]
    base: Mapping[str, str] = field(default_factory=lambda: {"PATH": PATH, "SHARED": "base"})
    count: int = 0

    async def launch(
        self, script: str, *, arguments: str = "", token: str = "none", **variables: str
    ) -> tuple[TrialProcess, int]:
        """Start a script; return its process and the read end of its stdout."""
        self.count += 1
        name = f"script{self.count}.py"
        (self.folder / name).write_text(script)
        command = f"python3 {name} {arguments}".strip()
        reader, writer = os.pipe()
        try:
            process = await self.processes.launch(
                LaunchRequest(
                    label=f"trial{self.count}",
                    command=command,
                    python=parse_python_command(command),
                    code=str(self.folder),
                    directory=str(self.folder),
                    base=self.base,
                    variables={"NNI_TRIAL_TOKEN": token, **variables},
                    stdout=writer,
                    stderr=writer,
                )
            )
        finally:
            os.close(writer)
        return process, reader

    async def run(self, script: str, arguments: str = "", **variables: str) -> tuple[int, str]:
        """Run a script to its end; return wait status and output."""
        process, reader = await self.launch(script, arguments=arguments, **variables)
        output = await asyncio.to_thread(_read_all, reader)
        status = await asyncio.wait_for(process.ended, WAIT_S)
        assert status is not None
        assert process.warm is self.warm
        return status, output


def _read_all(reader: int) -> str:
    with os.fdopen(reader, "rb") as file:
        return file.read().decode()


def _read_line(reader: int) -> str:
    data = b""
    while not data.endswith(b"\n"):
        data += os.read(reader, 1)
    return data.decode().strip()


@pytest_asyncio.fixture(params=["warm", "plain"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    warm = request.param == "warm"
    servers: list[ProcessIdentity] = []
    processes = LocalProcesses(
        trial_sdk_folder() / "warm.py" if warm else None, servers.append, os.getpid()
    )
    yield Stage(processes, tmp_path, warm, servers)
    await processes.aclose()


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("pass", (0, 0)),
        ("import sys; sys.exit(3)", (3, 0)),
        ("raise ValueError", (1, 0)),
        ("import os; os._exit(7)", (7, 0)),
        ("import os; os.kill(os.getpid(), 9)", (None, 9)),
    ],
)
async def test_end_has_its_wait_status(
    stage: Stage, script: str, expected: tuple[int | None, int]
) -> None:
    status, _ = await stage.run(script)

    assert split_wait_status(status) == expected


async def test_output_arguments_and_folder_are_the_trials_own(stage: Stage) -> None:
    script = "import os, sys; print(sys.argv[1:], os.getcwd())"

    _, output = await stage.run(script, arguments="a --b=c")

    assert output == f"['a', '--b=c'] {stage.folder}\n"


async def test_variables_are_those_of_the_base_and_the_trials(stage: Stage) -> None:
    script = "import os; print(os.environ.get('SHARED'), os.environ.get('MINE'))"

    first = await stage.run(script, MINE="one")
    stage.base = {"PATH": PATH, "OTHER": "set"}
    second = await stage.run(script, MINE="two", SHARED="replaced")
    third = await stage.run(script)

    assert [output for _, output in (first, second, third)] == [
        "base one\n",
        "replaced two\n",
        "None None\n",
    ]


async def test_trial_leads_its_own_session_and_reads_nothing(stage: Stage) -> None:
    script = (
        "import os, sys; print(os.getpid(), os.getpgid(0), os.getsid(0), repr(sys.stdin.read()))"
    )
    process, reader = await stage.launch(script)

    pid, group, session, text = (await asyncio.to_thread(_read_all, reader)).split()

    await asyncio.wait_for(process.ended, WAIT_S)
    assert int(pid) == int(group) == int(session) == process.identity.pid
    assert process.identity.start_time > 0
    assert text == "''"


async def test_many_run_at_once(stage: Stage) -> None:
    results = await asyncio.gather(
        *(stage.run("import os; print(os.environ['N'])", N=str(n)) for n in range(20))
    )

    assert [output for _, output in results] == [f"{n}\n" for n in range(20)]


async def test_term_reaches_the_trial(stage: Stage) -> None:
    script = "import signal; print('up', flush=True); signal.pause()"
    process, reader = await stage.launch(script)
    await asyncio.to_thread(_read_line, reader)

    stage.processes.terminate(process, "none")

    status = await asyncio.wait_for(process.ended, WAIT_S)
    assert status == 15
    os.close(reader)


async def test_kill_reaches_descendants_in_other_sessions(stage: Stage) -> None:
    token = "token-of-the-trial-to-be-killed"
    sleep = shlex.split("setsid sleep 77")
    script = (
        "import signal, subprocess\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"child = subprocess.Popen({sleep!r})\nprint('up', flush=True)\nsignal.pause()\n"
    )
    process, reader = await stage.launch(script, token=token)
    await asyncio.to_thread(_read_line, reader)

    stage.processes.terminate(process, token)
    stage.processes.kill(process, token)
    status = await asyncio.wait_for(process.ended, WAIT_S)

    assert status == 9
    # The pipe ends when its last holder has ended: also the child in its own session.
    await asyncio.wait_for(asyncio.to_thread(_read_all, reader), WAIT_S)


async def test_leftovers_of_the_group_are_seen_and_killed(stage: Stage) -> None:
    script = "import subprocess; subprocess.Popen(['sleep', '78'])"
    process, reader = await stage.launch(script)
    await asyncio.wait_for(process.ended, WAIT_S)

    assert stage.processes.has_leftovers(process)
    stage.processes.kill(process, "none")

    await asyncio.wait_for(asyncio.to_thread(_read_all, reader), WAIT_S)


async def test_death_of_what_starts_trials_ends_them_with_status_unknown(stage: Stage) -> None:
    process, reader = await stage.launch("import signal; signal.pause()")
    (server,) = stage.servers

    os.kill(server.pid, 9)

    assert await asyncio.wait_for(process.ended, WAIT_S) is None
    await asyncio.wait_for(asyncio.to_thread(_read_all, reader), WAIT_S)
    status, output = await stage.run("print('again')")
    assert (status, output) == (0, "again\n")


async def test_missing_folder_is_an_error(stage: Stage) -> None:
    await stage.run("pass")
    stage.folder.joinpath("gone").mkdir()
    request = LaunchRequest(
        label="x",
        command="true",
        python=None,
        code=str(stage.folder),
        directory=str(stage.folder / "nowhere"),
        base=stage.base,
        variables={},
        stdout=1,
        stderr=2,
    )

    with pytest.raises(LaunchError, match="nowhere"):
        await stage.processes.launch(request)


async def test_released_folder_has_no_warm_interpreter(stage: Stage) -> None:
    await stage.run("pass")
    assert stage.processes.warm_count == (1 if stage.warm else 0)

    stage.processes.release(str(stage.folder))

    assert stage.processes.warm_count == 0
    assert (await stage.run("print('again')"))[1] == "again\n"


async def test_interpreter_of_processes_that_end_by_themselves_ends_with_them(
    stage: Stage,
) -> None:
    script = "import os, signal; print(os.getpid(), flush=True); signal.pause()"
    first, reader = await stage.launch(script)
    await asyncio.to_thread(_read_line, reader)
    pid = first.identity.pid

    stage.processes.release(str(stage.folder), {pid + 1})
    assert stage.processes.warm_count == (1 if stage.warm else 0)
    stage.processes.release(str(stage.folder), {pid})

    assert stage.processes.warm_count == 0
    os.kill(pid, signal.SIGKILL)
    assert await asyncio.wait_for(first.ended, WAIT_S) == signal.SIGKILL
    os.close(reader)


async def test_everything_ends_when_it_is_closed(stage: Stage) -> None:
    process, reader = await stage.launch("import signal; signal.pause()")

    await stage.processes.aclose()

    assert await asyncio.wait_for(process.ended, WAIT_S) is None
    await asyncio.wait_for(asyncio.to_thread(_read_all, reader), WAIT_S)
