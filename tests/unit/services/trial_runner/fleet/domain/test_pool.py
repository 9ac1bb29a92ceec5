from dataclasses import replace

import pytest

from svc_trial_runner.fleet.domain.agents import AgentName, AgentPhase, LaunchFailure, PlatformAgent
from svc_trial_runner.fleet.domain.decisions import decide
from svc_trial_runner.fleet.domain.needs import PoolPlatform
from svc_trial_runner.fleet.domain.pool import Pool
from svc_trial_runner.fleet.domain.pool_events import (
    ActionCompleted,
    ActionFailed,
    ActionStarted,
    AgentEnrolled,
    AgentsLaunched,
    AgentsListed,
    AgentsTerminated,
    CleanPlatform,
    DrainSent,
    LaunchAgents,
    ListAgents,
    ListeningChanged,
    NeedChanged,
    OpenPlatform,
    PlatformAction,
    PlatformChanged,
    PlatformCleaned,
    PlatformOpened,
    PresenceReceived,
    RestoredAgent,
    SlotsSent,
    StateRestored,
    TerminateAgents,
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
    assert delays[-1] == 300.0


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

    list_agents(pool, "slurm", now_s=29.5)
    assert not pool.agents[name].ended

    list_agents(pool, "slurm", now_s=30.0)
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


@pytest.mark.parametrize(
    ("trials", "uploads", "idle", "worked"),
    [(0, 0, True, False), (1, 0, False, True), (0, 1, False, False)],
    ids=["idle", "runs a trial", "stores outputs"],
)
def test_agent_is_idle_without_trials_and_outputs_to_store(
    trials: int, uploads: int, *, idle: bool, worked: bool
) -> None:
    pool = opened_pool(need(waiting=1))
    (name,) = launch(pool)

    pool.apply(PresenceReceived(name, trials, uploads=uploads), 5.0)
    pool.apply(PresenceReceived(name, trials, uploads=uploads), 7.0)

    record = pool.agents[name]
    assert record.idle_since_s == (5.0 if idle else None)
    assert (record.trials, record.has_worked, record.heard_s) == (trials, worked, 7.0)


def test_agent_that_works_again_is_not_idle() -> None:
    pool = opened_pool(need(waiting=1))
    (name,) = launch(pool)

    for now_s, trials in ((1.0, 0), (2.0, 1)):
        pool.apply(PresenceReceived(name, trials), now_s)

    assert pool.agents[name].idle_since_s is None


def test_agent_that_drains_and_leaves_stays_so_and_has_its_platform_listed() -> None:
    pool = opened_pool(need(waiting=1))
    (name,) = launch(pool)
    join(pool, name)
    assert not pool.agents[name].leaves

    pool.apply(PresenceReceived(name, 0, draining=True), 1.0)
    pool.apply(PresenceReceived(name, 0), 2.0)
    changed = pool.platforms["slurm"].changed
    pool.apply(PresenceReceived(name, 0, leaving=True), 3.0)
    pool.apply(PresenceReceived(name, 0, leaving=True), 4.0)

    record = pool.agents[name]
    assert (record.draining, record.leaves, record.left_s) == (True, True, 3.0)
    assert (changed, pool.platforms["slurm"].changed) == (False, True)


def test_ordered_slots_hold_when_the_agent_reports_them() -> None:
    pool = opened_pool(need(waiting=1))
    (name,) = launch(pool)
    record = pool.agents[name]
    pool.apply(SlotsSent({name: 3, agent(9): 2}), 4.0)
    assert (record.ordered_slots, record.slots_sent_s, record.follows_slots) == (3, 4.0, False)

    pool.apply(PresenceReceived(name, 0, slots=2), 5.0)
    before = (record.slots, record.ordered_slots, record.follows_slots)
    pool.apply(PresenceReceived(name, 0, slots=3), 6.0)

    assert before == (1, 3, True)
    assert (record.slots, record.ordered_slots) == (3, None)
    pool.apply(PresenceReceived(name, 0), 7.0)
    assert not record.follows_slots


def test_orders_to_unknown_agents_are_ignored() -> None:
    pool = opened_pool(need(waiting=1))
    (name,) = launch(pool)

    pool.apply(DrainSent((agent(9), name)), 4.0)

    assert pool.agents[name].drain_sent_s == 4.0
    assert set(pool.agents) == {name}


def test_time_of_agents_is_summed_from_the_machine_to_the_end() -> None:
    pool = opened_pool(need(waiting=2))
    first, second = launch(pool)
    at_the_launch = pool.agent_s(5.0)
    join(pool, first, second, now_s=10.0)
    at_the_start = pool.agent_s(0.0)

    pool.give_up(pool.agents[first], "it is silent", 30.0)
    pool.apply(ActionStarted("slurm", TerminateAgents((first,))), 31.0)
    pool.apply(AgentsTerminated("slurm"), 40.0)

    assert (at_the_launch, at_the_start) == (0.0, 0.0)
    assert set(pool.agents) == {second}
    assert pool.agent_s(50.0) == 20.0 + 40.0


def test_termination_ends_the_time_of_its_agents_only() -> None:
    pool = opened_pool(need(waiting=2))
    first, second = launch(pool)
    join(pool, first, second)

    pool.apply(ActionStarted("slurm", TerminateAgents((first,))), 10.0)
    pool.apply(AgentsTerminated("slurm"), 20.0)

    assert set(pool.agents) == {second}
    assert pool.agent_s(100.0) == 20.0 + 100.0


def test_closed_pool_is_clean_when_nothing_is_left_on_its_platforms() -> None:
    pool = opened_pool(need(waiting=1))
    (name,) = launch(pool)
    states = [pool.cleaned]

    pool.apply(NeedChanged(need(closed=True, sequence=2)), 1.0)
    states.append(pool.cleaned)
    pool.apply(ActionStarted("slurm", CleanPlatform()), 2.0)
    pool.apply(PlatformCleaned("slurm"), 3.0)
    states.append(pool.cleaned)
    pool.apply(NeedChanged(need(waiting=1, sequence=3)), 4.0)

    assert states == [False, False, True]
    assert name not in pool.agents
    assert not pool.cleaned
    assert not pool.platforms["slurm"].cleaned


def test_platform_that_was_never_used_needs_no_cleaning() -> None:
    pool = Pool(INSTALLATION, POOL)
    without_a_need = pool.cleaned

    pool.apply(NeedChanged(need(closed=True)), 0.0)

    assert (without_a_need, pool.cleaned) == (False, True)


@pytest.mark.parametrize(("was_cleaned", "used"), [(True, False), (False, True)])
def test_next_fleet_restores_numbers_times_and_use(*, was_cleaned: bool, used: bool) -> None:
    pool = Pool(INSTALLATION, POOL)
    agents = (
        RestoredAgent(agent(7), "slurm", slots=2, launching=True),
        RestoredAgent(agent(3), "slurm", slots=2, launching=False, counts_from_s=2.0),
    )

    pool.apply(StateRestored(agents, 5, cleaned=was_cleaned, ended_agent_s=100.0), 10.0)
    pool.apply(NeedChanged(need(waiting=2)), 10.0)

    assert pool.last_number == 7
    assert [pool.agents[agent(number)].launched_s for number in (7, 3)] == [None, 10.0]
    assert pool.agent_s(12.0) == 100.0 + 10.0
    assert pool.platforms["slurm"].used is used


def test_time_without_trials_begins_with_the_last_one() -> None:
    pool = Pool(INSTALLATION, POOL)
    found = []

    for now_s, waiting, running in (
        (1.0, 0, 0),
        (2.0, 0, 0),
        (3.0, 0, 1),
        (4.0, 1, 0),
        (5.0, 0, 0),
    ):
        pool.apply(NeedChanged(need(waiting, running)), now_s)
        found.append(pool.no_demand_since_s)

    assert found == [1.0, 1.0, None, None, 5.0]


@pytest.mark.parametrize(("ended_s", "failed"), [(29.9, True), (30.0, False)])
def test_agent_that_ends_within_thirty_seconds_is_a_failed_launch(
    ended_s: float, *, failed: bool
) -> None:
    pool = opened_pool(need(waiting=1))
    (name,) = launch(pool)
    join(pool, name)

    list_agents(pool, "slurm", PlatformAgent(name, AgentPhase.ENDED), now_s=ended_s)

    back_off = pool.platforms["slurm"].back_offs.get(LaunchAgents)
    assert (back_off is not None) is failed
    if back_off is not None:
        assert back_off.reason == f"agent {name} on host ended: no reason is known"


def test_agent_that_was_ordered_to_drain_may_end_soon() -> None:
    pool = opened_pool(need(waiting=1))
    (name,) = launch(pool)
    join(pool, name)
    pool.apply(DrainSent((name,)), 1.0)

    list_agents(pool, "slurm", PlatformAgent(name, AgentPhase.ENDED), now_s=2.0)

    assert pool.platforms["slurm"].back_offs == {}


@pytest.mark.parametrize(
    ("action", "result"),
    [
        (OpenPlatform(), PlatformOpened("slurm")),
        (ListAgents(), AgentsListed("slurm", (), None)),
        (TerminateAgents(()), AgentsTerminated("slurm")),
        (CleanPlatform(), PlatformCleaned("slurm")),
    ],
)
def test_success_of_an_action_ends_its_delays(
    action: PlatformAction, result: ActionCompleted
) -> None:
    pool = opened_pool(need(waiting=1))
    platform = pool.platforms["slurm"]
    pool.apply(ActionStarted("slurm", action), 1.0)
    pool.apply(ActionFailed("slurm", action, "no route"), 1.0)
    failed = (platform.retry_s(type(action)), platform.listed_s, platform.action)

    pool.apply(ActionStarted("slurm", action), 3.0)
    pool.apply(result, 3.0)

    assert failed == (3.0, None, None)
    assert platform.retry_s(type(action)) is None
    assert platform.action is None


def test_change_on_a_platform_makes_its_list_outdated_until_the_next_one() -> None:
    pool = opened_pool(need(waiting=1))

    pool.apply(PlatformChanged("slurm"), 1.0)
    changed = pool.platforms["slurm"].changed
    list_agents(pool, "slurm", now_s=2.0)

    assert (changed, pool.platforms["slurm"].changed) == (True, False)


def test_machine_that_enrols_again_replaces_its_former_agent() -> None:
    pool = opened_pool(need(waiting=1))
    for number, replaced, now_s in ((4, None, 1.0), (5, agent(4), 2.0)):
        pool.apply(AgentEnrolled(agent(number), "joined", 2, "host", replaced), now_s)

    before, after = pool.agents[agent(4)], pool.agents[agent(5)]

    assert (before.ended, before.phase, before.left_s) == (True, AgentPhase.ENDED, 2.0)
    assert before.reason == f"its machine has enrolled again, as {agent(5)}"
    assert (after.ended, after.phase, after.slots) == (False, AgentPhase.RUNNING, 2)
    assert (after.launched_s, after.started_s, after.machine) == (2.0, 2.0, "host")
    assert pool.last_number == 5


def test_platforms_follow_the_order_and_the_sections_of_the_need() -> None:
    pool = opened_pool(need(1, 0, "slurm", "ray"))
    pool.platforms["slurm"].fail(ListAgents, 0.0, "no route")
    sections = (PoolPlatform("ray", {"slots": 1}), PoolPlatform("slurm", {"slots": 9}))

    pool.apply(NeedChanged(replace(need(1, sequence=2), platforms=sections)), 1.0)
    order = list(pool.platforms)
    slurm, ray = pool.platforms["slurm"], pool.platforms["ray"]
    changed = (slurm.opened, slurm.back_offs, slurm.kind, ray.opened)
    pool.apply(NeedChanged(replace(need(1, sequence=3), platforms=sections[:1])), 2.0)

    assert order == ["ray", "slurm"]
    assert changed == (False, {}, "slurm", True)
    assert (slurm.retired, ray.retired) == (True, False)


def test_first_list_with_an_agent_has_the_times_of_its_launch_and_start() -> None:
    pool = Pool(INSTALLATION, POOL)
    restored = RestoredAgent(agent(1), "old", slots=1, launching=True)
    pool.apply(StateRestored((restored,), last_number=1), 0.0)
    pool.apply(NeedChanged(need(waiting=1)), 0.0)

    for now_s in (4.0, 6.0):
        list_agents(pool, "slurm", PlatformAgent(agent(1), AgentPhase.RUNNING), now_s=now_s)

    record = pool.agents[agent(1)]
    assert (record.launched_s, record.started_s) == (4.0, 4.0)
    assert record.platform == "slurm"


def test_time_of_an_agent_counts_from_its_first_presence_if_no_list_was_earlier() -> None:
    pool = opened_pool(need(waiting=1))
    (name,) = launch(pool)

    pool.apply(PresenceReceived(name, 0), 5.0)

    assert pool.agent_s(9.0) == 4.0
