"""Use cases on pools of the installation: create, update, show, drain, remove."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from secrets import randbelow
from typing import Final
from weakref import WeakValueDictionary

from google.protobuf.message import DecodeError

from nni_proto.runner.v1 import pool_pb2, pool_service_pb2
from nni_wire.pools import LOCAL_PLATFORM, POOL_PLATFORM, broken_name_rule
from svc_common import subjects
from svc_common.clock import Clock
from svc_common.errors import (
    AbortedError,
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from svc_common.logs import get_logger
from svc_common.messaging.ports import LastValues, TaskQueue
from svc_common.pool_secrets import secrets_id_of
from svc_manager.converters.platform_secrets import take_secrets_of
from svc_manager.converters.pools import agent_time, complete_limits, state_from_bytes
from svc_manager.pagination import Page, page_behind
from svc_manager.pagination import page_size as sized
from svc_manager.ports import PlatformChecker, SecretStore

CLEANING_LIMIT: Final = timedelta(seconds=60)
"""Longest wait for the fleet to remove a pool: its agents have 20 s for their last reports. Clients
wait for 2 min."""
_SECRETS_NUMBERS: Final = 2**48
"""Numbers of which each set of secret values gets one at random."""


@dataclass(frozen=True, slots=True)
class _Stored:
    """Definition of a pool as the bus has it."""

    definition: pool_pb2.PoolDefinition
    sequence: int
    """See `LastValue.sequence`."""


class Pools:
    """Use cases on pools of the installation, whose definitions are last values of the bus.

    Changes of one pool do not overlap in this manager. Of two managers that change it at the same
    time one is first; the other one reads it again and applies its change to that.

    Args:
        last_values: definitions, needs and states.
        tasks: queues of the pools.
        secrets: secret values of their platforms.
        checker: asks platforms whether they accept their sections.
        clock: of revisions.
        platforms: those that pools may name.
        limit: longest wait for the fleet.
    """

    def __init__(
        self,
        last_values: LastValues,
        tasks: TaskQueue,
        secrets: SecretStore,
        checker: PlatformChecker,
        clock: Clock,
        platforms: Collection[str],
        limit: timedelta = CLEANING_LIMIT,
    ) -> None:
        self._last_values = last_values
        self._tasks = tasks
        self._secrets = secrets
        self._checker = checker
        self._clock = clock
        self._platforms = [one for one in platforms if one != POOL_PLATFORM]
        self._limit = limit
        self._changes: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def create(self, wanted: pool_pb2.PoolDefinition) -> pool_service_pb2.Pool:
        """Check and create a pool; return it, or an existing one of the same content; else raise.

        Raises:
            AlreadyExistsError: there is another pool of this name.
            FailedPreconditionError: one of this name is being removed.
            InvalidArgumentError: the definition breaks a rule, or a platform refuses its section.
        """
        definition, secrets = self._checked(wanted)
        name = definition.pool

        async def change() -> None:
            stored = await self._find(name)
            if stored is None:
                await self._checker.check(definition.platforms, secrets, "trainingService")
                definition.created_at.FromDatetime(self._clock.now())
                await self._tasks.open_pool(name)
                await self._replace(definition, secrets, None)
            elif stored.definition.removed:
                raise FailedPreconditionError(
                    f"pool {name} is being removed; end that with nnictl pool rm {name}",
                    {"pool": name},
                )
            elif _content(stored.definition) != _content(definition):
                raise AlreadyExistsError("pool", name)

        await self._change(name, change)
        return await self.get(name)

    async def update(self, wanted: pool_pb2.PoolDefinition) -> pool_service_pb2.Pool:
        """Check and replace platforms, secrets and limits of a pool; return it.

        Raises:
            FailedPreconditionError: it is being removed.
            InvalidArgumentError: the definition breaks a rule, or a platform refuses its section.
            NotFoundError: there is no such pool.
        """
        definition, secrets = self._checked(wanted)

        async def change() -> None:
            stored = await self._present(definition.pool)
            await self._checker.check(definition.platforms, secrets, "trainingService")
            definition.draining = stored.definition.draining
            definition.created_at.CopyFrom(stored.definition.created_at)
            await self._replace(definition, secrets, stored)

        await self._change(definition.pool, change)
        return await self.get(definition.pool)

    async def drain(self, name: str, *, undo: bool = False) -> pool_service_pb2.Pool:
        """Drain a pool, so that its agents take no more trials and end, or undo that; return it.

        Raises:
            FailedPreconditionError: it is being removed.
            NotFoundError: there is no such pool.
        """

        async def change() -> None:
            stored = await self._present(name)
            if stored.definition.draining is undo:
                changed = pool_pb2.PoolDefinition()
                changed.CopyFrom(stored.definition)
                changed.draining = not undo
                await self._publish(changed, stored)

        await self._change(name, change)
        return await self.get(name)

    async def remove(self, name: str, *, force: bool = False) -> None:
        """Mark a pool as removed, wait until its platforms are clean, delete it; raise if late.

        Raises:
            FailedPreconditionError: experiments use it, or its platforms are not clean yet, and
                `force` is not set.
            NotFoundError: there is no such pool.
        """
        await self._change(name, lambda: self._remove(name, force=force))

    async def _remove(self, name: str, *, force: bool) -> None:
        stored = await self._find(name)
        if stored is None:
            raise NotFoundError("pool", name)
        users = [user.experiment_id for user in await self._users(name)]
        if users and not force:
            raise FailedPreconditionError(
                f"pool {name} is used by experiment {', '.join(users)}: stop it first, or use "
                "--force; its trials then wait",
                {"pool": name, "experiments": ", ".join(users)},
            )
        if not stored.definition.removed:
            removed = pool_pb2.PoolDefinition()
            removed.CopyFrom(stored.definition)
            removed.removed = True
            await self._publish(removed, stored)
            published = await self._find(name)
            if published is None or not published.definition.removed:
                return  # another manager has removed it meanwhile
            stored = published
        await self._wait_cleaned(name, stored.definition.revision, force=force)
        await self._delete(stored, closes_queue=not users)

    async def _delete(self, stored: _Stored, *, closes_queue: bool) -> None:
        """Delete a removed pool with its secrets, values and queue, and nothing of a later one.

        As soon as the definition is gone, another manager may make a pool of this name. So the
        queue, which has nothing but the name, goes before it, and the rest by id or sequence.
        """
        name = stored.definition.pool
        left = [
            value
            for subject in (
                subjects.pool_state_subject(name),
                subjects.pool_invitations_subject(name),
                subjects.pool_front_subject(name),
            )
            for value in await self._last_values.read(subject)
        ]
        present = await self._find(name)
        if present is None or present.sequence != stored.sequence:
            return  # another manager has removed it meanwhile
        # First: a repetition finds the ids.
        await self._remove_secrets(_secrets_ids(stored.definition))
        if closes_queue:
            await self._tasks.close_pool(name)
        subject = subjects.pool_definition_subject(name)
        await self._last_values.delete(subject, through_sequence=stored.sequence)
        for value in left:
            await self._last_values.delete(value.subject, through_sequence=value.sequence)

    async def clean_platforms(
        self, platforms: Sequence[pool_pb2.PoolPlatform], *, dry_run: bool
    ) -> pool_service_pb2.CleanPlatformsResponse:
        """Remove leftovers of no pool from platforms (dry run: only find); return them, problems.

        Raises:
            InvalidArgumentError: no platform is named, or one that does not exist.
        """
        sections = pool_pb2.PoolDefinition(platforms=platforms).platforms
        for section in sections:
            self._check_platform(section.platform)
        if not sections:
            raise InvalidArgumentError("trainingService.platform", "must be given")
        return await self._checker.clean(sections, take_secrets_of(sections), dry_run=dry_run)

    async def get(self, name: str) -> pool_service_pb2.Pool:
        """Return a pool with its state and the experiments that use it.

        Raises:
            NotFoundError: there is no such pool.
        """
        stored = await self._find(name)
        if stored is None:
            raise NotFoundError("pool", name)
        return await self._view(stored.definition)

    async def page(
        self, *, page_size: int = 0, page_token: str = ""
    ) -> Page[pool_service_pb2.Pool]:
        """Return a page of pools by name; 100 if no size is given."""
        size = sized(page_size, default=100, limit=1000)
        found = await self._definitions()
        page = page_behind(found, lambda one: one.pool, page_token, size, str)
        return Page([await self._view(one) for one in page.items], page.next_token)

    async def check_exists(self, name: str) -> None:
        """Raise InvalidArgumentError if a pool does not exist or is being removed.

        Raises:
            InvalidArgumentError: there is no such pool, or it is being removed.
        """
        stored = await self._find(name)
        if stored is None or stored.definition.removed:
            known = [one.pool for one in await self._definitions() if not one.removed]
            raise InvalidArgumentError(
                "trainingService.name",
                "must be a pool of this installation",
                name,
                f"it has {', '.join(known) or 'none'}; make one with nnictl pool create FILE",
            )

    async def _change(self, name: str, change: Callable[[], Awaitable[None]]) -> None:
        """Apply a change to a pool under its lock; repeat it if another manager was first."""
        subjects.check_id("pool", name)
        # The lock is there as long as a change uses it.
        async with self._changes.setdefault(name, asyncio.Lock()):
            while True:
                try:
                    return await change()
                except AbortedError:
                    get_logger().info("pool changed by another manager", pool=name)

    def _checked(
        self, wanted: pool_pb2.PoolDefinition
    ) -> tuple[pool_pb2.PoolDefinition, Sequence[Mapping[str, str]]]:
        """Check a definition; return it with all limits and without secrets, and the secrets."""
        broken = broken_name_rule(wanted.pool)
        if broken:
            raise InvalidArgumentError("name", broken, wanted.pool[:80])
        definition = pool_pb2.PoolDefinition(
            pool=wanted.pool, platforms=wanted.platforms, limits=wanted.limits
        )
        named = [one.platform for one in definition.platforms]
        for name in named:
            self._check_platform(name)
        if named.count(LOCAL_PLATFORM) > 1:
            raise InvalidArgumentError("trainingService", "must have at most one local platform")
        complete_limits(definition)
        _check_limits(definition.limits)
        return definition, take_secrets_of(definition.platforms)

    def _check_platform(self, name: str) -> None:
        if name not in self._platforms:
            rule = f"must be one of {', '.join(self._platforms)}"
            raise InvalidArgumentError("trainingService.platform", rule, name[:80])

    async def _definitions(self) -> list[pool_pb2.PoolDefinition]:
        """Return the definitions of all pools, sorted by name, with those being removed."""
        values = await self._last_values.read(subjects.ALL_POOL_DEFINITIONS)
        found = [pool_pb2.PoolDefinition.FromString(value.payload) for value in values]
        return sorted(found, key=lambda one: one.pool)

    async def _find(self, name: str) -> _Stored | None:
        values = await self._last_values.read(subjects.pool_definition_subject(name))
        if not values:
            return None
        definition = pool_pb2.PoolDefinition.FromString(values[-1].payload)
        return _Stored(definition, values[-1].sequence)

    async def _present(self, name: str) -> _Stored:
        """Return a pool's stored definition; raise if it is missing or being removed."""
        stored = await self._find(name)
        if stored is None:
            raise NotFoundError("pool", name)
        if stored.definition.removed:
            raise FailedPreconditionError(f"pool {name} is being removed", {"pool": name})
        return stored

    async def _identify_secrets(
        self,
        definition: pool_pb2.PoolDefinition,
        secrets: Sequence[Mapping[str, str]],
        earlier: Sequence[str],
    ) -> None:
        """Set new ids for changed secrets, in place, so that the fleet opens the platforms again.

        An id is never used twice, so that no manager replaces the secrets of another one.
        """
        for index, (platform, values) in enumerate(zip(definition.platforms, secrets, strict=True)):
            known_id = earlier[index] if index < len(earlier) else ""
            if not values:
                platform.secrets_id = ""
            elif known_id and await self._secrets.read(known_id) == values:
                platform.secrets_id = known_id
            else:
                number = 1 + randbelow(_SECRETS_NUMBERS)
                platform.secrets_id = secrets_id_of(definition.pool, index, number)

    async def _replace(
        self,
        definition: pool_pb2.PoolDefinition,
        secrets: Sequence[Mapping[str, str]],
        stored: _Stored | None,
    ) -> None:
        """Store changed secrets, publish the definition, then delete the secrets that are not used.

        Then the secrets that are not used are deleted.
        """
        earlier = [one.secrets_id for one in stored.definition.platforms] if stored else []
        await self._identify_secrets(definition, secrets, earlier)
        wanted = [one.secrets_id for one in definition.platforms]
        for secrets_id, values in zip(wanted, secrets, strict=True):
            if values and secrets_id not in earlier:
                await self._secrets.write(secrets_id, values)
        try:
            await self._publish(definition, stored)
        except AbortedError:
            present = await self._find(definition.pool)
            used = set() if present is None else _secrets_ids(present.definition)
            await self._remove_secrets(set(wanted) - set(earlier) - used)
            raise
        await self._remove_secrets(set(earlier) - set(wanted))

    async def _remove_secrets(self, secrets_ids: set[str]) -> None:
        for secrets_id in sorted(secrets_ids - {""}):
            await self._secrets.remove(secrets_id)

    async def _publish(self, definition: pool_pb2.PoolDefinition, stored: _Stored | None) -> None:
        """Publish a definition, with its next revision, in place of the stored; raise if changed.

        The time of day keeps the revisions of a pool that is made again above the earlier ones.

        Raises:
            AbortedError: another manager has changed the pool meanwhile.
        """
        now = self._clock.now()
        least = 0 if stored is None else stored.definition.revision + 1
        definition.revision = max(least, int(now.timestamp() * 1000))
        definition.updated_at.FromDatetime(now)
        await self._last_values.publish(
            subjects.pool_definition_subject(definition.pool),
            definition.SerializeToString(deterministic=True),
            expected_sequence=0 if stored is None else stored.sequence,
        )

    async def _view(self, definition: pool_pb2.PoolDefinition) -> pool_service_pb2.Pool:
        view = pool_service_pb2.Pool(
            definition=definition, users=await self._users(definition.pool)
        )
        values = await self._last_values.read(subjects.pool_state_subject(definition.pool))
        if values:
            view.state.CopyFrom(state_from_bytes(values[-1].payload))
            view.used_agent_time.FromTimedelta(agent_time(view.state, self._clock.now()))
        return view

    async def _users(self, name: str) -> list[pool_service_pb2.PoolUser]:
        """Return the experiments, of all managers, that use a pool and have not ended."""
        values = await self._last_values.read(subjects.ALL_POOL_NEEDS)
        needs = [pool_pb2.PoolNeed.FromString(value.payload) for value in values]
        return [
            pool_service_pb2.PoolUser(
                experiment_id=need.experiment_id,
                waiting_count=need.waiting_count,
                running_count=need.running_count,
            )
            for need in sorted(needs, key=lambda one: one.experiment_id)
            if need.pool == name and not need.closed
        ]

    async def _wait_cleaned(self, name: str, revision: int, *, force: bool) -> None:
        """Wait for the fleet to remove a pool; raise after the limit, except with `force`.

        With `force` what is left is given up.
        """
        state = pool_pb2.PoolState()
        limit_s = 0.0 if force else self._limit.total_seconds()
        try:
            async with (
                asyncio.timeout(limit_s or _FORCED_LIMIT_S),
                aclosing(self._last_values.follow(subjects.pool_state_subject(name))) as states,
            ):
                async for value in states:
                    state = state_from_bytes(value.payload)
                    if state.cleaned and state.log_sequence >= revision:
                        return
        except (TimeoutError, DecodeError):
            pass
        if not force:
            why = state.reason or f"{len(state.agents)} agents are left"
            raise FailedPreconditionError(
                f"pool {name} is being removed and its platforms are not clean yet: {why}; repeat "
                "nnictl pool rm to wait on, or use --force to leave there what cannot be reached",
                {"pool": name},
            )


