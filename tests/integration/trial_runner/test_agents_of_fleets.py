"""Agent that a fleet has started: through forwarded sockets, with nothing but its settings."""

import asyncio
import io
import os
import signal
import sys
import tarfile
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import svc_trial_runner
from nni_proto.common.v1 import value_pb2
from svc_common.messaging.memory import InMemoryBus
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.messaging.permissions import manager_user, runner_user, users_block
from svc_common.storage.memory import InMemoryBlobStore
from svc_trial_runner.agent.silence import SILENCE_EXIT_CODE
from svc_trial_runner.agent_settings import (
    AgentSettings,
    ConnectionKind,
    ConnectionSettings,
    write_agent_settings,
)
from tests.integration.trial_runner.harness import (
    WAIT_S,
    ManagerSide,
    until_dead,
    until_true,
    until_written,
)
from tests.support.byte_service import byte_service
from tests.support.forward import Forward
from tests.support.servers import NatsServer, nats_server

NAME = "nni-0123abcd-local-0"
POOL = "local"
BUNDLE = str(Path(svc_trial_runner.__file__).parents[1])
USERS = users_block([(manager_user(), "m1"), (runner_user(NAME, POOL, NAME), "a1")])


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[NatsServer]:
    with nats_server(tmp_path / "nats", more=USERS) as server:
        yield server


@pytest.fixture
def sockets() -> Iterator[Path]:
    """Folder with a short path, as addresses of sockets have to be."""
    with tempfile.TemporaryDirectory(prefix="nni-") as name:
        yield Path(name)


