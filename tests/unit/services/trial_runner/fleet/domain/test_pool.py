from dataclasses import replace

import pytest

from svc_trial_runner.fleet.domain.agents import AgentName, AgentPhase, LaunchFailure, PlatformAgent
from svc_trial_runner.fleet.domain.decisions import decide
from svc_trial_runner.fleet.domain.needs import PoolPlatform
from svc_trial_runner.fleet.domain.pool import BACK_OFF_LIMIT_S, MISSING_AFTER_S, Pool
from svc_trial_runner.fleet.domain.pool_events import (
    ActionFailed,
    ActionStarted,
    AgentsLaunched,
    LaunchAgents,
    ListeningChanged,
    NeedChanged,
    OpenPlatform,
    PlatformChanged,
    PlatformOpened,
    PresenceReceived,
    RestoredAgent,
    StateRestored,
)
from tests.support.fleet_pools import (
    INSTALLATION,
    POOL,
    agent,
    join,
    launch,
    launched_numbers,
    list_agents,
    need,
    opened_pool,
)


def launch_and_fail(pool: Pool, now_s: float, *, permanent: bool = False) -> None:
    list_agents(pool, "slurm", now_s=now_s)
    action = decide(pool, now_s).actions["slurm"]
    assert isinstance(action, LaunchAgents)
    pool.apply(ActionStarted("slurm", action), now_s)
    failures = [LaunchFailure(one.name, "no", "pay", permanent) for one in action.agents]
    pool.apply(AgentsLaunched("slurm", tuple(failures)), now_s)
    list_agents(pool, "slurm", now_s=now_s)


def test_need_of_a_replaced_manager_is_ignored() -> None:
    pool = opened_pool(need(waiting=2, sequence=7))

    pool.apply(NeedChanged(need(waiting=9, sequence=6)), 0.0)

    assert pool.need is not None
    assert pool.need.waiting == 2


def test_need_of_another_pool_of_the_name_holds_though_its_sequence_is_smaller() -> None:
    pool = opened_pool(replace(need(waiting=2, sequence=7), closed=True, created_at_ns=2_000))

    pool.apply(NeedChanged(replace(need(waiting=9, sequence=6), created_at_ns=1_000)), 0.0)

    assert pool.need is not None
    assert (pool.need.waiting, pool.need.closed) == (9, False)


@pytest.mark.parametrize(
    ("running_s", "counted_s"),
    [
        (0.0, 600.0),  # an agent of an older version
        (60.0, 600.0),  # its process was started again
        (7_000.0, 7_000.0),
        (9e9, 7_200.0),
    ],
)
def test_agent_that_is_heard_from_again_counts_the_time_without_a_fleet(
    running_s: float, counted_s: float
) -> None:
    pool = opened_pool(need(waiting=1))
    restored = RestoredAgent(
        agent(3), "slurm", 1, launching=False, counts_from_s=-600.0, started_s=-7_200.0
    )
    pool.apply(StateRestored((restored,), 3, cleaned=False), 0.0)
    before = pool.agent_s(0.0)

    for now_s in (0.0, 5.0):
        pool.apply(PresenceReceived(agent(3), 1, running_s=running_s + now_s), now_s)

    assert before == 600.0
    assert pool.agent_s(5.0) == min(counted_s, 7_200.0) + 5.0


def test_time_of_an_agent_of_this_fleet_counts_from_its_machine() -> None:
    pool = opened_pool(need(waiting=1))
    (name,) = launch(pool, 0.0)
    join(pool, name, now_s=100.0)

    pool.apply(PresenceReceived(name, 1, running_s=1_000.0), 150.0)

    assert pool.agent_s(150.0) == 50.0


def test_delay_after_failed_launches_grows_to_a_limit() -> None:
    pool = opened_pool(need(waiting=1))
    delays = []
    now_s = 0.0
    for _ in range(12):
        launch_and_fail(pool, now_s)
        until_s = pool.platforms["slurm"].back_offs[LaunchAgents].until_s
        delays.append(until_s - now_s)
        now_s = until_s

    assert delays[:4] == [2.0, 4.0, 8.0, 16.0]
    assert delays[-1] == BACK_OFF_LIMIT_S


def test_agent_that_is_heard_from_ends_the_delays() -> None:
    pool = opened_pool(need(waiting=1))
    launch_and_fail(pool, 0.0)
    (name,) = launch(pool, 2.0)

    join(pool, name, now_s=3.0)

    assert pool.platforms["slurm"].back_offs == {}


def test_number_of_a_failed_launch_is_not_used_again() -> None:
    pool = opened_pool(need(waiting=1))
    launch_and_fail(pool, 0.0)

    assert launch(pool, 2.0) == [agent(2)]


def test_permanent_failure_waits_for_another_configuration() -> None:
    wanted = need(waiting=1)
    pool = opened_pool(wanted)
    launch_and_fail(pool, 0.0, permanent=True)
    assert launch(pool, 100_000.0) == []

    changed = (PoolPlatform("slurm", {"partition": "gpu"}),)
    pool.apply(NeedChanged(replace(wanted, platforms=changed)), 5.0)

    assert isinstance(decide(pool, 5.0).actions["slurm"], OpenPlatform)


