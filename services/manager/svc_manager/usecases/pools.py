"""Use cases on pools of the installation: create, update, show, drain, remove."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing
from datetime import timedelta
from typing import Final
from weakref import WeakValueDictionary

from google.protobuf.message import DecodeError

from nni_proto.runner.v1 import pool_pb2, pool_service_pb2
from nni_wire.pools import LOCAL_PLATFORM, POOL_PLATFORM, broken_name_rule
from svc_common import subjects
from svc_common.clock import Clock
from svc_common.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
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


class Pools:
    """Use cases on pools of the installation, whose definitions are last values of the bus.

    Changes of one pool do not overlap in this manager; of two managers that change it at the same
    time the later one holds.

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
        """Create a pool; a repetition with the same content returns it.

        Raises:
            AlreadyExistsError: there is another pool of this name.
            FailedPreconditionError: one of this name is being removed.
            InvalidArgumentError: the definition breaks a rule, or a platform refuses its section.
        """
        definition, secrets = self._checked(wanted)
        name = definition.pool
        async with self._change(name):
            present = await self._find(name)
            if present is not None and present.removed:
                raise FailedPreconditionError(
                    f"pool {name} is being removed; end that with nnictl pool rm {name}",
                    {"pool": name},
                )
            if present is not None and _content(present) != _content(definition):
                raise AlreadyExistsError("pool", name)
            if present is None:
                await self._checker.check(definition.platforms, secrets, "trainingService")
                definition.created_at.FromDatetime(self._clock.now())
                await self._tasks.open_pool(name)
                await self._replace(definition, secrets, None)
        return await self.get(name)

    async def update(self, wanted: pool_pb2.PoolDefinition) -> pool_service_pb2.Pool:
        """Replace platforms, secrets and limits of a pool.

        Raises:
            FailedPreconditionError: it is being removed.
            InvalidArgumentError: the definition breaks a rule, or a platform refuses its section.
            NotFoundError: there is no such pool.
        """
        definition, secrets = self._checked(wanted)
        async with self._change(definition.pool):
            present = await self._present(definition.pool)
            await self._checker.check(definition.platforms, secrets, "trainingService")
            definition.draining = present.draining
            definition.created_at.CopyFrom(present.created_at)
            await self._identify_secrets(definition, secrets, present)
            await self._replace(definition, secrets, present)
        return await self.get(definition.pool)

    async def drain(self, name: str, *, undo: bool = False) -> pool_service_pb2.Pool:
        """Let a pool's agents take no more trials and end, or undo that; may be repeated.

        Raises:
            FailedPreconditionError: it is being removed.
            NotFoundError: there is no such pool.
        """
        async with self._change(name):
            present = await self._present(name)
            if present.draining is undo:
                changed = pool_pb2.PoolDefinition()
                changed.CopyFrom(present)
                changed.draining = not undo
                await self._publish(changed, present)
        return await self.get(name)

    async def remove(self, name: str, *, force: bool = False) -> None:
        """Remove a pool once the fleet has removed it from its platforms; may be repeated.

        Raises:
            FailedPreconditionError: experiments use it, or its platforms are not clean yet, and
                `force` is not set.
            NotFoundError: there is no such pool.
        """
        async with self._change(name):
            present = await self._find(name)
            if present is None:
                raise NotFoundError("pool", name)
            users = [user.experiment_id for user in await self._users(name)]
            if users and not force:
                raise FailedPreconditionError(
                    f"pool {name} is used by experiment {', '.join(users)}: stop it first, or use "
                    "--force; its trials then wait",
                    {"pool": name, "experiments": ", ".join(users)},
                )
            if not present.removed:
                removed = pool_pb2.PoolDefinition()
                removed.CopyFrom(present)
                removed.removed = True
                present = await self._publish(removed, present)
            await self._wait_cleaned(name, present.revision, force=force)
            await self._last_values.delete(subjects.pool_definition_subject(name))
            await self._last_values.delete(subjects.pool_state_subject(name))
            await self._last_values.delete(subjects.pool_invitations_subject(name))
            await self._last_values.delete(subjects.pool_front_subject(name))
            if not users:
                await self._tasks.close_pool(name)
            await self._secrets.remove_pool(name)

    async def clean_platforms(
        self, platforms: Sequence[pool_pb2.PoolPlatform], *, dry_run: bool
    ) -> pool_service_pb2.CleanPlatformsResponse:
        """Remove from platforms what belongs to no pool of the installation; may be repeated.

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
        present = await self._find(name)
        if present is None:
            raise NotFoundError("pool", name)
        return await self._view(present)

    async def page(
        self, *, page_size: int = 0, page_token: str = ""
    ) -> Page[pool_service_pb2.Pool]:
        """Return a page of pools by name; 100 if no size is given."""
        size = sized(page_size, default=100, limit=1000)
        found = await self._definitions()
        page = page_behind(found, lambda one: one.pool, page_token, size, str)
        return Page([await self._view(one) for one in page.items], page.next_token)

    async def check_exists(self, name: str) -> None:
        """Raise unless experiments may use a pool.

        Raises:
            InvalidArgumentError: there is no such pool, or it is being removed.
        """
        present = await self._find(name)
        if present is None or present.removed:
            known = [one.pool for one in await self._definitions() if not one.removed]
            raise InvalidArgumentError(
                "trainingService.name",
                "must be a pool of this installation",
                name,
                f"it has {', '.join(known) or 'none'}; make one with nnictl pool create FILE",
            )

    def _change(self, name: str) -> asyncio.Lock:
        """Return the lock of a pool's changes, which is there as long as a change uses it."""
        subjects.check_id("pool", name)
        return self._changes.setdefault(name, asyncio.Lock())

    def _checked(
        self, wanted: pool_pb2.PoolDefinition
    ) -> tuple[pool_pb2.PoolDefinition, Sequence[Mapping[str, str]]]:
        """Return a definition without secret values and with all limits, and the secrets."""
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
        secrets = take_secrets_of(definition.platforms)
        for index, (platform, values) in enumerate(zip(definition.platforms, secrets, strict=True)):
            platform.secrets_id = secrets_id_of(definition.pool, index) if values else ""
        return definition, secrets

    def _check_platform(self, name: str) -> None:
        if name not in self._platforms:
            rule = f"must be one of {', '.join(self._platforms)}"
            raise InvalidArgumentError("trainingService.platform", rule, name[:80])

    async def _definitions(self) -> list[pool_pb2.PoolDefinition]:
        """Return the definitions of all pools by name."""
        values = await self._last_values.read(subjects.ALL_POOL_DEFINITIONS)
        found = [pool_pb2.PoolDefinition.FromString(value.payload) for value in values]
        return sorted(found, key=lambda one: one.pool)

    async def _find(self, name: str) -> pool_pb2.PoolDefinition | None:
        values = await self._last_values.read(subjects.pool_definition_subject(name))
        return pool_pb2.PoolDefinition.FromString(values[-1].payload) if values else None

    async def _present(self, name: str) -> pool_pb2.PoolDefinition:
        """Return the definition of a pool that may be changed."""
        present = await self._find(name)
        if present is None:
            raise NotFoundError("pool", name)
        if present.removed:
            raise FailedPreconditionError(f"pool {name} is being removed", {"pool": name})
        return present

    async def _identify_secrets(
        self,
        definition: pool_pb2.PoolDefinition,
        secrets: Sequence[Mapping[str, str]],
        present: pool_pb2.PoolDefinition,
    ) -> None:
        """Give new ids to secrets that have changed: the fleet opens a platform again by that."""
        earlier = [one.secrets_id for one in present.platforms]
        for index, (platform, values) in enumerate(zip(definition.platforms, secrets, strict=True)):
            if not values:
                continue
            known_id = earlier[index] if index < len(earlier) else ""
            if known_id and await self._secrets.read(known_id) == values:
                platform.secrets_id = known_id
            else:
                revision = present.revision + 1
                platform.secrets_id = secrets_id_of(definition.pool, index, revision)

    async def _replace(
        self,
        definition: pool_pb2.PoolDefinition,
        secrets: Sequence[Mapping[str, str]],
        present: pool_pb2.PoolDefinition | None,
    ) -> None:
        """Store secrets, then the definition: the fleet reads them when it has the definition.

        Then earlier secrets are deleted.
        """
        for platform, values in zip(definition.platforms, secrets, strict=True):
            if values:
                await self._secrets.write(platform.secrets_id, values)
        await self._publish(definition, present)
        if present is not None:
            used = {one.secrets_id for one in definition.platforms}
            for secrets_id in sorted({one.secrets_id for one in present.platforms} - used - {""}):
                await self._secrets.remove(secrets_id)

    async def _publish(
        self, definition: pool_pb2.PoolDefinition, present: pool_pb2.PoolDefinition | None
    ) -> pool_pb2.PoolDefinition:
        """Publish a definition with the next revision and return it.

        The time of day keeps the revisions of a pool that is made again above the earlier ones.
        """
        now = self._clock.now()
        least = 0 if present is None else present.revision + 1
        definition.revision = max(least, int(now.timestamp() * 1000))
        definition.updated_at.FromDatetime(now)
        subject = subjects.pool_definition_subject(definition.pool)
        await self._last_values.publish(subject, definition.SerializeToString(deterministic=True))
        return definition

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
        """Wait until the fleet has removed a pool from its platforms; raise if it has not.

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


_FORCED_LIMIT_S: Final = 5.0
"""Wait for the fleet where what is left may stay."""


def _check_limits(limits: pool_pb2.PoolLimits) -> None:
    """Raise InvalidArgumentError unless the limits of a pool make sense."""
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
    """Return what users give of a definition but secrets, as bytes that can be compared."""
    given = pool_pb2.PoolDefinition(
        pool=definition.pool, platforms=definition.platforms, limits=definition.limits
    )
    for platform in given.platforms:
        platform.secrets_id = ""
    return given.SerializeToString(deterministic=True)
