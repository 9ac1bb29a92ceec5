"""Decisions of the fleet over whole runs of pools, with faults, in virtual time."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc_trial_runner.fleet.domain.agents import AgentPhase, PlatformAgent
from svc_trial_runner.fleet.domain.decisions import decide
from svc_trial_runner.fleet.domain.needs import PoolLimits, PoolPlatform
from svc_trial_runner.fleet.domain.pool import Pool
from svc_trial_runner.fleet.domain.pool_events import (
    ActionFailed,
    ActionStarted,
    CleanPlatform,
    DrainSent,
    LaunchAgents,
    ListAgents,
    NeedChanged,
    OpenPlatform,
    PlatformCleaned,
    PlatformOpened,
    PresenceReceived,
    RestoredAgent,
    SlotsSent,
    StateRestored,
    TerminateAgents,
)
from svc_trial_runner.fleet.domain.pool_states import pool_state
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
from tests.support.fleet_simulation import Faults, FleetSimulation, SimulatedPlatform

BACK_OFF_LIMIT_S = 300.0
JOIN_LIMIT_S = 120.0
LEAVE_LIMIT_S = 20.0
LOST_AFTER_S = 150.0
QUEUE_PATIENCE_S = 30.0
RESERVED_S = 15.0
SILENT_AFTER_S = 20.0

BAD_DAYS = Faults(lost_answer=0.05, refused=0.1, launch_failure=0.15, agent_death=0.03, kill=0.03)


def test_burst_of_400_trials_reaches_the_limit_and_ends_at_no_agents() -> None:
    simulation = FleetSimulation(
        1, {"slurm": SimulatedPlatform()}, PoolLimits(max_agents=8, idle_s=5.0), concurrency=400
    )

    simulation.submit(400)
    simulation.run(lambda: simulation.done == 400 and simulation.count == 0, 3600)

    assert simulation.most == 8
    assert set(simulation.launches.values()) == {1}
    assert len(simulation.launches) == 8


@given(
    seed=st.integers(0, 2**32),
    most=st.integers(1, 6),
    slots=st.integers(1, 3),
    machines=st.one_of(st.none(), st.integers(1, 4)),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_no_fault_launches_twice_or_more_than_the_limit(
    seed: int, most: int, slots: int, machines: int | None
) -> None:
    simulation = FleetSimulation(
        seed,
        {"remote": SimulatedPlatform(machines), "slurm": SimulatedPlatform()},
        PoolLimits(max_agents=most, idle_s=5.0),
        concurrency=10,
        slots=slots,
        faults=BAD_DAYS,
    )

    simulation.submit(30)
    simulation.run(lambda: simulation.done == 30, 200_000)
    simulation.close()
    simulation.run(lambda: simulation.state.cleaned, 100_000)

    assert simulation.most <= most
    assert set(simulation.launches.values()) == {1}
    assert simulation.count == 0


def test_agents_are_launched_for_waiting_and_running_trials_by_their_slots() -> None:
    pool = opened_pool(need(waiting=5, running=2, slots=3))

    assert launched_numbers(decide(pool, 0.0)) == {"slurm": [1, 2, 3]}


def test_concurrency_is_shared_by_the_machines_of_all_platforms() -> None:
    pool = opened_pool(need(8, 0, "remote", "local", slots=None), capacity=2)

    decision = decide(pool, 0.0)

    assert launched_numbers(decision) == {"remote": [1, 2], "local": [3, 4]}
    action = decision.actions["remote"]
    assert isinstance(action, LaunchAgents)
    assert action.agents[0].slots == 2


def test_agents_without_reuse_run_one_trial() -> None:
    wanted = replace(need(waiting=2), platforms=(PoolPlatform("remote", {"reuseMode": False}),))
    action = decide(opened_pool(wanted), 0.0).actions["remote"]

    assert isinstance(action, LaunchAgents)
    assert [(one.slots, one.max_trials) for one in action.agents] == [(1, 1), (1, 1)]


def test_least_number_of_agents_stays_without_trials() -> None:
    pool = opened_pool(need(limits=PoolLimits(min_agents=2, idle_s=5.0)))
    names = launch(pool)
    join(pool, *names)

    assert len(names) == 2
    assert decide(pool, 6.0).drains == ()


def test_platform_that_fails_leaves_its_share_to_the_next_one() -> None:
    pool = opened_pool(need(4, 0, "remote", "slurm"), capacity=4)
    pool.platforms["remote"].fail(ListAgents, 0.0, "no route to host")
    pool.platforms["remote"].listed_s = None

    assert launched_numbers(decide(pool, 0.0)) == {"slurm": [1, 2, 3, 4]}


def test_permanent_failure_to_open_is_not_tried_again() -> None:
    pool = Pool(INSTALLATION, POOL)
    pool.apply(NeedChanged(need(1)), 0.0)
    pool.platforms["slurm"].fail(OpenPlatform, 0.0, "partition must exist", permanent=True)

    assert decide(pool, 1e6).actions == {}


def test_permanent_failure_to_launch_leaves_the_share_to_the_next_platform() -> None:
    pool = opened_pool(need(1, 0, "remote", "slurm"))
    pool.platforms["remote"].fail(LaunchAgents, 0.0, "image must be given", permanent=True)
    for key in pool.platforms:
        list_agents(pool, key, now_s=1e6)

    assert launched_numbers(decide(pool, 1e6)) == {"slurm": [1]}


def test_permanent_failure_to_list_is_tried_again_after_the_longest_delay() -> None:
    pool = opened_pool(need())
    platform = pool.platforms["slurm"]
    platform.fail(ListAgents, 0.0, "no route to host", permanent=True)
    platform.changed = True

    early = decide(pool, BACK_OFF_LIMIT_S - 1)

    assert (early.actions, early.wake_s) == ({}, BACK_OFF_LIMIT_S)
    assert decide(pool, BACK_OFF_LIMIT_S).actions == {"slurm": ListAgents()}


def test_platform_that_is_busy_keeps_its_share() -> None:
    pool = opened_pool(need(2, 0, "remote", "slurm"), capacity=4)
    pool.apply(ActionStarted("remote", ListAgents()), 0.0)

    assert launched_numbers(decide(pool, 0.0)) == {}


def test_platform_that_is_being_opened_keeps_its_share_for_a_while() -> None:
    pool = Pool(INSTALLATION, POOL)
    pool.apply(NeedChanged(need(2, 0, "remote", "slurm")), 0.0)
    pool.apply(ActionStarted("remote", OpenPlatform()), 0.0)
    pool.apply(ActionStarted("slurm", OpenPlatform()), 0.0)
    pool.apply(PlatformOpened("slurm"), 0.0)
    list_agents(pool, "slurm")

    assert launched_numbers(decide(pool, RESERVED_S - 0.5)) == {}
    assert decide(pool, 0.0).wake_s == RESERVED_S
    assert launched_numbers(decide(pool, RESERVED_S)) == {"slurm": [1, 2]}


def test_long_queue_of_a_platform_lets_the_others_grow() -> None:
    pool = opened_pool(need(1, 0, "slurm", "local"))
    (name,) = launch(pool)
    list_agents(pool, "slurm", PlatformAgent(name, AgentPhase.PENDING))

    list_agents(pool, "local", now_s=QUEUE_PATIENCE_S - 0.5)
    assert launched_numbers(decide(pool, QUEUE_PATIENCE_S - 0.5)) == {}
    list_agents(pool, "local", now_s=QUEUE_PATIENCE_S)
    assert launched_numbers(decide(pool, QUEUE_PATIENCE_S)) == {"local": [2]}


def test_idle_agents_drain_after_the_idle_time_and_are_ended_if_they_stay() -> None:
    pool = opened_pool(need(waiting=1, limits=PoolLimits(idle_s=5.0)))
    (name,) = launch(pool)
    join(pool, name)
    pool.apply(NeedChanged(need(limits=PoolLimits(idle_s=5.0), sequence=2)), 0.0)
    assert decide(pool, 4.0).drains == ()
    assert decide(pool, 4.0).wake_s == 5.0

    assert decide(pool, 5.0).drains == (name,)
    pool.apply(DrainSent((name,)), 5.0)
    pool.apply(PresenceReceived(name, 0, draining=True), 5.0)

    assert decide(pool, 6.0).actions == {}
    late_s = 5.0 + LEAVE_LIMIT_S
    assert decide(pool, late_s - 0.5).actions == {}
    pool.apply(PresenceReceived(name, 0, draining=True), late_s)
    assert decide(pool, late_s).actions == {"slurm": TerminateAgents((name,))}


def test_agent_that_stores_outputs_is_not_idle_and_not_ended() -> None:
    pool = opened_pool(need(waiting=1, limits=PoolLimits(idle_s=5.0)))
    (name,) = launch(pool)
    join(pool, name)
    pool.apply(PresenceReceived(name, 0, uploads=1), 1.0)
    pool.apply(NeedChanged(need(limits=PoolLimits(idle_s=5.0), sequence=2)), 1.0)
    assert decide(pool, 10.0).drains == ()

    pool.apply(DrainSent((name,)), 10.0)
    late_s = 10.0 + 2 * LEAVE_LIMIT_S
    pool.apply(PresenceReceived(name, 0, draining=True, uploads=1), late_s)

    assert TerminateAgents((name,)) not in decide(pool, late_s).actions.values()


def test_order_to_drain_is_repeated_until_it_is_confirmed() -> None:
    pool = opened_pool(need(waiting=1))
    (name,) = launch(pool)
    join(pool, name)
    pool.apply(DrainSent((name,)), 1.0)

    assert decide(pool, 5.5).drains == ()
    assert decide(pool, 2.0).wake_s == 6.0
    assert decide(pool, 6.0).drains == (name,)


def test_agent_with_trials_is_not_ended_by_the_order_to_drain() -> None:
    pool = opened_pool(need(running=1))
    (name,) = launch(pool)
    join(pool, name, trials=1)
    pool.apply(DrainSent((name,)), 0.0)
    pool.apply(PresenceReceived(name, 1, draining=True), 0.0)

    assert TerminateAgents((name,)) not in decide(pool, 1_000.0).actions.values()


def test_agents_above_a_lowered_limit_drain() -> None:
    pool = opened_pool(need(waiting=3))
    names = launch(pool)
    join(pool, *names, trials=1)
    lowered = need(running=3, limits=PoolLimits(max_agents=1), sequence=2)
    pool.apply(NeedChanged(lowered), 1.0)

    assert set(decide(pool, 1.0).drains) == {agent(2), agent(3)}


def test_queued_agents_are_ended_when_no_trial_waits() -> None:
    pool = opened_pool(need(waiting=1))
    (name,) = launch(pool)
    list_agents(pool, "slurm", PlatformAgent(name, AgentPhase.PENDING))
    pool.apply(NeedChanged(need(sequence=2)), 0.0)

    assert decide(pool, 60.0).actions == {"slurm": TerminateAgents((name,))}


def test_agent_that_is_never_heard_from_is_given_up() -> None:
    pool = opened_pool(need(waiting=1))
    (name,) = launch(pool)
    join(pool)

    assert decide(pool, JOIN_LIMIT_S - 0.5).lost == ()
    (lost,) = decide(pool, JOIN_LIMIT_S).lost
    pool.give_up(pool.agents[name], lost[1], JOIN_LIMIT_S)

    assert lost[0] == name
    assert "did not reach the bus" in pool_state(pool, JOIN_LIMIT_S).reason
    assert decide(pool, JOIN_LIMIT_S).actions == {"slurm": TerminateAgents((name,))}


def test_silent_agent_is_replaced_and_later_given_up() -> None:
    pool = opened_pool(need(waiting=1))
    (name,) = launch(pool)
    join(pool, name)

    assert launched_numbers(decide(pool, SILENT_AFTER_S - 0.5)) == {}
    assert launched_numbers(decide(pool, SILENT_AFTER_S)) == {"slurm": [2]}
    assert decide(pool, LOST_AFTER_S - 0.5).lost == ()
    assert [one for one, _ in decide(pool, LOST_AFTER_S).lost] == [name]


def test_closed_pool_waits_for_last_reports_and_is_cleaned() -> None:
    pool = opened_pool(need(running=1))
    (name,) = launch(pool)
    join(pool, name, trials=1)
    pool.apply(NeedChanged(need(closed=True, sequence=2)), 0.0)
    assert decide(pool, 0.0).drains == (name,)
    assert decide(pool, 0.0).actions == {}
    pool.apply(DrainSent((name,)), 0.0)

    pool.apply(PresenceReceived(name, 0, draining=True), 1.0)
    assert decide(pool, 1.0).actions == {"slurm": CleanPlatform()}
    pool.apply(ActionStarted("slurm", CleanPlatform()), 1.0)
    pool.apply(PlatformCleaned("slurm"), 1.0)

    assert pool_state(pool, 1.0).cleaned
    assert decide(pool, 1.0).actions == {}


def test_closed_pool_that_never_used_its_platforms_is_clean() -> None:
    pool = Pool(INSTALLATION, POOL)
    pool.apply(NeedChanged(need(closed=True)), 0.0)

    assert decide(pool, 0.0).actions == {}
    assert pool_state(pool, 0.0).cleaned


def test_pool_that_is_opened_again_is_used_again() -> None:
    pool = opened_pool(need(closed=True))
    pool.apply(ActionStarted("slurm", CleanPlatform()), 1.0)
    pool.apply(PlatformCleaned("slurm"), 1.0)

    pool.apply(NeedChanged(need(waiting=1, sequence=2)), 2.0)

    assert not pool_state(pool, 2.0).cleaned
    assert launched_numbers(decide(pool, 2.0)) == {"slurm": [1]}


def test_platform_that_left_the_pool_is_cleaned() -> None:
    pool = opened_pool(need(1, 0, "remote", "slurm"))
    (name,) = launch(pool)
    join(pool, name)

    pool.apply(NeedChanged(need(1, 0, "slurm", sequence=2)), 1.0)
    decision = decide(pool, 1.0)

    assert decision.drains == (name,)
    assert decision.actions["remote"] == CleanPlatform()
    assert launched_numbers(decision) == {"slurm": [2]}


def test_section_that_left_a_cluster_ends_its_own_agents_only() -> None:
    pool = opened_pool(need(2, 0, "slurm", "slurm"), capacity=1)
    first, second = launch(pool)
    join(pool, first, second)

    pool.apply(NeedChanged(need(2, 0, "slurm", sequence=2)), 1.0)

    assert decide(pool, 1.0).actions["slurm-2"] == CleanPlatform((second,))


def test_agent_that_works_is_not_ended_because_its_platform_says_that_it_waits() -> None:
    pool = opened_pool(need(running=1))
    (name,) = launch(pool)
    join(pool, name, trials=1)
    pool.apply(NeedChanged(need(running=1, draining=True, sequence=2)), 1.0)
    list_agents(pool, "slurm", PlatformAgent(name, AgentPhase.PENDING), now_s=1.0)

    assert TerminateAgents not in map(type, decide(pool, 1.0).actions.values())


def test_found_agent_that_had_a_machine_has_time_for_its_first_presence() -> None:
    pool = Pool(INSTALLATION, POOL)
    found = RestoredAgent(agent(1), "slurm", 1, launching=False, counts_from_s=-60.0)
    pool.apply(StateRestored((found,), last_number=1), 0.0)
    pool.apply(NeedChanged(need(draining=True)), 0.0)
    pool.apply(ActionStarted("slurm", OpenPlatform()), 0.0)
    pool.apply(PlatformOpened("slurm"), 0.0)
    list_agents(pool, "slurm", PlatformAgent(agent(1), AgentPhase.PENDING))

    assert decide(pool, 0.0).actions == {}
    after = decide(pool, SILENT_AFTER_S).actions
    assert after == {"slurm": TerminateAgents((agent(1),))}


def test_nothing_is_decided_before_the_first_need() -> None:
    assert decide(Pool(INSTALLATION, POOL), 0.0).actions == {}


def test_drained_pool_launches_nothing_and_drains_its_agents() -> None:
    pool = opened_pool(need(waiting=2))
    join(pool, *launch(pool), trials=1)

    pool.apply(NeedChanged(need(waiting=4, running=2, draining=True, sequence=2)), 1.0)
    decision = decide(pool, 1.0)

    assert launched_numbers(decision) == {}
    assert set(decision.drains) == {agent(1), agent(2)}
    assert pool_state(pool, 1.0).reason == "the pool is drained"
    assert pool_state(pool, 1.0).remedy.endswith(f"nnictl pool drain {POOL} --undo")


def test_agents_in_a_queue_of_a_drained_pool_are_terminated() -> None:
    pool = opened_pool(need(waiting=1))
    launch(pool)
    list_agents(pool, "slurm", PlatformAgent(agent(1), AgentPhase.PENDING, "", "Priority"))

    pool.apply(NeedChanged(need(waiting=1, draining=True, sequence=2)), 1.0)

    assert decide(pool, 1.0).actions == {"slurm": TerminateAgents((agent(1),))}


def test_pool_that_is_drained_no_more_grows_again() -> None:
    pool = opened_pool(need(waiting=1, draining=True))
    assert launched_numbers(decide(pool, 0.0)) == {}

    pool.apply(NeedChanged(need(waiting=1, sequence=2)), 1.0)

    assert launched_numbers(decide(pool, 1.0)) == {"slurm": [1]}


def test_used_up_time_drains_the_agents_and_names_the_limit() -> None:
    limits = PoolLimits(max_agent_s=7200.0)
    pool = opened_pool(need(waiting=2, limits=limits))
    join(pool, *launch(pool), trials=1)

    early = decide(pool, 3599.0)
    late = decide(pool, 3600.0)

    assert early.drains == ()
    assert set(late.drains) == {agent(1), agent(2)}
    pool.apply(NeedChanged(need(waiting=1, running=2, limits=limits, sequence=2)), 3600.0)
    state = pool_state(pool, 3600.0)
    assert state.reason == "the pool has used 2 of 2 agent-hours (maxAgentTime)"
    assert state.remedy == "raise the limit: nnictl update agents 1 --max-agent-time TIME"
    shared = replace(need(waiting=1, running=2, limits=limits, sequence=3), pool="gpus")
    pool.apply(NeedChanged(shared), 3600.0)
    assert "nnictl pool update gpus FILE" in pool_state(pool, 3600.0).remedy


def test_fleet_wakes_when_the_time_is_used_up() -> None:
    pool = opened_pool(need(waiting=2, limits=PoolLimits(max_agent_s=20.0)))
    join(pool, *launch(pool), trials=1)

    # Two agents use 20 s in 10 s, before anything else: presences are missed after 20 s.
    assert decide(pool, 0.0).wake_s == 10.0


def test_limit_of_cost_is_a_limit_of_time_at_the_price_of_an_agent() -> None:
    limits = PoolLimits(max_agent_s=7200.0, max_cost=3.0, cost_per_agent_hour=6.0)
    pool = opened_pool(need(waiting=1, limits=limits))
    join(pool, *launch(pool), trials=1)

    pool.apply(NeedChanged(need(waiting=1, running=1, limits=limits, sequence=2)), 1800.0)

    assert decide(pool, 1799.0).drains == ()
    assert decide(pool, 1800.0).drains == (agent(1),)
    state = pool_state(pool, 1800.0)
    assert state.reason == "the pool has used 3 of the cost of 3 (maxCost)"
    assert state.remedy == "raise the limit: nnictl update agents 1 --max-cost COST"


def test_raised_limit_lets_the_pool_grow_again() -> None:
    pool = opened_pool(need(waiting=1, limits=PoolLimits(max_agent_s=10.0)))
    join(pool, *launch(pool), trials=1)
    list_agents(pool, "slurm", PlatformAgent(agent(1), AgentPhase.ENDED), now_s=10.0)
    pool.apply(NeedChanged(need(waiting=1, limits=PoolLimits(max_agent_s=10.0), sequence=2)), 11.0)
    assert launched_numbers(decide(pool, 11.0)) == {}

    pool.apply(NeedChanged(need(waiting=1, limits=PoolLimits(max_agent_s=99.0), sequence=3)), 12.0)
    pool.agents.clear()

    assert launched_numbers(decide(pool, 12.0)) == {"slurm": [2]}


def test_time_of_agents_counts_on_in_the_next_process_of_the_fleet() -> None:
    limits = PoolLimits(max_agent_s=100.0)
    first = opened_pool(need(waiting=2, limits=limits))
    join(first, *launch(first), trials=1)
    list_agents(
        first,
        "slurm",
        PlatformAgent(agent(1), AgentPhase.ENDED),
        PlatformAgent(agent(2), AgentPhase.RUNNING),
        now_s=30.0,
    )

    second = Pool(INSTALLATION, POOL)
    second.apply(pool_state(first, 40.0).restored(), 50.0)

    assert second.agent_s(50.0) == 30.0 + 50.0


def test_time_in_a_queue_does_not_count() -> None:
    pool = opened_pool(need(waiting=1))
    launch(pool)
    list_agents(pool, "slurm", PlatformAgent(agent(1), AgentPhase.PENDING), now_s=10.0)
    list_agents(pool, "slurm", PlatformAgent(agent(1), AgentPhase.STARTING), now_s=60.0)

    assert pool.agent_s(100.0) == 40.0


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_limit_of_time_holds_however_often_the_fleet_is_killed(seed: int) -> None:
    limit_s, agents = 300.0, 4
    simulation = FleetSimulation(
        seed,
        {"slurm": SimulatedPlatform()},
        PoolLimits(max_agents=agents, idle_s=5.0, max_agent_s=limit_s),
        concurrency=8,
        faults=Faults(kill=0.05, agent_death=0.02),
    )

    simulation.submit(1000)
    simulation.run(lambda: simulation.count == 0 and simulation.agent_s > 0, 36_000)

    # Each agent may end its trial, of at most 15 s, after the limit; takes up to 20 s to be ended
    # after that; and is known to run a list, of at most 31 s, after its start.
    assert simulation.agent_s <= limit_s + agents * (15 + 20 + 31)
    assert simulation.done > 0


def test_agents_follow_a_raised_concurrency() -> None:
    pool = opened_pool(need(1, 0, slots=None, concurrency=1), capacity=1)
    join(pool, *launch(pool))
    pool.apply(PresenceReceived(agent(1), 1, slots=1), 1.0)

    pool.apply(NeedChanged(need(3, 1, slots=None, concurrency=4, sequence=2)), 2.0)
    decision = decide(pool, 2.0)

    assert decision.slots == {agent(1): 4}


def test_order_of_slots_is_repeated_until_the_agent_confirms_it() -> None:
    pool = opened_pool(need(1, 0, slots=None, concurrency=1), capacity=1)
    join(pool, *launch(pool))
    pool.apply(PresenceReceived(agent(1), 1, slots=1), 1.0)
    pool.apply(NeedChanged(need(3, 1, slots=None, concurrency=4, sequence=2)), 2.0)

    pool.apply(SlotsSent({agent(1): 4}), 2.0)
    assert decide(pool, 2.0).slots == {}
    assert decide(pool, 7.0).slots == {agent(1): 4}
    pool.apply(PresenceReceived(agent(1), 1, slots=4), 8.0)

    assert decide(pool, 8.0).slots == {}
    assert pool_state(pool, 8.0).agents[0].slots == 4


def test_configured_slots_and_agents_of_older_versions_keep_their_slots() -> None:
    configured = opened_pool(need(1, 0, slots=1, concurrency=1), capacity=1)
    older = opened_pool(need(1, 0, slots=None, concurrency=1), capacity=1)
    for pool, reported in ((configured, 1), (older, None)):
        join(pool, *launch(pool))
        pool.apply(PresenceReceived(agent(1), 1, slots=reported), 1.0)
        slots = 1 if pool is configured else None
        pool.apply(NeedChanged(need(3, 1, slots=slots, concurrency=4, sequence=2)), 2.0)

    assert decide(configured, 2.0).slots == {}
    assert decide(older, 2.0).slots == {}


def test_platform_is_asked_every_half_a_minute_though_it_notifies_no_change() -> None:
    pool = opened_pool(need())

    before = decide(pool, 29.5)

    assert (before.actions, before.wake_s) == ({}, 30.0)
    assert decide(pool, 30.0).actions == {"slurm": ListAgents()}


def test_one_launch_has_at_most_a_hundred_agents() -> None:
    pool = opened_pool(need(waiting=150))

    assert launched_numbers(decide(pool, 0.0)) == {"slurm": list(range(1, 101))}


def test_planned_agents_have_the_gpus_of_the_trials() -> None:
    wanted = replace(need(waiting=1), gpus_per_trial=2)
    pool = opened_pool(wanted)
    action = decide(pool, 0.0).actions["slurm"]

    assert isinstance(action, LaunchAgents)
    assert [one.gpus_per_trial for one in action.agents] == [2]
    pool.apply(ActionStarted("slurm", action), 0.0)
    pool.apply(ActionFailed("slurm", action, "cut"), 0.0)
    list_agents(pool, "slurm", now_s=100.0)

    assert decide(pool, 100.0).actions == {"slurm": action}


def test_pool_without_any_time_launches_nothing() -> None:
    pool = opened_pool(need(waiting=1, limits=PoolLimits(max_agent_s=0.0)))

    assert decide(pool, 0.0).actions == {}


def test_trials_of_silent_and_leaving_agents_get_no_second_slot() -> None:
    pool = opened_pool(need(waiting=2))
    names = launch(pool)
    join(pool, *names, trials=1)
    pool.apply(NeedChanged(need(running=2, sequence=2)), 0.0)
    pool.apply(DrainSent((names[0],)), 19.0)
    pool.apply(PresenceReceived(names[0], 1, draining=True), 19.0)

    assert launched_numbers(decide(pool, 25.0)) == {}


def test_order_that_was_sent_at_the_start_of_the_clock_is_repeated() -> None:
    pool = opened_pool(need(waiting=1))
    (name,) = launch(pool)
    join(pool, name)
    pool.apply(DrainSent((name,)), 0.0)

    assert decide(pool, 4.5).drains == ()
    assert decide(pool, 5.0).drains == (name,)


def test_agent_that_is_idle_for_the_longest_time_drains_first() -> None:
    pool = opened_pool(need(waiting=2))
    join(pool, *launch(pool), trials=1)
    pool.apply(PresenceReceived(agent(2), 0), 0.0)
    pool.apply(PresenceReceived(agent(1), 0), 0.5)
    lowered = need(waiting=1, limits=PoolLimits(max_agents=1), sequence=2)
    pool.apply(NeedChanged(lowered), 1.0)

    assert decide(pool, 1.0).drains == (agent(2),)


def test_least_number_of_agents_stays_and_the_other_idle_ones_drain() -> None:
    limits = PoolLimits(min_agents=1, idle_s=5.0)
    pool = opened_pool(need(waiting=3, limits=limits))
    join(pool, *launch(pool))
    pool.apply(NeedChanged(need(limits=limits, sequence=2)), 0.0)

    assert decide(pool, 5.0).drains == (agent(1), agent(2))


def test_idle_agent_stays_while_a_trial_waits() -> None:
    pool = opened_pool(need(waiting=1, limits=PoolLimits(idle_s=5.0)))
    join(pool, *launch(pool))

    assert decide(pool, 10.0).drains == ()


def test_closed_pool_cleans_what_an_earlier_process_may_have_left() -> None:
    pool = Pool(INSTALLATION, POOL)
    pool.apply(StateRestored((), last_number=1), 0.0)
    pool.apply(NeedChanged(need(closed=True)), 0.0)

    assert decide(pool, 0.0).actions == {"slurm": CleanPlatform()}


def test_closed_pool_waits_for_the_last_trials_as_long_as_for_an_idle_agent() -> None:
    pool = opened_pool(need(waiting=1))
    (name,) = launch(pool)
    join(pool, name, trials=1)
    pool.apply(NeedChanged(need(closed=True, sequence=2)), 0.0)
    pool.apply(DrainSent((name,)), 5.0)

    before = decide(pool, 24.5)

    assert (before.actions, before.wake_s) == ({}, 25.0)
    assert decide(pool, 25.0).actions == {"slurm": CleanPlatform()}


def test_platform_is_asked_when_an_agent_has_been_missing_for_long() -> None:
    pool = opened_pool(need(waiting=1))
    launch(pool, 10.0)
    list_agents(pool, "slurm", now_s=20.0)

    before = decide(pool, 39.5)

    assert (before.actions, before.wake_s) == ({}, 40.0)
    assert decide(pool, 40.0).actions == {"slurm": ListAgents()}


def test_agent_that_leaves_is_ended_if_its_platform_still_has_it() -> None:
    pool = opened_pool(need(running=1))
    (name,) = launch(pool)
    join(pool, name, trials=1)
    pool.apply(PresenceReceived(name, 0, draining=True, leaving=True), 5.0)
    list_agents(pool, "slurm", PlatformAgent(name, AgentPhase.RUNNING), now_s=20.0)
    ends = TerminateAgents((name,))

    assert ends not in decide(pool, 24.5).actions.values()
    assert ends in decide(pool, 25.0).actions.values()


def test_agent_of_the_least_number_waits_in_the_queue_though_no_trial_waits() -> None:
    pool = opened_pool(need(limits=PoolLimits(min_agents=1, idle_s=5.0)))
    (name,) = launch(pool)
    list_agents(pool, "slurm", PlatformAgent(name, AgentPhase.PENDING), now_s=100.0)

    assert decide(pool, 100.0).actions == {}


def test_agent_leaves_the_queue_after_the_idle_time_and_stays_if_it_has_a_machine() -> None:
    pool = opened_pool(need(waiting=2))
    first, second = launch(pool)
    pool.apply(NeedChanged(need(sequence=2)), 0.0)
    for now_s in (59.5, 60.0):
        list_agents(
            pool,
            "slurm",
            PlatformAgent(first, AgentPhase.PENDING),
            PlatformAgent(second, AgentPhase.STARTING),
            now_s=now_s,
        )
        expected = {} if now_s < 60.0 else {"slurm": TerminateAgents((first,))}
        assert decide(pool, now_s).actions == expected


def test_agent_whose_launch_has_failed_leaves_its_share_to_the_next_platform() -> None:
    pool = opened_pool(need(1, 0, "remote", "slurm"))
    action = decide(pool, 0.0).actions["remote"]
    pool.apply(ActionStarted("remote", action), 0.0)
    busy = decide(pool, 0.0)
    pool.apply(ActionFailed("remote", action, "cut"), 0.0)

    assert launched_numbers(busy) == {}
    assert launched_numbers(decide(pool, 0.5)) == {"slurm": [2]}


def queued_beside(capacity: int) -> Pool:
    """Return a pool with two trials, an agent in a queue, and a platform of this capacity."""
    pool = opened_pool(need(1, 0, "slurm", "local"))
    (name,) = launch(pool)
    list_agents(pool, "slurm", PlatformAgent(name, AgentPhase.PENDING), now_s=40.0)
    list_agents(pool, "local", capacity=capacity, now_s=40.0)
    pool.apply(NeedChanged(need(2, 0, "slurm", "local", sequence=2)), 40.0)
    return pool


def test_long_queue_grows_where_no_other_platform_has_room() -> None:
    assert launched_numbers(decide(queued_beside(0), 40.0)) == {"slurm": [2]}
    assert launched_numbers(decide(queued_beside(1), 40.0)) == {"local": [2]}


def test_platform_that_is_not_listed_yet_counts_as_one_machine() -> None:
    wanted = need(20, 0, "remote", "slurm", slots=None, concurrency=20)
    pool = Pool(INSTALLATION, POOL)
    pool.apply(NeedChanged(wanted), 0.0)
    pool.apply(ActionStarted("remote", OpenPlatform()), 0.0)
    pool.apply(PlatformOpened("remote"), 0.0)
    list_agents(pool, "remote", capacity=3)

    action = decide(pool, 0.0).actions["remote"]

    assert isinstance(action, LaunchAgents)
    assert [one.slots for one in action.agents] == [5, 5, 5]


@pytest.mark.parametrize(
    ("waiting", "running", "least", "repeated"),
    [(0, 0, 0, False), (1, 1, 0, True), (1, 0, 1, True), (0, 1, 0, True), (0, 0, 1, True)],
)
def test_failed_launch_is_repeated_while_there_is_a_demand(
    waiting: int, running: int, least: int, *, repeated: bool
) -> None:
    pool = opened_pool(need(waiting=1))
    action = decide(pool, 0.0).actions["slurm"]
    pool.apply(ActionStarted("slurm", action), 0.0)
    pool.apply(ActionFailed("slurm", action, "cut"), 0.0)
    limits = PoolLimits(min_agents=least)
    pool.apply(NeedChanged(need(waiting, running, limits=limits, sequence=2)), 10.0)
    list_agents(pool, "slurm", now_s=10.0)

    numbers = launched_numbers(decide(pool, 10.0)).get("slurm", [])

    assert (1 in numbers) is repeated


def test_limit_of_agents_holds_for_many_waiting_trials() -> None:
    pool = opened_pool(need(waiting=5, limits=PoolLimits(max_agents=2)))

    assert launched_numbers(decide(pool, 0.0)) == {"slurm": [1, 2]}


def test_fleet_wakes_when_one_agent_alone_has_used_up_the_time() -> None:
    pool = opened_pool(need(waiting=1, limits=PoolLimits(max_agent_s=100.0)))
    names = launch(pool)
    for now_s in (0.0, 90.0):
        join(pool, *names, trials=1, now_s=now_s)

    assert decide(pool, 90.0).wake_s == 100.0