@pytest.mark.parametrize(
    "result",
    [
        PlatformOpened("slurm"),
        ActionFailed("slurm", OpenPlatform(), "wrong password", permanent=True),
    ],
)
def test_section_that_changes_while_the_platform_is_opened_is_opened_next(
    result: PlatformOpened | ActionFailed,
) -> None:
    wanted = need(waiting=1)
    pool = Pool(INSTALLATION, POOL)
    pool.apply(NeedChanged(wanted), 0.0)
    pool.apply(ActionStarted("slurm", OpenPlatform()), 0.0)

    changed = (PoolPlatform("slurm", {"partition": "gpu"}),)
    pool.apply(NeedChanged(replace(wanted, platforms=changed)), 1.0)
    pool.apply(result, 2.0)
    assert decide(pool, 2.0).actions == {"slurm": OpenPlatform()}

    pool.apply(ActionStarted("slurm", OpenPlatform()), 2.0)
    pool.apply(PlatformOpened("slurm"), 3.0)
    assert pool.platforms["slurm"].opened


def test_same_need_again_changes_no_delay() -> None:
    wanted = need(waiting=1)
    pool = opened_pool(wanted)
    launch_and_fail(pool, 0.0)

    pool.apply(NeedChanged(wanted), 1.0)

    assert LaunchAgents in pool.platforms["slurm"].back_offs


def test_agents_of_an_earlier_process_are_found_by_the_list() -> None:
    pool = opened_pool(need(waiting=1))
    list_agents(pool, "slurm", PlatformAgent(agent(4), AgentPhase.RUNNING, "node-1"))

    assert pool.agents[agent(4)].machine == "node-1"
    assert pool.last_number == 4


def test_agents_of_others_on_the_list_are_ignored() -> None:
    pool = opened_pool(need(waiting=1))
    others = [AgentName("other000", POOL, 7), AgentName(INSTALLATION, "exp-2", 8)]
    list_agents(pool, "slurm", *(PlatformAgent(one, AgentPhase.RUNNING) for one in others))

    assert pool.agents == {}
    assert pool.last_number == 0


def test_launched_agent_may_be_missing_from_the_list_for_a_while() -> None:
    pool = opened_pool(need(waiting=1))
    (name,) = launch(pool)

    list_agents(pool, "slurm", now_s=1.0)
    assert not pool.agents[name].ended

    list_agents(pool, "slurm", now_s=MISSING_AFTER_S)
    assert pool.agents[name].ended


def test_agent_that_ends_before_it_is_heard_from_is_a_failed_launch() -> None:
    pool = opened_pool(need(waiting=1))
    (name,) = launch(pool)

    list_agents(pool, "slurm", PlatformAgent(name, AgentPhase.ENDED, "", "OUT_OF_MEMORY"))

    assert "OUT_OF_MEMORY" in pool.platforms["slurm"].back_offs[LaunchAgents].reason


def test_agent_that_has_worked_may_end() -> None:
    pool = opened_pool(need(waiting=1))
    (name,) = launch(pool)
    join(pool, name, trials=1)

    list_agents(pool, "slurm", PlatformAgent(name, AgentPhase.ENDED, "", "TIMEOUT"), now_s=9.0)

    assert pool.agents[name].ended
    assert pool.platforms["slurm"].back_offs == {}


def test_launch_without_an_answer_is_repeated_by_the_same_name() -> None:
    pool = opened_pool(need(waiting=1))
    action = decide(pool, 0.0).actions["slurm"]
    pool.apply(ActionStarted("slurm", action), 0.0)
    pool.apply(ActionFailed("slurm", action, "connection lost"), 1.0)

    list_agents(pool, "slurm", now_s=2.0)

    assert launched_numbers(decide(pool, 2.5)) == {}
    assert launched_numbers(decide(pool, 3.0)) == {"slurm": [1]}


def test_launch_without_an_answer_that_is_listed_is_not_repeated() -> None:
    pool = opened_pool(need(waiting=1))
    action = decide(pool, 0.0).actions["slurm"]
    pool.apply(ActionStarted("slurm", action), 0.0)
    pool.apply(ActionFailed("slurm", action, "connection lost"), 1.0)

    list_agents(pool, "slurm", PlatformAgent(agent(1), AgentPhase.RUNNING), now_s=2.0)

    assert launched_numbers(decide(pool, 100.0)) == {}


def test_published_agents_count_before_a_platform_lists_them() -> None:
    pool = Pool(INSTALLATION, POOL)
    restored = RestoredAgent(agent(3), "slurm", slots=2, launching=False)
    pool.apply(StateRestored((restored,), last_number=5), 0.0)
    pool.apply(NeedChanged(need(waiting=2)), 0.0)

    assert set(pool.agents) == {agent(3)}
    assert pool.last_number == 5
    assert launched_numbers(decide(pool, 0.0)) == {}


def test_silence_is_counted_from_the_return_of_the_bus() -> None:
    pool = opened_pool(need(waiting=1))
    (name,) = launch(pool)
    join(pool, name, now_s=1.0)
    pool.apply(ListeningChanged(listening=False), 2.0)
    assert decide(pool, 5_000.0).lost == ()

    pool.apply(ListeningChanged(listening=True), 5_000.0)

    assert pool.agents[name].heard_s == 5_000.0


def test_events_of_unknown_agents_and_platforms_change_nothing() -> None:
    pool = opened_pool(need(waiting=1))

    pool.apply(PresenceReceived(agent(9), 1), 0.0)
    pool.apply(PlatformChanged("ray"), 0.0)

    assert pool.agents == {}
    assert list(pool.platforms) == ["slurm"]


def test_agent_of_another_section_of_the_same_cluster_is_left_to_it() -> None:
    pool = opened_pool(need(2, 0, "slurm", "slurm"), capacity=1)
    first, second = launch(pool)
    join(pool, first, second)

    list_agents(
        pool,
        "slurm",
        PlatformAgent(first, AgentPhase.RUNNING),
        PlatformAgent(second, AgentPhase.ENDED, reason="its job is not known here"),
    )

    assert not pool.agents[second].ended
    assert pool.platforms["slurm"].back_offs == {}
