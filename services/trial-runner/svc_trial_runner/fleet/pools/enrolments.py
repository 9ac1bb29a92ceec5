"""Use case: machines on which people start an agent enrol in a pool."""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from svc_common.access.failure_limit import FailureLimit
from svc_common.access.front_addresses import counted_address
from svc_common.clock import Clock, SteadyClock
from svc_common.errors import (
    InvalidArgumentError,
    PermissionDeniedError,
    ServiceError,
    UnavailableError,
)
from svc_common.logs import get_logger
from svc_common.messaging.ports import Bus, LastValue
from svc_common.subjects import (
    ALL_POOL_INVITATIONS,
    pool_front_subject,
    pool_of_subject,
)
from svc_common.tasks import TaskOwner, wait_first
from svc_trial_runner.enrolment import Enrolled, EnrolmentRequest, Refused, secret_hash
from svc_trial_runner.fleet.converters import front_to_bytes, invitations_from_bytes
from svc_trial_runner.fleet.domain.agents import AgentName
from svc_trial_runner.fleet.domain.invitations import (
    Invitation,
    JoinedMachine,
    RepetitionLimit,
    admit,
    machine_of,
)
from svc_trial_runner.fleet.domain.needs import JOINED_PLATFORM, PoolNeed
from svc_trial_runner.fleet.domain.versions import version_warning
from svc_trial_runner.fleet.ports import (
    CredentialStore,
    FrontEndpoint,
    FrontRegistry,
    JoinedMachines,
    PlatformError,
)

RETRY_S: Final = 5.0
"""Pause after a message that the bus, or a record that the disk, did not take."""


class JoinablePool(Protocol):
    """Interface of a pool that machines can join: its current need, and adding an agent."""

    @property
    def need(self) -> PoolNeed:
        """Current need of the pool: trials, limits and platforms."""
        ...

    async def enrol(self, slots: int, machine: str, replaced: int | None) -> AgentName:
        """Add an agent that a person has started; return its name once the bus has stored it."""
        ...


@dataclass(frozen=True, slots=True)
class EnrolmentDependencies:
    """Dependencies of enrolments: bus, credentials, front, machines, clock, version."""

    bus: Bus
    credentials: CredentialStore
    front: FrontRegistry
    machines: JoinedMachines
    clock: Clock
    version: str
    """Of NNI in the installation."""