def _secrets_ids(definition: pool_pb2.PoolDefinition) -> set[str]:
    return {one.secrets_id for one in definition.platforms}


_FORCED_LIMIT_S: Final = 5.0
"""Wait for the fleet where what is left may stay."""


def _check_limits(limits: pool_pb2.PoolLimits) -> None:
    """Raise InvalidArgumentError for negative or contradicting limits of a pool."""
    for name, number in (
        ("minAgents", limits.min_agents),
        ("maxAgents", limits.max_agents),
        ("maxCost", limits.max_cost),
        ("costPerAgentHour", limits.cost_per_agent_hour),
        ("maxAgentTime", limits.max_agent_time.ToTimedelta().total_seconds()),
    ):
        if not number >= 0:
            raise InvalidArgumentError(name, "must be >= 0", number)
    if 0 < limits.max_agents < limits.min_agents:
        raise InvalidArgumentError("maxAgents", "must be >= minAgents", limits.max_agents)
    if limits.max_cost and not limits.cost_per_agent_hour:
        raise InvalidArgumentError("costPerAgentHour", "must be given with maxCost")


def _content(definition: pool_pb2.PoolDefinition) -> bytes:
    """Return a definition's name, platforms and limits, without secrets, as comparable bytes."""
    given = pool_pb2.PoolDefinition(
        pool=definition.pool, platforms=definition.platforms, limits=definition.limits
    )
    for platform in given.platforms:
        platform.secrets_id = ""
    return given.SerializeToString(deterministic=True)
