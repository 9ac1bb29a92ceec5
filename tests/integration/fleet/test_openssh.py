"""The platform `remote` over OpenSSH's `sshd`: forwards, killed and stopped sessions."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.support.required_platforms import reason_without_openssh, require_platform

if MISSING := reason_without_openssh():
    require_platform(MISSING)

from svc_trial_runner.fleet.adapters.remote.adapter import RemoteAdapter
from svc_trial_runner.fleet.domain.agents import AgentPhase, PlatformAgent
from svc_trial_runner.fleet.testing import agent_name, agent_order
from tests.support.greeters import greetings, open_greeters
from tests.support.openssh_server import OpenSshServer
from tests.support.remote_machines import Machines

ONE = agent_name(1)


class Launched:
    """Agent that runs on a machine with OpenSSH, with forwards to two greeters."""

    def __init__(self, machines: Machines, server: OpenSshServer, adapter: RemoteAdapter) -> None:
        self.machines = machines
        self.server = server
        self.adapter = adapter
        self.sockets = ""

    async def start(self) -> None:
        """Launch the agent, and wait until it runs."""
        await self.adapter.prepare()
        assert await self.adapter.launch([agent_order(ONE)]) == []
        settings = await asyncio.to_thread(self.machines.settings, ONE)
        self.sockets = settings.connection.folder
        await self.until(lambda agent: agent.phase is AgentPhase.RUNNING)

    async def until(self, holds: Callable[[PlatformAgent], bool]) -> None:
        """Wait until the agent has a property."""
        while not holds((await self.adapter.agents())[0]):
            await self.adapter.wait_changed()

    def connection_name(self) -> str:
        """Return the name of the present connection's folder."""
        return (Path(self.sockets) / "current").read_text()


def run(folder: Path, work: Callable[[Launched], Awaitable[None]], extra: str = "") -> None:
    """Run work with a launched agent."""
    machines = Machines(folder)
    server = OpenSshServer(folder, machines.homes[0], machines.key_file, extra)

    async def case() -> None:
        async with asyncio.timeout(60), open_greeters() as endpoints:
            adapter = machines.adapter(entry, endpoints=endpoints)
            launched = Launched(machines, server, adapter)
            try:
                await launched.start()
                await work(launched)
                await adapter.clean()
                assert not Path(launched.sockets).exists()
            finally:
                await adapter.aclose()

    try:
        server.start()
        with machines.known_hosts.open("a") as known:
            key = Path(f"{server.host_key}.pub").read_text()
            known.write(f"[127.0.0.1]:{server.port} {key}\n")
        entry = {
            "host": "127.0.0.1",
            "port": server.port,
            "user": server.user,
            "sshKeyFile": machines.key_file,
        }
        asyncio.run(case())
    finally:
        server.kill()
        machines.close()


@pytest.mark.parametrize("extra", ["", "AllowStreamLocalForwarding no"])
def test_agents_reach_bus_and_manager_over_sockets_or_ports(tmp_path: Path, extra: str) -> None:
    async def work(launched: Launched) -> None:
        assert await greetings(launched.sockets) == ["bus", "manager"]

    run(tmp_path, work, extra)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killed_session_is_opened_again_below_the_running_agent(
    tmp_path: Path, number: signal.Signals
) -> None:
    async def work(launched: Launched) -> None:
        before = launched.connection_name()

        launched.server.signal_sessions(number)
        await launched.until(lambda agent: bool(agent.reason))
        await launched.until(lambda agent: not agent.reason)

        assert launched.connection_name() != before
        assert await greetings(launched.sockets) == ["bus", "manager"]
        launched.machines.kill_agent(ONE)
        await launched.until(lambda agent: agent.phase is AgentPhase.ENDED)

    run(tmp_path, work)


def test_session_that_is_stopped_for_a_while_goes_on(tmp_path: Path) -> None:
    async def work(launched: Launched) -> None:
        before = launched.connection_name()

        launched.server.signal_sessions(signal.SIGSTOP)
        listing = asyncio.create_task(launched.adapter.agents(), name="list during the stop")
        done, _ = await asyncio.wait({listing}, timeout=0.5)
        assert not done
        launched.server.signal_sessions(signal.SIGCONT)

        assert [agent.phase for agent in await listing] == [AgentPhase.RUNNING]
        assert launched.connection_name() == before

    run(tmp_path, work)