class Enrolments:
    """Use case that follows invitations, opens the TLS front for them, and admits machines.

    Args:
        dependencies: bus, credentials, front and record of machines.
    """

    def __init__(self, dependencies: EnrolmentDependencies) -> None:
        self._dependencies = dependencies
        self._invitations: dict[str, list[Invitation]] = {}
        self._expired: dict[str, set[str]] = {}
        """Ids of invitations that were written down as expired, by pool."""
        self._woken = asyncio.Event()
        self._failures = FailureLimit()
        self._repetitions = RepetitionLimit()
        self._steady_clock = SteadyClock(dependencies.clock)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._find: Callable[[str], JoinablePool | None] = lambda _: None
        self._changed: Callable[[str], None] = lambda _: None
        self._publishing = asyncio.Lock()
        self._tasks = TaskOwner(_failed)

    def attach(
        self, find: Callable[[str], JoinablePool | None], changed: Callable[[str], None]
    ) -> None:
        """Set the callbacks that find a pool's controller and handle changes of invitations."""
        self._find, self._changed = find, changed

    def is_joinable(self, pool: str) -> bool:
        """Return whether machines were ever invited to a pool, so that it may have agents."""
        return pool in self._invitations

    def forget(self, pool: str) -> None:
        """Drop invitations and locks of a pool that is closed and clean."""
        self._invitations.pop(pool, None)
        self._expired.pop(pool, None)
        self._locks.pop(pool, None)

    async def restore(self) -> None:
        """Read all invitations, and which have expired; call before pools' needs are read."""
        for value in await self._dependencies.bus.last_values.read(ALL_POOL_INVITATIONS):
            pool = self._handle(value)
            if pool and pool not in self._expired:
                self._expired[pool] = await self._read_expired(pool)

    async def _read_expired(self, pool: str) -> set[str]:
        try:
            return await self._dependencies.machines.expired(pool)
        except PlatformError as error:
            get_logger().error("invitations count as expired", pool=pool, error=error.message)
            return {one.id for one in self._invitations[pool]}

    async def run(self) -> None:
        """Follow invitations for ever: note expiries, open a pool's front, publish its address."""
        self._tasks.start(self._watch_expiry(), "expiry of invitations")
        last_values = self._dependencies.bus.last_values
        async with aclosing(last_values.follow(ALL_POOL_INVITATIONS)) as values:
            async for value in values:
                pool = self._handle(value)
                if pool:
                    self._changed(pool)
                    self._tasks.start(self.publish_front(pool), f"front of {pool}")

    async def aclose(self) -> None:
        """End all tasks. May be called twice."""
        await self._tasks.aclose()

    async def enrol(self, request: EnrolmentRequest, address: str) -> Enrolled | Refused:
        """Enrol a machine: return its credentials or `Refused`; count failures by address.

        Idempotency: a machine has one agent; its second enrolment revokes the first one's
        credentials, so a repetition of a request whose answer was lost does no harm.

        Args:
            request: of the machine.
            address: of the machine; wrong words are limited by it.
        """
        now_s = self._dependencies.clock.monotonic_s()
        counted = counted_address(address)
        try:
            self._failures.check(counted, None, now_s)
            async with self._locks[request.pool if request.pool in self._invitations else ""]:
                answer = await self._enrol(request)
        except PermissionDeniedError as error:
            self._failures.failed(counted, now_s)
            self._woken.set()  # the word may have expired by a clock that was set ahead
            get_logger().warning(
                "enrolment refused", pool=request.pool[:80], address=address, reason=error.message
            )
            return Refused(error.message, "ask for another word: nnictl runner invite")
        except ServiceError as error:
            get_logger().warning(
                "machine not enrolled",
                pool=request.pool[:80],
                address=address,
                reason=error.message,
            )
            return Refused(error.message)
        get_logger().info("agent enrolled", agent=answer.name, address=address)
        return answer

    async def _enrol(self, request: EnrolmentRequest) -> Enrolled:
        shared = self._dependencies
        pool = self._find(request.pool)
        invitations = self._invitations.get(request.pool, [])
        machine = hashlib.sha256(request.machine_id.encode()).hexdigest()
        known = await shared.machines.of_pool(request.pool) if invitations else []
        invitation = admit(
            request.pool,
            invitations,
            known,
            secret_hash(request.secret),
            machine,
            self._now(),
            self._expired.get(request.pool, ()),
        )
        warning = version_warning(shared.version, request.version)
        if pool is None:
            raise UnavailableError(f"pool {request.pool} is not open yet; try again in a moment")
        _check_open(pool, request.pool)
        before = machine_of(known, machine)
        if before is not None:
            self._repetitions.check(machine, shared.clock.monotonic_s())
        number = None if before is None else before.number
        name = await pool.enrol(request.slots, request.host_name, number)
        record = JoinedMachine(
            machine, name.number, request.slots, request.host_name, invitation.id
        )
        await shared.machines.put(request.pool, record)
        if number is not None:
            await shared.credentials.revoke([AgentName(name.installation, name.pool, number)])
        issued = await shared.credentials.issue(name)
        try:
            _check_open(pool, request.pool)
        except ServiceError:  # closed meanwhile: its cleaning may not have known this agent
            await shared.credentials.revoke([name])
            raise
        return Enrolled(
            str(name),
            issued.bus_user,
            shared.version,
            bus_password=issued.bus_password,
            manager_token=issued.manager_token,
            warning=warning,
        )

    async def note_expired(self) -> float | None:
        """Store newly expired invitations; return the seconds until the next expiry; None: none.

        They stay expired in a fleet that starts again with a clock that was set back. None: no
        invitation is valid.
        """
        now = self._now()
        delays = []
        for pool, invitations in list(self._invitations.items()):
            known = self._expired.get(pool, set())
            over = {one.id for one in invitations if one.id in known or one.expires_at <= now}
            delays += [
                (one.expires_at - now).total_seconds() for one in invitations if one.id not in over
            ]
            if over == known:
                continue
            try:
                await self._dependencies.machines.put_expired(pool, over)
            except PlatformError as error:
                get_logger().warning("expiry not written", pool=pool, error=error.message)
                delays.append(RETRY_S)
            else:
                self._expired[pool] = over
        return min(delays, default=None)

    async def _watch_expiry(self) -> None:
        while True:
            self._woken.clear()
            delay_s = await self.note_expired()
            if delay_s is None:
                await self._woken.wait()
            else:
                await wait_first(self._woken.wait(), self._dependencies.clock.sleep(delay_s))

    def _now(self) -> datetime:
        """Return the time of day, which does not follow a clock that is set back."""
        return max(self._dependencies.clock.now(), self._steady_clock.now())

    def _handle(self, value: LastValue) -> str:
        """Replace the invitations of a pool; return its name, empty if the message is none."""
        try:
            pool = pool_of_subject(value.subject)
            self._invitations[pool] = invitations_from_bytes(value.payload)
        except InvalidArgumentError as error:
            get_logger().error("invitations refused", subject=value.subject, error=error.message)
            return ""
        self._woken.set()
        return pool

    async def publish_front(self, pool: str) -> None:
        """Open the TLS front for a pool with a valid invitation; publish its address or the error.

        Nothing is opened if no invitation is valid: for its agents, a pool's platform opens it.
        """
        shared = self._dependencies
        now, expired = self._now(), self._expired.get(pool, set())
        if all(
            one.expires_at <= now or one.id in expired for one in self._invitations.get(pool, [])
        ):
            return
        endpoint: FrontEndpoint | PlatformError
        try:
            endpoint = await shared.front.of_platform(pool, JOINED_PLATFORM).open()
        except PlatformError as error:
            endpoint = error
        async with self._publishing:  # calls for one subject must not overlap
            await self._publish_endpoint(pool, endpoint)

    async def _publish_endpoint(self, pool: str, endpoint: FrontEndpoint | PlatformError) -> None:
        shared = self._dependencies
        while True:
            message = front_to_bytes(pool, endpoint, self._invitations.get(pool, []))
            try:
                await shared.bus.last_values.publish(pool_front_subject(pool), message)
            except ServiceError as error:
                get_logger().warning("front not published", pool=pool, error=error.message)
                await shared.clock.sleep(RETRY_S)
            else:
                return


def _check_open(pool: JoinablePool, name: str) -> None:
    """Raise ServiceError if a pool is closed or drains, so that no agent may join.

    Raises:
        ServiceError: it is closed or drains.
    """
    if pool.need.closed or pool.need.draining:
        raise ServiceError(f"pool {name} is being closed, it takes no more agents")


def _failed(name: str, error: BaseException) -> None:
    get_logger().error("task failed", task=name, exc_info=error)
