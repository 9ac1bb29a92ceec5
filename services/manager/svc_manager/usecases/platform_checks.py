"""Check of platforms before anything is started, which the fleet does on request."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, timedelta
from typing import Final

from google.protobuf.message import DecodeError

from nni_proto.runner.v1 import pool_pb2, pool_service_pb2
from nni_wire.pools import LOCAL_PLATFORM, POOL_PLATFORM, pool_of_check
from svc_common import subjects
from svc_common.clock import Clock
from svc_common.errors import FailedPreconditionError, InvalidArgumentError
from svc_common.messaging.ports import LastValues
from svc_common.pool_secrets import secrets_id_of
from svc_manager.converters.agent_limits import Section
from svc_manager.ports import SecretStore

CHECK_LIMIT: Final = timedelta(seconds=40)
"""Longest wait for the fleet, which may have to be started: clients wait for a creation for 2 min.
A login that gets no answer ends after 30 s."""
PLATFORM_CLEANING_LIMIT: Final = timedelta(seconds=110)
"""Longest wait for platforms to be cleaned; clients wait for 2 min."""
LEFT_AFTER: Final = timedelta(minutes=10)
"""Time after the deadline of a request at which its manager has ended: clocks may differ."""
_SECTION: Final = "trainingService"
_NEEDING_NO_CHECK: Final = frozenset({LOCAL_PLATFORM, POOL_PLATFORM})


class FleetPlatformChecker:
    """`PlatformChecker` that publishes a request for the fleet and waits for the answer.

    Args:
        last_values: takes requests and has answers.
        secrets: secret values of the platforms, for the time of a request.
        clock: of deadlines.
        draw_id: draws ids of requests, each a part of a file's name.
        limit: longest wait for the fleet.
        cleaning_limit: the same while platforms are cleaned.
    """

    def __init__(
        self,
        last_values: LastValues,
        secrets: SecretStore,
        clock: Clock,
        draw_id: Callable[[], str],
        limit: timedelta = CHECK_LIMIT,
        cleaning_limit: timedelta = PLATFORM_CLEANING_LIMIT,
    ) -> None:
        self._last_values = last_values
        self._secrets = secrets
        self._clock = clock
        self._draw_id = draw_id
        self._limit = limit
        self._cleaning_limit = cleaning_limit

    async def check(
        self, sections: Sequence[Section], secrets: Sequence[Mapping[str, str]], field: str
    ) -> list[str]:
        """Raise if platforms refuse sections; return warnings, one if the fleet is too late."""
        if all(one.platform in _NEEDING_NO_CHECK for one in sections):
            return []
        answer = await self._request(sections, secrets, self._limit)
        if answer is None:
            limit_s = self._limit.total_seconds()
            return [
                f"the platforms were not checked: the fleet did not answer within {limit_s:g} s"
            ]
        several = len(sections) > 1
        return _judge(answer.problems, sections, field, several=several)

    async def clean(
        self, sections: Sequence[Section], secrets: Sequence[Mapping[str, str]], *, dry_run: bool
    ) -> pool_service_pb2.CleanPlatformsResponse:
        """Wait, within a limit, until the fleet has removed leftovers; return them and problems."""
        cleaning = pool_pb2.PlatformCleaning(dry_run=dry_run)
        answer = await self._request(sections, secrets, self._cleaning_limit, cleaning)
        if answer is None:
            limit_s = self._cleaning_limit.total_seconds()
            late = f"the fleet has not answered within {limit_s:g} s; repeat the command"
            return pool_service_pb2.CleanPlatformsResponse(problems=[late])
        several = len(sections) > 1
        texts = [_Text(one, sections, _SECTION, several=several) for one in answer.problems]
        return pool_service_pb2.CleanPlatformsResponse(
            leftovers=answer.leftovers, problems=[one.line for one in texts]
        )

    async def _request(
        self,
        sections: Sequence[Section],
        secrets: Sequence[Mapping[str, str]],
        limit: timedelta,
        cleaning: pool_pb2.PlatformCleaning | None = None,
    ) -> pool_pb2.PoolProblems | None:
        """Publish a request with secrets; return the answer, None if late; then delete them."""
        await self._clean_left()
        check_id = self._draw_id()
        pool = pool_of_check(check_id)
        try:
            request = pool_pb2.PoolCheck(check_id=check_id, pool=pool, cleaning=cleaning)
            request.deadline.FromDatetime(self._clock.now() + limit)
            for index, (section, values) in enumerate(zip(sections, secrets, strict=True)):
                platform = request.platforms.add(platform=section.platform, options=section.options)
                if values:
                    platform.secrets_id = secrets_id_of(pool, index)
                    await self._secrets.write(platform.secrets_id, values)
            return await self._ask(request, limit)
        finally:
            await self._clean(pool)

    async def _clean(self, pool: str) -> None:
        """Delete the secrets, the request and the answer of a check."""
        await self._secrets.remove_pool(pool)
        await self._last_values.delete(subjects.pool_check_subject(pool))
        await self._last_values.delete(subjects.pool_problems_subject(pool))

    async def _clean_left(self) -> None:
        """Delete requests, answers and secrets of checks `LEFT_AFTER` past their deadline."""
        before = self._clock.now() - LEFT_AFTER
        for value in await self._last_values.read(subjects.ALL_POOL_CHECKS):
            try:
                request = pool_pb2.PoolCheck.FromString(value.payload)
            except DecodeError:
                continue
            if request.deadline.ToDatetime(UTC) < before:
                await self._clean(subjects.pool_of_subject(value.subject))

    async def _ask(
        self, request: pool_pb2.PoolCheck, limit: timedelta
    ) -> pool_pb2.PoolProblems | None:
        """Publish a request; return the answer, or None if the fleet gives none in time."""
        subject = subjects.pool_check_subject(request.pool)
        await self._last_values.publish(subject, request.SerializeToString())
        try:
            async with (
                asyncio.timeout(limit.total_seconds()),
                aclosing(
                    self._last_values.follow(subjects.pool_problems_subject(request.pool))
                ) as answers,
            ):
                async for value in answers:
                    answer = pool_pb2.PoolProblems.FromString(value.payload)
                    if answer.check_id == request.check_id:
                        return answer
        except (TimeoutError, DecodeError):
            return None
        return None


class NoPlatformChecker:
    """`PlatformChecker` without a fleet: accepts all sections unchecked, refuses to clean."""

    async def check(
        self, sections: Sequence[Section], secrets: Sequence[Mapping[str, str]], field: str
    ) -> list[str]:
        """Return no warnings; nothing is checked."""
        del sections, secrets, field
        return []

    async def clean(
        self, sections: Sequence[Section], secrets: Sequence[Mapping[str, str]], *, dry_run: bool
    ) -> pool_service_pb2.CleanPlatformsResponse:
        """Raise FailedPreconditionError: no process of this installation reaches platforms.

        Raises:
            FailedPreconditionError: always.
        """
        del sections, secrets, dry_run
        raise FailedPreconditionError("this installation has no fleet, so it has left nothing")


def _judge(
    problems: Sequence[pool_pb2.PoolProblem],
    sections: Sequence[Section],
    field: str,
    *,
    several: bool,
) -> list[str]:
    """Raise InvalidArgumentError for permanent problems; else return all as warnings."""
    texts = [_Text(one, sections, field, several=several) for one in problems]
    refusals = [one for one in texts if one.problem.permanent]
    if not refusals:
        return [one.line for one in texts]
    first, *others = refusals
    also = "".join(f"; also: {one.line}" for one in others)
    raise InvalidArgumentError(
        first.path, first.problem.rule, first.problem.value or None, f"{first.problem.remedy}{also}"
    )


class _Text:
    """Text of a platform's problem: path in the user's file, and one line with rule and remedy."""

    def __init__(
        self,
        problem: pool_pb2.PoolProblem,
        sections: Sequence[Section],
        field: str,
        *,
        several: bool,
    ) -> None:
        self.problem = problem
        index = min(problem.platform_index, len(sections) - 1)
        section = f"{field}[{index}]" if several else field
        name = problem.field if problem.field != "platform" else ""
        self.path = f"{section}.{name}" if name else f"{section} ({sections[index].platform})"

    @property
    def line(self) -> str:
        """Problem in one line: path, broken rule, value and remedy."""
        shown = f", got {self.problem.value!r}" if self.problem.value else ""
        remedy = f" ({self.problem.remedy})" if self.problem.remedy else ""
        return f"{self.path} {self.problem.rule}{shown}{remedy}"
