"""Parts that adapters of jobs share."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from svc_trial_runner.agent_settings import ConnectionKind
from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.adapters.job_agents import (
    is_own,
    job_agent_settings,
    launch_jobs,
    own_jobs,
    raise_first,
    tls_connection,
    wait_for_poll,
)
from svc_trial_runner.fleet.domain.agents import (
    AgentCredentials,
    AgentOrder,
    LaunchFailure,
    PlatformProblem,
    PlatformSection,
)
from svc_trial_runner.fleet.ports import (
    AdapterContext,
    FrontEndpoint,
    InstallationEndpoints,
    PlatformError,
)
from svc_trial_runner.fleet.testing import (
    INSTALLATION,
    OTHER_INSTALLATION,
    OTHER_POOL,
    POOL,
    agent_name,
)
from tests.support.local_platforms import NoBundles

FRONT = FrontEndpoint("192.0.2.1:8081", "certificate")
CONTEXT = AdapterContext(
    INSTALLATION,
    POOL,
    PlatformSection("dlc", {}),
    InstallationEndpoints("nats://127.0.0.1:4222", "127.0.0.1:50051"),
    NoBundles(),
    Path("unused"),
    NoFront(),
)


@dataclass(frozen=True)
class Options:
    """Options of a section."""

    reuse_mode: bool = True
    setup_lines: tuple[str, ...] = ("module load cuda",)
    python_path: str = "/opt/python"


def test_first_broken_rule_is_raised_with_its_remedy() -> None:
    problems = [PlatformProblem("image", "must be given", "", "set it"), PlatformProblem("b", "c")]

    with pytest.raises(PlatformError, match=r"^image must be given, got ''$") as caught:
        raise_first(problems)

    assert (caught.value.remedy, caught.value.permanent) == ("set it", True)


def test_agents_of_another_pool_or_installation_are_not_own() -> None:
    assert is_own(CONTEXT, agent_name(1))
    assert not is_own(CONTEXT, agent_name(1, OTHER_POOL))
    assert not is_own(CONTEXT, agent_name(1, POOL, OTHER_INSTALLATION))


def test_jobs_of_other_pools_and_of_no_agent_are_dropped() -> None:
    own = {"label": str(agent_name(2))}

    found = own_jobs(
        CONTEXT, [{"label": "train"}, own, {"label": str(agent_name(2, OTHER_POOL))}], "label"
    )

    assert found == [(agent_name(2), own)]


class RefusalError(PlatformError):
    """Refusal of a platform."""


async def test_only_agents_without_a_job_are_launched_and_refused_ones_are_returned() -> None:
    submitted = []

    async def submit(order: AgentOrder) -> None:
        submitted.append(order.name)
        if order.name == agent_name(2):
            raise RefusalError("no such image", "set image", permanent=True)

    failures = await launch_jobs(map(order_of, (1, 2, 3)), {agent_name(1)}, submit, RefusalError)

    assert submitted == [agent_name(2), agent_name(3)]
    assert failures == [LaunchFailure(agent_name(2), "no such image", "set image", True)]


@pytest.mark.parametrize("error", [RefusalError("busy"), PlatformError("lost", permanent=True)])
async def test_launch_that_may_work_later_or_fails_otherwise_is_an_error(
    error: PlatformError,
) -> None:
    async def submit(_: AgentOrder) -> None:
        raise error

    with pytest.raises(PlatformError, match=str(error)):
        await launch_jobs([order_of(1)], set(), submit, RefusalError)


def order_of(number: int) -> AgentOrder:
    return AgentOrder(agent_name(number), AgentCredentials("user", "password", "token"), slots=1)


async def test_change_ends_the_wait_for_a_poll_that_is_never_due() -> None:
    changed = asyncio.Event()
    waiting = asyncio.create_task(wait_for_poll(changed, None))
    await asyncio.sleep(0)
    was_waiting = not waiting.done()

    changed.set()
    await waiting

    assert was_waiting


async def test_poll_that_is_due_ends_the_wait_without_a_change() -> None:
    changed = asyncio.Event()

    await wait_for_poll(changed, 0)

    assert not changed.is_set()


def test_connection_leads_through_the_front() -> None:
    connection = tls_connection(FRONT)

    assert connection.kind is ConnectionKind.TLS
    assert (connection.bus, connection.manager) == ("tls://192.0.2.1:8081", "192.0.2.1:8081")
    assert connection.authority == "certificate"


@pytest.mark.parametrize(("reuses", "slots", "max_trials"), [(True, 4, 9), (False, 1, 1)])
def test_agent_has_its_slots_only_where_agents_are_reused(
    reuses: bool, slots: int, max_trials: int
) -> None:
    order = AgentOrder(
        agent_name(1), AgentCredentials("user", "password", "token"), slots=4, max_trials=9
    )

    settings = job_agent_settings("dlc", order, FRONT, Options(reuses), 20.0, "4.0")

    assert (settings.slots, settings.max_trials) == (slots, max_trials)
    assert (settings.name, settings.pool, settings.platform) == (str(agent_name(1)), POOL, "dlc")
    assert (settings.bus_user, settings.bus_password) == ("user", "password")
    assert settings.manager_token == "token"
    assert (settings.grace_s, settings.version) == (20.0, "4.0")
    assert (settings.setup_lines, settings.python_path) == (("module load cuda",), "/opt/python")