@dataclass
class Fleet:
    """Everything that an agent of a fleet meets, and the agent."""

    folder: Path
    forward: Forward
    blobs: InMemoryBlobStore
    manager: ManagerSide
    process: asyncio.subprocess.Process | None = None

    @property
    def home(self) -> Path:
        return self.folder / "user/.nni/agents" / NAME

    @property
    def log(self) -> str:
        return (self.folder / "agent.log").read_text()

    async def start(self, **changes: Any) -> None:
        """Write the settings and start the agent, as a platform does."""
        settings = AgentSettings(
            name=NAME,
            pool=POOL,
            platform="remote",
            home=f"~/.nni/agents/{NAME}",
            connection=ConnectionSettings(ConnectionKind.SOCKETS, folder=str(self.forward.folder)),
            bus_user=NAME,
            bus_password="a1",
            manager_token="t1",
        )
        (self.folder / "user").mkdir(exist_ok=True)
        file = self.folder / "settings.json"
        file.touch(0o600)
        file.write_bytes(write_agent_settings(replace(settings, **changes)))
        with (self.folder / "agent.log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "svc_trial_runner",
                "--settings",
                str(file),
                env={
                    "PATH": os.environ["PATH"],
                    "HOME": str(self.folder / "user"),
                    "PYTHONPATH": BUNDLE,
                    "NNI_RUNNER_FAKE_GPUS": "0",
                },
                cwd=self.folder,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    async def ended(self) -> int:
        assert self.process is not None
        return await asyncio.wait_for(self.process.wait(), WAIT_S)

    async def archive(self, **scripts: str) -> value_pb2.BlobRef:
        """Store scripts as a code archive; return it."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            for name, text in scripts.items():
                member = tarfile.TarInfo(f"{name}.py")
                member.size = len(text.encode())
                tar.addfile(member, io.BytesIO(text.encode()))
        key = await self.blobs.put(buffer.getvalue())
        return value_pb2.BlobRef(sha256=key.removeprefix("sha256/"))

    async def publish(self, trial_id: str, command: str, **fields: Any) -> None:
        spec = self.manager.spec(command, outputs_travel=True, **fields)
        spec.experiment_directory = ""
        await self.manager.publish(trial_id, spec)

    async def output(self, trial_id: str) -> str:
        """Wait until the output of a trial is stored; return its stdout."""
        name = f"output/{self.manager.experiment_id}/{trial_id}/1"
        async with asyncio.timeout(WAIT_S):
            while not await self.blobs.exists(f"{name}/files.tar"):  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.01)
        archive = await self.blobs.get(f"{name}/files.tar")
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            stdout = tar.extractfile("stdout")
            assert stdout is not None
            return stdout.read().decode()


@asynccontextmanager
async def opened(folder: Path, server: NatsServer, sockets: Path) -> AsyncIterator[Fleet]:
    login = NatsSettings(server.url, user="manager", password="m1", name="test manager")
    blobs = InMemoryBlobStore()
    async with (
        NatsBus(login) as bus,
        InMemoryBus() as events,
        byte_service(events, blobs) as address,
    ):
        manager = ManagerSide(bus, folder)
        listening = asyncio.create_task(manager.listen())
        forward = Forward(sockets, server.port, int(address.rpartition(":")[2]))
        await forward.connect()
        fleet = Fleet(folder, forward, blobs, manager)
        try:
            yield fleet
        finally:
            if fleet.process is not None and fleet.process.returncode is None:
                fleet.process.send_signal(signal.SIGTERM)
                await fleet.ended()
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            await forward.cut()


SHOWN = """
import os, sys, nni
nni.get_next_parameter()
nni.report_final_result(1.5)
print(os.environ["NNI_PLATFORM"], os.environ.get("MODULE"), os.environ.get("MINE"))
print(os.environ["PYTHONPATH"])
print(sys.path[-1])
"""


async def test_trial_gets_code_api_and_environment_and_its_output_travels(
    tmp_path: Path, bus: NatsServer, sockets: Path
) -> None:
    async with opened(tmp_path, bus, sockets) as fleet:
        code = await fleet.archive(t=SHOWN)
        await fleet.start(setup_lines=("export MODULE=cuda",))

        await fleet.publish("one", "python3 t.py", code_archive=code, environment={"MINE": "yes"})
        started = (await fleet.manager.until("one", "started")).started
        exited = (await fleet.manager.until("one", "exited")).exited
        lines = (await fleet.output("one")).splitlines()

        api = fleet.home / "runner/api"
        assert (exited.exit_code, started.warm) == (0, True), exited.detail
        assert lines == ["remote cuda yes", f"{api}/hook", f"{api}/packages"]
        assert fleet.manager.metrics("one") == [1.5]
        assert not (tmp_path / "settings.json").exists()


async def test_trial_goes_on_over_a_cut_connection_and_a_killed_bus(
    tmp_path: Path, bus: NatsServer, sockets: Path
) -> None:
    async with opened(tmp_path, bus, sockets) as fleet:
        code = await fleet.archive(
            t="import nni, pathlib, time\n"
            "nni.get_next_parameter()\n"
            "for number in range(3):\n"
            "    nni.report_intermediate_result(number)\n"
            f"    while not pathlib.Path('{tmp_path}', f'go{{number}}').exists():\n"
            "        time.sleep(0.01)\n"
            "nni.report_final_result(3)\n"
        )
        await fleet.start()
        await fleet.publish("one", "python3 t.py", code_archive=code)
        await fleet.manager.until("one", "metric")

        await fleet.forward.cut()
        (tmp_path / "go0").touch()
        await fleet.forward.connect()
        async with asyncio.timeout(WAIT_S), fleet.manager.changed:
            await fleet.manager.changed.wait_for(lambda: 1 in fleet.manager.metrics("one"))
        await asyncio.to_thread(bus.kill)
        (tmp_path / "go1").touch()
        await asyncio.to_thread(bus.start)
        (tmp_path / "go2").touch()
        exited = (await fleet.manager.until("one", "exited")).exited
        await fleet.output("one")  # the manager, too, is reached through the new connection

        assert exited.exit_code == 0
        assert fleet.manager.metrics("one") == [0, 1, 2, 3]
        assert "lost" not in fleet.manager.kinds("one")


async def test_reports_of_a_trial_wait_for_a_stopped_bus_to_continue(
    tmp_path: Path, bus: NatsServer, sockets: Path
) -> None:
    async with opened(tmp_path, bus, sockets) as fleet:
        code = await fleet.archive(
            t="import nni, pathlib, time\n"
            "nni.get_next_parameter()\n"
            "nni.report_intermediate_result(0)\n"
            f"while not pathlib.Path('{tmp_path}/go').exists():\n"
            "    time.sleep(0.01)\n"
            "nni.report_final_result(1)\n"
            f"pathlib.Path('{tmp_path}/reported').write_text('yes')\n"
        )
        await fleet.start()
        await fleet.publish("one", "python3 t.py", code_archive=code)
        await fleet.manager.until("one", "metric")

        bus.send_signal(signal.SIGSTOP)
        try:
            (tmp_path / "go").touch()
            await until_written(tmp_path / "reported")
        finally:
            bus.send_signal(signal.SIGCONT)
        exited = (await fleet.manager.until("one", "exited")).exited

        assert exited.exit_code == 0
        assert fleet.manager.metrics("one") == [0, 1]


async def test_silent_bus_ends_agent_and_trial_and_leaves_nothing(
    tmp_path: Path, bus: NatsServer, sockets: Path
) -> None:
    async with opened(tmp_path, bus, sockets) as fleet:
        # Long enough for the first connection on a busy machine.
        await fleet.start(silence_limit_s=5.0, removes_home=True, grace_s=300.0)
        await fleet.publish("one", f"echo $$ >{tmp_path}/pid; sleep 300; true")
        pid = int(await until_written(tmp_path / "pid"))

        await fleet.forward.cut()

        assert await fleet.ended() == SILENCE_EXIT_CODE, fleet.log
        await until_dead(pid)
        await until_true(lambda: not fleet.home.exists())


async def test_agent_that_never_reaches_the_bus_ends_by_silence(
    tmp_path: Path, bus: NatsServer, sockets: Path
) -> None:
    async with opened(tmp_path, bus, sockets) as fleet:
        await fleet.forward.cut()
        await fleet.start(silence_limit_s=0.5)

        assert await fleet.ended() == SILENCE_EXIT_CODE, fleet.log


async def test_second_agent_of_a_name_does_not_start(
    tmp_path: Path, bus: NatsServer, sockets: Path
) -> None:
    async with opened(tmp_path, bus, sockets) as fleet:
        await fleet.start()
        await until_true(lambda: "service ready" in fleet.log)
        first = fleet.process

        await fleet.start()

        assert await fleet.ended() == 1
        assert "another agent of this name" in fleet.log
        fleet.process = first


async def test_failed_line_of_the_platform_is_the_reason_of_the_trial(
    tmp_path: Path, bus: NatsServer, sockets: Path
) -> None:
    async with opened(tmp_path, bus, sockets) as fleet:
        await fleet.start(setup_lines=("module-that-is-missing load cuda",))

        await fleet.publish("one", "true", code_directory="/")
        lost = (await fleet.manager.until("one", "lost")).lost

        assert "module-that-is-missing" in str(lost)


async def test_agent_ends_after_its_last_outputs_are_stored(
    tmp_path: Path, bus: NatsServer, sockets: Path
) -> None:
    async with opened(tmp_path, bus, sockets) as fleet:
        await fleet.start(max_trials=1, removes_home=True)
        command = "head -c 30000000 /dev/zero >$NNI_OUTPUT_DIR/model; echo done"
        await fleet.publish("one", command)

        assert await fleet.ended() == 0

        assert await fleet.blobs.exists(f"output/{fleet.manager.experiment_id}/one/1/files.tar")
    assert not fleet.home.exists()
