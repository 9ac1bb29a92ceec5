"""Checks of platforms before anything is started: answers the requests of managers."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Final

from svc_common.clock import Clock
from svc_common.errors import InvalidArgumentError, ServiceError
from svc_common.logs import get_logger
from svc_common.messaging.ports import LastValue, LastValues
from svc_common.subjects import ALL_POOL_CHECKS, pool_of_subject, pool_problems_subject
from svc_common.tasks import TaskOwner
from svc_trial_runner.fleet.converters import check_from_bytes, problems_to_bytes
from svc_trial_runner.fleet.domain.agents import PlatformProblem
from svc_trial_runner.fleet.domain.checks import (
    CheckRequest,
    PlatformFindings,
    expired,
    refusals,
)
from svc_trial_runner.fleet.domain.leftovers import Leftover
from svc_trial_runner.fleet.domain.needs import PoolNeed, PoolPlatform
from svc_trial_runner.fleet.pools.leftover_removal import LeftoverRemoval, close_adapter
from svc_trial_runner.fleet.ports import PlatformAdapter, PlatformError, PlatformOpener

CHECK_LIMIT_S: Final = 60.0
"""Longest check of one platform."""
CLEANING_LIMIT_S: Final = 300.0
"""Longest cleaning of one platform; its manager waits less long, and asks again."""


class PlatformChecks:
    """Service that checks sections at their platforms, or cleans platforms, for managers.

    Each request has a pool name of its own, so that no check shares a folder with a running pool.

    Args:
        last_values: has requests and answers.
        opener: opens adapters.
        clock: compares deadlines.
        removal: cleans the platforms of requests that ask for it.
    """

    def __init__(
        self,
        last_values: LastValues,
        opener: PlatformOpener,
        clock: Clock,
        removal: LeftoverRemoval,
    ) -> None:
        self._last_values = last_values
        self._removal = removal
        self._opener = opener
        self._clock = clock
        self._tasks = TaskOwner(self._failed)

    async def run(self) -> None:
        """Handle managers' requests to check or clean for ever; refuse expired ones."""
        async with aclosing(self._last_values.follow(ALL_POOL_CHECKS)) as requests:
            async for value in requests:
                self._handle(value)

    async def aclose(self) -> None:
        """End the checks in progress. May be called twice."""
        await self._tasks.aclose()

    def _handle(self, value: LastValue) -> None:
        try:
            name = pool_of_subject(value.subject)
            request = check_from_bytes(value.payload)
        except InvalidArgumentError as error:
            get_logger().error("check refused", subject=value.subject, error=error.message)
            return
        late_s = (self._clock.now() - request.deadline).total_seconds()
        if late_s >= 0:
            task = self._refuse(name, request, expired(late_s))
        else:
            task = self._clean(name, request) if request.cleans else self._answer(name, request)
        self._tasks.start(task, f"check {name}")

    async def _refuse(self, name: str, request: CheckRequest, problem: PlatformProblem) -> None:
        """Publish a problem of each platform of a request, and do nothing else."""
        problems = [(index, problem) for index in range(len(request.platforms))]
        payload = problems_to_bytes(request.check_id, problems)
        await self._last_values.publish(pool_problems_subject(name), payload)

    async def _answer(self, name: str, request: CheckRequest) -> None:
        """Check all platforms of a request concurrently; publish their problems."""
        checks = (
            self._check(name, f"{index}-{one.platform}", one)
            for index, one in enumerate(request.platforms)
        )
        findings = await asyncio.gather(*checks)
        await self._opener.forget(name)
        payload = problems_to_bytes(request.check_id, refusals(findings))
        await self._last_values.publish(pool_problems_subject(name), payload)

    async def _clean(self, name: str, request: CheckRequest) -> None:
        """Clean the platforms of a request one by one; publish leftovers and problems."""
        found: list[tuple[int, Leftover]] = []
        problems: list[tuple[int, PlatformProblem]] = []
        sections = PoolNeed(name, platforms=request.platforms).sections
        for index, (key, section) in enumerate(sections.items()):
            try:
                async with asyncio.timeout(CLEANING_LIMIT_S):
                    left = await self._removal.clean(name, key, section, dry_run=request.dry_run)
            except TimeoutError:
                words = f"was not cleaned within {CLEANING_LIMIT_S:g} s"
                problems.append((index, PlatformProblem("", words, permanent=False)))
            except PlatformError as error:
                problems.append((index, _problem(error)))
            except Exception as error:  # noqa: BLE001 - rim: an adapter may be of others
                get_logger().exception("cleaning failed", platform=section.platform)
                words = f"{type(error).__name__}: {error}"[:1000]
                problems.append((index, PlatformProblem("", words)))
            else:
                found += [(index, one) for one in left]
        await self._opener.forget(name)
        payload = problems_to_bytes(request.check_id, problems, found)
        await self._last_values.publish(pool_problems_subject(name), payload)

    async def _check(self, name: str, key: str, section: PoolPlatform) -> PlatformFindings:
        try:
            async with asyncio.timeout(CHECK_LIMIT_S):
                adapter = await self._opener.open(
                    name, key, section.platform, section.options, section.secrets_id
                )
                try:
                    return await _findings(adapter)
                finally:
                    await close_adapter(adapter)
        except TimeoutError:
            return _away(f"gave no answer within {CHECK_LIMIT_S:g} s", "")
        except PlatformError as error:
            return PlatformFindings([_problem(error)], None)
        except ServiceError as error:
            return _away(error.message, "")
        except Exception as error:  # noqa: BLE001 - rim: an adapter may be of others
            get_logger().exception("check failed", pool=name, platform=section.platform)
            return _away(f"{type(error).__name__}: {error}"[:1000], "")

    @staticmethod
    def _failed(name: str, error: BaseException) -> None:
        get_logger().error("check failed", task=name, exc_info=error)


async def _findings(adapter: PlatformAdapter) -> PlatformFindings:
    problems: Sequence[PlatformProblem] = await adapter.check()
    return PlatformFindings(problems, await adapter.capacity() if problems else None)


def _away(rule: str, remedy: str) -> PlatformFindings:
    return PlatformFindings([PlatformProblem("", rule, "", remedy, permanent=False)], None)


def _problem(error: PlatformError) -> PlatformProblem:
    return PlatformProblem("", error.message, "", error.remedy, permanent=error.permanent)
