import asyncio
from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from svc_common.clock import ManualClock
from svc_common.errors import UnavailableError
from svc_trial_runner.fleet.adapters.memory import InMemoryPlatform, InMemoryPlatformAdapter
from svc_trial_runner.fleet.domain.agents import (
    AgentOrder,
    AgentPhase,
    LaunchFailure,
    PlatformProblem,
)
from svc_trial_runner.fleet.domain.needs import PoolPlatform
from svc_trial_runner.fleet.domain.pool_events import (
    ActionFailed,
    AgentsLaunched,
    AgentsListed,
    AgentsTerminated,
    CleanPlatform,
    LaunchAgents,
    ListAgents,
    OpenPlatform,
    PlannedAgent,
    PlatformAction,
    PlatformChanged,
    PlatformCleaned,
    PlatformOpened,
    TerminateAgents,
)
from svc_trial_runner.fleet.pools.platform_calls import PlatformCalls
from svc_trial_runner.fleet.ports import PlatformError
from tests.support.fleet_platforms import InMemoryCredentials, InMemoryPlatforms
from tests.support.fleet_pools import INSTALLATION, POOL, agent

SECTION = PoolPlatform("slurm", {})
LAUNCH = LaunchAgents((PlannedAgent(agent(1), 1), PlannedAgent(agent(2), 1)))


class Setup:
    """Calls of an in-memory platform, and what they use."""

    def __init__(self) -> None:
        self.platform = InMemoryPlatform()
        self.credentials = InMemoryCredentials()
        self.opener = InMemoryPlatforms(INSTALLATION, {"slurm": self.platform})
        self.changes: asyncio.Queue[PlatformChanged] = asyncio.Queue()
        self.clock = ManualClock()
        self.calls = PlatformCalls(
            POOL, "slurm", self.opener, self.credentials, self.clock, self.changes.put_nowait
        )


@pytest.fixture
async def setup() -> Setup:
    return Setup()


async def test_actions_have_their_results(setup: Setup) -> None:
    assert await setup.calls.perform(OpenPlatform(), SECTION) == PlatformOpened("slurm")
    assert await setup.calls.perform(LAUNCH, SECTION) == AgentsLaunched("slurm")
    listed = await setup.calls.perform(ListAgents(), SECTION)
    assert isinstance(listed, AgentsListed)
    assert [one.name for one in listed.agents] == [agent(1), agent(2)]
    ended = await setup.calls.perform(TerminateAgents((agent(1),)), SECTION)
    assert ended == AgentsTerminated("slurm")
    assert set(setup.credentials.valid) == {agent(2)}
    assert await setup.calls.perform(CleanPlatform(), SECTION) == PlatformCleaned("slurm")
    assert setup.credentials.valid == {}


async def test_section_is_cleaned_without_the_agents_of_another_one(setup: Setup) -> None:
    await setup.calls.perform(LAUNCH, SECTION)

    first = await setup.calls.perform(CleanPlatform((agent(1),)), SECTION)

    assert first == PlatformCleaned("slurm")
    assert list(setup.platform.agents) == [agent(2)]
    assert set(setup.credentials.valid) == {agent(2)}


async def test_problems_of_a_section_are_a_permanent_failure(setup: Setup) -> None:
    setup.platform.problems = [PlatformProblem("partition", "must exist", "gpus", "see sinfo")]

    result = await setup.calls.perform(OpenPlatform(), SECTION)

    assert result == ActionFailed(
        "slurm", OpenPlatform(), "partition must exist, got 'gpus'", "see sinfo", permanent=True
    )


async def test_problem_that_may_pass_does_not_hold_up_the_platform(setup: Setup) -> None:
    setup.platform.problems = [PlatformProblem("host", "is away", "a", permanent=False)]

    assert await setup.calls.perform(OpenPlatform(), SECTION) == PlatformOpened("slurm")


async def test_error_of_a_platform_is_a_result(setup: Setup) -> None:
    setup.platform.failure = PlatformError("no route to host", "check the host")

    result = await setup.calls.perform(ListAgents(), SECTION)

    assert result == ActionFailed("slurm", ListAgents(), "no route to host", "check the host")


async def test_error_that_no_adapter_should_raise_is_a_result(setup: Setup) -> None:
    setup.platform.failure = ExceptionGroup("two", [KeyError("a"), KeyError("b")])

    result = await setup.calls.perform(ListAgents(), SECTION)

    assert result == ActionFailed("slurm", ListAgents(), "KeyError: 'a'")


async def test_repeated_launch_has_the_credentials_of_the_first_one(setup: Setup) -> None:
    setup.platform.failure = PlatformError("cut")
    await setup.calls.perform(LAUNCH, SECTION)
    await setup.calls.perform(ListAgents(), SECTION)
    setup.platform.failure = None

    assert await setup.calls.perform(LAUNCH, SECTION) == AgentsLaunched("slurm")
    assert setup.credentials.issued == [agent(1), agent(2)]


