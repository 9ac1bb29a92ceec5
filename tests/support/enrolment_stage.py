"""Enrolments over a real TLS front on loopback, with an in-memory bus and credentials."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nni_proto.runner.v1 import invitation_service_pb2
from svc_common.clock import ManualClock
from svc_common.messaging.memory import InMemoryBus
from svc_common.messaging.memory_broker import InMemoryBroker
from svc_common.subjects import pool_invitations_subject
from svc_trial_runner.enrolment import (
    ENROL_PROTOCOL,
    EnrolmentRequest,
    EnrolmentWord,
    authority_fingerprint,
    secret_hash,
)
from svc_trial_runner.fleet.adapters.front.enrolment_endpoint import EnrolmentEndpoint
from svc_trial_runner.fleet.adapters.front.tls_front import TlsFront
from svc_trial_runner.fleet.adapters.joined.machines import DirectoryJoinedMachines
from svc_trial_runner.fleet.domain.agents import AgentName
from svc_trial_runner.fleet.domain.needs import PoolNeed
from svc_trial_runner.fleet.pools.enrolments import EnrolmentDependencies, Enrolments
from svc_trial_runner.fleet.ports import FrontEndpoint
from tests.support.fleet_platforms import InMemoryCredentials
from tests.support.tls_fronts import tls_front

INSTALLATION = "0123abcd"
POOL = "desks"
VERSION = "4.2.1"
START = datetime(2026, 11, 27, 12, tzinfo=UTC)


@dataclass
class CountedPool:
    """Pool that names the agents that enrol, without a control loop."""

    need: PoolNeed = field(default_factory=lambda: PoolNeed(POOL))
    enrolled: list[tuple[int, str, int | None]] = field(default_factory=list)

    async def enrol(self, slots: int, machine: str, replaced: int | None) -> AgentName:
        """Return the next name."""
        self.enrolled.append((slots, machine, replaced))
        return AgentName(INSTALLATION, POOL, len(self.enrolled))


@dataclass
class EnrolmentStage:
    """Open front with enrolments, and what a test looks at."""

    enrolments: Enrolments
    bus: InMemoryBus
    clock: ManualClock
    credentials: InMemoryCredentials
    machines: DirectoryJoinedMachines
    pool: CountedPool
    front: TlsFront
    endpoint: FrontEndpoint

    async def invite(
        self, use_limit: int = 1, valid: timedelta = timedelta(hours=1), pool: str = POOL
    ) -> EnrolmentWord:
        """Make the only invitation of a pool; return its word once the fleet has read it."""
        word = EnrolmentWord.new(authority_fingerprint(self.endpoint.authority))
        await self.invite_again(word, use_limit, valid, pool)
        return word

    async def invite_again(
        self,
        word: EnrolmentWord,
        use_limit: int = 1,
        valid: timedelta = timedelta(hours=1),
        pool: str = POOL,
    ) -> None:
        """Make a word the only invitation of a pool; return once the fleet has read it."""
        digest = secret_hash(word.secret)
        one = invitation_service_pb2.Invitation(id=digest[:8], sha256=digest, use_limit=use_limit)
        one.expires_at.FromDatetime(self.clock.now() + valid)
        message = invitation_service_pb2.PoolInvitations(pool=pool, invitations=[one])
        await self.publish(message)

    async def publish(self, message: invitation_service_pb2.PoolInvitations) -> None:
        """Publish invitations; return once the fleet has read them."""
        subject = pool_invitations_subject(message.pool)
        await self.bus.last_values.publish(subject, message.SerializeToString())
        await self.enrolments.restore()


def enrolment_request(
    word: EnrolmentWord, machine: str = "one", pool: str = POOL, version: str = VERSION
) -> EnrolmentRequest:
    """Return the request of a machine with two slots."""
    return EnrolmentRequest(word.secret, pool, machine, f"host-{machine}", version, slots=2)


@asynccontextmanager
async def enrolment_stage(folder: Path, version: str = VERSION) -> AsyncIterator[EnrolmentStage]:
    """Yield enrolments of one pool, in an installation of a version, behind an open front."""
    clock, bus = ManualClock(START), InMemoryBus(InMemoryBroker())
    credentials, pool = InMemoryCredentials(), CountedPool()
    machines = DirectoryJoinedMachines(folder / "pools")
    async with tls_front(folder, {}) as front:
        enrolments = Enrolments(
            EnrolmentDependencies(bus, credentials, front, machines, clock, version)
        )
        enrolments.attach({POOL: pool}.get, lambda _: None)
        front.add_route(ENROL_PROTOCOL, EnrolmentEndpoint(enrolments.enrol).serve)
        endpoint = await front.open_for(f"{POOL}/joined")
        try:
            yield EnrolmentStage(
                enrolments, bus, clock, credentials, machines, pool, front, endpoint
            )
        finally:
            await enrolments.aclose()


def host_and_port(endpoint: FrontEndpoint) -> tuple[str, int]:
    """Return host and port of a front."""
    host, _, port = endpoint.address.rpartition(":")
    return host, int(port)
