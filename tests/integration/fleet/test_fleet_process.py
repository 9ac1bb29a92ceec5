"""Process of the fleet, with a real bus, its users, and real agents on this machine."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from nni_proto.runner.v1 import pool_pb2
from nni_wire.values import to_value
from svc_common import subjects
from svc_common.credential_channel import CredentialRequest, CredentialServer, IssuedCredentials
from svc_common.errors import ServiceError
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.messaging.permissions import fleet_user, manager_user, runner_user, users_block
from svc_trial_runner.fleet.domain.agents import AgentName
from tests.support.servers import NatsServer, nats_server

WAIT_S = 60.0
INSTALLATION = "0123abcd"
POOL = "exp-e1"
AGENTS = [str(AgentName(INSTALLATION, POOL, number)) for number in range(1, 4)]
USERS = users_block(
    [
        (manager_user(), "m1"),
        (fleet_user(), "f1"),
        *((runner_user(name, POOL, name), f"password of {name}") for name in AGENTS),
    ]
)
RUNNING = pool_pb2.POOL_AGENT_STATE_RUNNING


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[NatsServer]:
    with nats_server(tmp_path / "nats", more=USERS) as server:
        yield server


class Installation:
    """Home of an installation with the fleet's process, and the manager's side of the bus."""

    def __init__(self, home: Path, url: str, manager: NatsBus) -> None:
        self.home = home
        self.url = url
        self.manager = manager
        self.issued: list[str] = []
        self.revoked: set[str] = set()
        self.credentials = CredentialServer()
        self._process: asyncio.subprocess.Process | None = None
        self._sequence = 0

    async def start(self) -> None:
        descriptor = self.credentials.child_end.fileno()
        with (self.home / "fleet.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-P", "-m", "svc_trial_runner.fleet"),
                env={
                    **os.environ,
                    "NNI_HOME": str(self.home),
                    "NNI_NATS_URL": self.url,
                    "NNI_NATS_USER": "fleet",
                    "NNI_NATS_PASSWORD": "f1",
                    "NNI_TOKEN": "t1",
                    "NNI_MANAGER_GRPC": "127.0.0.1:1",
                    "NNI_CREDENTIALS_FD": str(descriptor),
                    "NNI_RUNNER_FAKE_GPUS": "0",
                },
                pass_fds=(descriptor,),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        return await asyncio.wait_for(self._process.wait(), WAIT_S)

    async def handle(
        self, requests: Sequence[CredentialRequest]
    ) -> Sequence[IssuedCredentials | ServiceError | None]:
        """Issue and revoke credentials in place of a supervisor."""
        results: list[IssuedCredentials | ServiceError | None] = []
        for request in requests:
            self.revoked |= set(request.revoke)
            if request.issue is None:
                results.append(None)
            else:
                name, _ = request.issue
                self.issued.append(name)
                results.append(IssuedCredentials(name, f"password of {name}", "token"))
        return results

    async def need(self, waiting: int = 0, *, closed: bool = False, idle_s: int = 60) -> None:
        self._sequence += 1
        message = pool_pb2.PoolNeed(
            pool=POOL,
            waiting_count=waiting,
            concurrency=2,
            closed=closed,
            log_sequence=self._sequence,
        )
        message.platforms.add(platform="local", options=to_value({}))
        message.limits.idle.FromSeconds(idle_s)
        subject = subjects.pool_need_subject(POOL)
        await self.manager.last_values.publish(subject, message.SerializeToString())

    async def state(self, holds: Callable[[pool_pb2.PoolState], bool]) -> pool_pb2.PoolState:
        """Return the first state of the pool that has a property."""
        last = None
        try:
            async with asyncio.timeout(WAIT_S):
                async for value in self.manager.last_values.follow(
                    subjects.pool_state_subject(POOL)
                ):
                    last = pool_pb2.PoolState.FromString(value.payload)
                    if holds(last):
                        return last
        except TimeoutError:
            log = (self.home / "fleet.log").read_text()
            raise AssertionError(f"last state: {last}\n{log[-5000:]}") from None
        raise AssertionError("the bus was closed")


@pytest_asyncio.fixture
async def installation(bus: NatsServer, tmp_path: Path) -> AsyncIterator[Installation]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "installation").write_text(INSTALLATION)
    settings = NatsSettings(bus.url, user="manager", password="m1", name="manager")
    async with NatsBus(settings) as manager:
        await manager.tasks.open_pool(POOL)
        found = Installation(home, bus.url, manager)
        serving = asyncio.ensure_future(found.credentials.serve(found.handle))
        await found.start()
        yield found
        await found.need(closed=True)
        await found.state(lambda state: state.cleaned and state.log_sequence == found._sequence)
        assert await found.end() == 0
        serving.cancel()
        found.credentials.close()


def states(state: pool_pb2.PoolState) -> list[tuple[str, int]]:
    return [(agent.name, agent.state) for agent in state.agents]


async def test_fleet_that_is_killed_keeps_its_agent_and_ends_it_with_the_pool(
    installation: Installation,
) -> None:
    await installation.need(waiting=1)
    await installation.state(lambda state: states(state) == [(AGENTS[0], RUNNING)])
    await installation.end(signal.SIGKILL)
    await installation.start()
    await installation.need(waiting=2)
    await installation.state(
        lambda state: state.log_sequence == 2 and states(state) == [(AGENTS[0], RUNNING)]
    )

    await installation.need(closed=True)
    await installation.state(lambda state: state.cleaned)

    assert installation.issued == [AGENTS[0]]
    assert installation.revoked == {AGENTS[0]}


async def test_idle_agent_leaves_by_itself_when_it_is_asked_to_drain(
    installation: Installation,
) -> None:
    await installation.need(waiting=1, idle_s=1)
    await installation.state(lambda state: states(state) == [(AGENTS[0], RUNNING)])
    await installation.need(idle_s=1)
    await installation.state(lambda state: not state.agents)
    await installation.need(waiting=1, idle_s=1)
    await installation.state(lambda state: states(state) == [(AGENTS[1], RUNNING)])

    assert installation.issued == AGENTS[:2]
    assert AGENTS[0] in installation.revoked