async def test_credentials_of_agents_that_were_not_started_are_revoked(setup: Setup) -> None:
    setup.platform.capacity = 1

    result = await setup.calls.perform(LAUNCH, SECTION)

    assert isinstance(result, AgentsLaunched)
    assert [failure.name for failure in result.failures] == [agent(2)]
    assert set(setup.credentials.valid) == {agent(1)}


async def test_open_replaces_the_adapter(setup: Setup) -> None:
    await setup.calls.perform(OpenPlatform(), SECTION)
    await setup.calls.perform(ListAgents(), SECTION)
    await setup.calls.perform(OpenPlatform(), SECTION)

    assert setup.opener.opened == ["slurm", "slurm"]


async def test_platform_that_left_the_pool_is_not_opened(setup: Setup) -> None:
    result = await setup.calls.perform(CleanPlatform(), None)

    assert isinstance(result, ActionFailed)
    assert result.permanent


async def test_changes_are_reported_once_after_each_list(setup: Setup) -> None:
    watching = asyncio.ensure_future(setup.calls.watch())
    await setup.calls.perform(LAUNCH, SECTION)
    await setup.calls.perform(ListAgents(), SECTION)

    setup.platform.set_phase(agent(1), AgentPhase.ENDED)

    assert await setup.changes.get() == PlatformChanged("slurm")
    watching.cancel()
    assert setup.changes.empty()


async def test_wait_for_changes_begins_anew_with_each_list(setup: Setup) -> None:
    watching = asyncio.ensure_future(setup.calls.watch())
    for _ in range(3):
        await setup.calls.perform(ListAgents(), SECTION)
        await asyncio.sleep(0)
    await setup.calls.perform(LAUNCH, SECTION)
    await setup.calls.perform(ListAgents(), SECTION)

    setup.platform.set_phase(agent(2), AgentPhase.ENDED)

    assert await setup.changes.get() == PlatformChanged("slurm")
    watching.cancel()


async def test_calls_that_were_closed_twice_open_the_platform_again(setup: Setup) -> None:
    await setup.calls.perform(OpenPlatform(), SECTION)

    await setup.calls.aclose()
    await setup.calls.aclose()
    await setup.calls.perform(ListAgents(), SECTION)

    assert setup.opener.opened == ["slurm", "slurm"]


@pytest.mark.parametrize(
    ("action", "limit_s"),
    [
        (OpenPlatform(), 900),
        (ListAgents(), 120),
        (LAUNCH, 600),
        (TerminateAgents((agent(1),)), 180),
        (CleanPlatform(), 300),
    ],
)
async def test_action_without_an_answer_names_its_time_limit(
    setup: Setup, action: PlatformAction, limit_s: int
) -> None:
    setup.platform.failure = TimeoutError()

    result = await setup.calls.perform(action, SECTION)

    assert result == ActionFailed("slurm", action, f"no answer within {limit_s} s")


async def test_error_of_a_service_is_a_result_and_a_long_one_is_shortened(setup: Setup) -> None:
    found = []
    for error in (UnavailableError("no bundle"), RuntimeError("x" * 2_000)):
        setup.platform.failure = error
        found.append(await setup.calls.perform(ListAgents(), SECTION))

    assert found == [
        ActionFailed("slurm", ListAgents(), "no bundle"),
        ActionFailed("slurm", ListAgents(), "RuntimeError: " + "x" * 986),
    ]


async def test_all_problems_of_a_section_are_named(setup: Setup) -> None:
    setup.platform.problems = [
        PlatformProblem("partition", "must exist", remedy="see sinfo"),
        PlatformProblem("host", "is away", permanent=False),
        PlatformProblem("user", "must be given", remedy="ask"),
    ]

    result = await setup.calls.perform(OpenPlatform(), SECTION)

    words = "partition must exist; host is away; user must be given"
    assert result == ActionFailed("slurm", OpenPlatform(), words, "see sinfo; ask", permanent=True)


async def test_orders_have_the_numbers_of_the_planned_agent(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordered: list[AgentOrder] = []

    async def launch(
        _adapter: InMemoryPlatformAdapter, orders: Sequence[AgentOrder]
    ) -> list[LaunchFailure]:
        ordered.extend(orders)
        return []

    monkeypatch.setattr(InMemoryPlatformAdapter, "launch", launch)

    await setup.calls.perform(LaunchAgents((PlannedAgent(agent(1), 3, 1, 2),)), SECTION)

    (order,) = ordered
    assert (order.slots, order.max_trials, order.gpus_per_trial) == (3, 1, 2)
    assert order.credentials == setup.credentials.valid[agent(1)]


async def test_failed_wait_for_changes_is_a_change_after_half_a_minute(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_adapter: InMemoryPlatformAdapter) -> None:
        raise PlatformError("cut")

    monkeypatch.setattr(InMemoryPlatformAdapter, "wait_changed", fail)
    watching = asyncio.ensure_future(setup.calls.watch())
    await setup.calls.perform(ListAgents(), SECTION)
    async with asyncio.timeout(30):
        while not setup.clock.sleepers:  # noqa: ASYNC110 - the clock has no event
            await asyncio.sleep(0)
        setup.clock.advance(29.5)
        for _ in range(10):
            await asyncio.sleep(0)
        early = setup.changes.empty()
        setup.clock.advance(0.5)
        change = await setup.changes.get()
    watching.cancel()

    assert early
    assert change == PlatformChanged("slurm")


async def test_adapter_that_cannot_be_closed_holds_up_nothing(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_adapter: InMemoryPlatformAdapter) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(InMemoryPlatformAdapter, "aclose", fail)
    await setup.calls.perform(ListAgents(), SECTION)

    await setup.calls.aclose()

    assert isinstance(await setup.calls.perform(ListAgents(), SECTION), AgentsListed)


async def test_section_is_removed_with_its_last_agent(setup: Setup) -> None:
    await setup.calls.perform(LAUNCH, SECTION)

    await setup.calls.perform(CleanPlatform((agent(1), agent(2))), SECTION)

    assert setup.platform.agents == {}
    assert setup.credentials.valid == {}


@pytest.mark.parametrize("cleaning", [CleanPlatform(), CleanPlatform(())], ids=["all", "section"])
async def test_cleaning_revokes_the_credentials_of_a_launch_without_a_result(
    setup: Setup, cleaning: CleanPlatform
) -> None:
    setup.platform.failure = PlatformError("cut")
    await setup.calls.perform(LAUNCH, SECTION)
    issued = set(setup.credentials.valid)
    setup.platform.failure = None

    result = await setup.calls.perform(cleaning, SECTION)

    assert issued == {agent(1), agent(2)}
    assert result == PlatformCleaned("slurm")
    assert setup.credentials.valid == {}


async def test_agent_that_was_terminated_gets_new_credentials_if_it_is_launched(
    setup: Setup,
) -> None:
    setup.platform.failure = PlatformError("cut")
    await setup.calls.perform(LAUNCH, SECTION)
    setup.platform.failure = None
    await setup.calls.perform(TerminateAgents((agent(1),)), SECTION)

    await setup.calls.perform(LAUNCH, SECTION)

    assert setup.credentials.issued == [agent(1), agent(2), agent(1)]
    assert set(setup.credentials.valid) == {agent(1), agent(2)}


async def test_platform_that_is_closed_is_watched_no_more(setup: Setup) -> None:
    await setup.calls.perform(ListAgents(), SECTION)
    await setup.calls.aclose()
    watching = asyncio.ensure_future(setup.calls.watch())
    with capture_logs() as lines:
        for _ in range(5):  # turns of the loop
            await asyncio.sleep(0)
        setup.platform.set_phase(agent(1), AgentPhase.RUNNING)
        for _ in range(5):
            await asyncio.sleep(0)

    assert not watching.done()
    watching.cancel()
    assert (lines, setup.clock.sleepers) == ([], 0)
    assert setup.changes.empty()


async def test_platform_is_not_watched_before_its_agents_were_listed(setup: Setup) -> None:
    await setup.calls.perform(OpenPlatform(), SECTION)
    watching = asyncio.ensure_future(setup.calls.watch())
    await asyncio.sleep(0)
    setup.platform.set_phase(agent(1), AgentPhase.RUNNING)
    for _ in range(5):  # turns of the loop
        await asyncio.sleep(0)

    assert setup.changes.empty()
    watching.cancel()


async def test_adapter_is_closed_once_before_another_one_is_opened(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []

    async def close(_adapter: InMemoryPlatformAdapter) -> None:
        steps.append(f"close {len(setup.opener.opened)}")

    monkeypatch.setattr(InMemoryPlatformAdapter, "aclose", close)

    for action in (ListAgents(), ListAgents(), OpenPlatform(), ListAgents()):
        await setup.calls.perform(action, SECTION)
    await setup.calls.aclose()
    await setup.calls.aclose()

    assert steps == ["close 1", "close 2"]


async def test_errors_of_an_adapter_that_it_must_not_raise_are_logged(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_adapter: InMemoryPlatformAdapter) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(InMemoryPlatformAdapter, "wait_changed", fail)
    monkeypatch.setattr(InMemoryPlatformAdapter, "aclose", fail)
    watching = asyncio.ensure_future(setup.calls.watch())
    with capture_logs() as lines:
        await setup.calls.perform(ListAgents(), SECTION)
        async with asyncio.timeout(30):
            while not setup.clock.sleepers:  # noqa: ASYNC110 - the clock has no event
                await asyncio.sleep(0)
        setup.platform.failure = RuntimeError("broken")
        await setup.calls.perform(ListAgents(), SECTION)
        await setup.calls.aclose()
    watching.cancel()

    assert [line["event"] for line in lines] == ["watch failed", "platform failed", "close failed"]
    assert {(line["pool"], line["platform"]) for line in lines} == {(POOL, "slurm")}
