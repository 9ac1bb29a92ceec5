from dataclasses import replace

from svc_trial_runner.fleet.domain.agents import AgentPhase, LaunchFailure, PlatformAgent
from svc_trial_runner.fleet.domain.decisions import decide
from svc_trial_runner.fleet.domain.needs import PoolLimits
from svc_trial_runner.fleet.domain.pool import Pool
from svc_trial_runner.fleet.domain.pool_events import (
    ActionFailed,
    ActionStarted,
    AgentsLaunched,
    DrainSent,
    LaunchAgents,
    ListAgents,
    NeedChanged,
    OpenPlatform,
    PresenceReceived,
    StateRestored,
)
from svc_trial_runner.fleet.domain.pool_states import AgentStatus, PoolState, pool_state
from tests.support.fleet_pools import (
    INSTALLATION,
    POOL,
    agent,
    join,
    launch,
    list_agents,
    need,
    opened_pool,
)


def status(pool: Pool, now_s: float = 0.0) -> list[AgentStatus]:
    return [one.status for one in pool_state(pool, now_s).agents]


def test_agent_passes_through_its_states() -> None:
    pool = opened_pool(need(waiting=1))
    action = decide(pool, 0.0).actions["slurm"]
    pool.apply(ActionStarted("slurm", action), 0.0)
    assert status(pool) == [AgentStatus.LAUNCHING]

    pool.apply(AgentsLaunched("slurm"), 0.0)
    list_agents(pool, "slurm", PlatformAgent(agent(1), AgentPhase.PENDING, "", "Priority"))
    assert status(pool) == [AgentStatus.PENDING]
    assert "Priority" in pool_state(pool, 0.0).reason

    list_agents(pool, "slurm", PlatformAgent(agent(1), AgentPhase.RUNNING, "node-1"))
    assert status(pool) == [AgentStatus.STARTING]

    pool.apply(PresenceReceived(agent(1), 0), 1.0)
    assert status(pool, 2.0) == [AgentStatus.RUNNING]
    assert status(pool, 20.5) == [AgentStatus.RUNNING]
    assert status(pool, 21.0) == [AgentStatus.SILENT]

    pool.apply(DrainSent((agent(1),)), 2.0)
    assert status(pool, 2.0) == [AgentStatus.DRAINING]


def test_failed_launch_is_shown_in_the_words_of_the_platform() -> None:
    pool = opened_pool(need(waiting=1))
    action = decide(pool, 0.0).actions["slurm"]
    pool.apply(ActionStarted("slurm", action), 0.0)
    failure = LaunchFailure(agent(1), "Invalid account", "set account")
    pool.apply(AgentsLaunched("slurm", (failure,)), 0.0)

    state = pool_state(pool, 1.0)

    assert state.reason == "slurm: Invalid account"
    assert state.remedy == "set account"
    assert state.next_launch_s == 2.0


def test_permanent_failure_has_no_next_launch() -> None:
    pool = Pool(INSTALLATION, POOL)
    pool.apply(NeedChanged(need(waiting=1)), 0.0)
    pool.apply(ActionStarted("slurm", OpenPlatform()), 0.0)
    failure = ActionFailed("slurm", OpenPlatform(), "partition must exist", permanent=True)
    pool.apply(failure, 0.0)

    state = pool_state(pool, 1_000.0)

    assert state.reason == "slurm: partition must exist"
    assert state.next_launch_s is None


def test_limit_of_the_pool_is_a_reason() -> None:
    pool = opened_pool(need(waiting=3, limits=PoolLimits(max_agents=1)))
    launch(pool)

    state = pool_state(pool, 0.0)
    assert "limit of 1 agent (maxAgents)" in state.reason
    assert "--max-agents NUMBER" in state.remedy


def test_full_platform_is_a_reason() -> None:
    pool = opened_pool(need(waiting=3), capacity=1)
    launch(pool)

    state = pool_state(pool, 0.0)

    assert state.reason == "slurm: it can have 1 agent, and all slots are taken"
    assert state.remedy == "set its slots higher, or add another platform"


def test_growing_pool_and_pool_without_waiting_trials_have_no_reason() -> None:
    growing = opened_pool(need(waiting=3))
    launch(growing)
    calm = opened_pool(need(running=1, limits=PoolLimits(max_agents=1)))

    assert pool_state(growing, 0.0).reason == ""
    assert pool_state(calm, 0.0).reason == ""


def test_state_before_any_need_is_empty() -> None:
    assert pool_state(Pool(INSTALLATION, POOL), 0.0).agents == ()


def test_next_process_takes_over_agents_and_numbers() -> None:
    pool = opened_pool(need(waiting=2, slots=3))
    launch(pool)
    action = LaunchAgents(())
    pool.apply(ActionStarted("slurm", action), 0.0)
    later = Pool(INSTALLATION, POOL)

    later.apply(pool_state(pool, 0.0).restored(), 9.0)

    assert set(later.agents) == set(pool.agents)
    assert later.agents[agent(1)].slots == 3
    assert later.last_number == pool.last_number


def test_joined_agents_of_a_growing_pool_hide_no_failure() -> None:
    pool = opened_pool(need(waiting=1))
    (name,) = launch(pool)
    join(pool, name)
    pool.apply(NeedChanged(need(waiting=2, running=1, sequence=2)), 1.0)
    action = decide(pool, 1.0).actions["slurm"]
    assert isinstance(action, LaunchAgents)
    pool.apply(ActionStarted("slurm", action), 1.0)
    failures = tuple(LaunchFailure(one.name, "no GPU is free") for one in action.agents)
    pool.apply(AgentsLaunched("slurm", failures), 1.0)

    assert pool_state(pool, 1.5).reason == "slurm: no GPU is free"


def test_failure_of_a_platform_that_left_the_pool_is_no_reason() -> None:
    pool = opened_pool(need(1, 0, "remote", "slurm"))
    pool.platforms["remote"].fail(ListAgents, 0.0, "no route to host")
    assert pool_state(pool, 0.5).reason == "remote: no route to host"

    pool.apply(NeedChanged(need(1, 0, "slurm", sequence=2)), 0.5)

    state = pool_state(pool, 0.5)
    assert (state.reason, state.next_launch_s) == ("", None)


def test_failure_is_a_reason_until_the_next_try() -> None:
    pool = opened_pool(need(1))
    pool.platforms["slurm"].fail(ListAgents, 0.0, "no route to host")
    next_s = pool_state(pool, 0.0).next_launch_s
    assert next_s is not None

    assert pool_state(pool, next_s - 0.1).reason == "slurm: no route to host"
    assert pool_state(pool, next_s).reason == ""


def reasons_after_an_hour(limits: PoolLimits, pool_name: str = POOL) -> tuple[str, str]:
    """Return reason and remedy of a pool whose one agent has run for an hour."""
    wanted = need(waiting=1)
    pool = opened_pool(wanted)
    (name,) = launch(pool)
    join(pool, name)
    changed = need(waiting=2, running=1, sequence=2, limits=limits)
    pool.apply(NeedChanged(replace(changed, pool=pool_name)), 3_600.0)
    state = pool_state(pool, 3_600.0)
    return state.reason, state.remedy


def test_used_time_and_cost_are_reasons_with_the_options_that_raise_them() -> None:
    of_time = PoolLimits(max_agent_s=3_600.0, cost_per_agent_hour=2.0)
    of_cost = PoolLimits(max_cost=1.5, cost_per_agent_hour=2.0)

    assert reasons_after_an_hour(of_time) == (
        "the pool has used 1 of 1 agent-hours (maxAgentTime)",
        "raise the limit: nnictl update agents 1 --max-agent-time TIME",
    )
    assert reasons_after_an_hour(of_cost) == (
        "the pool has used 2 of the cost of 1.5 (maxCost)",
        "raise the limit: nnictl update agents 1 --max-cost COST",
    )
    assert reasons_after_an_hour(of_time, "gpus")[1] == (
        "raise the limit in its file, then nnictl pool update gpus FILE"
    )


def test_limits_that_are_not_used_up_are_no_reason() -> None:
    limits = PoolLimits(max_agent_s=3_600.1, max_cost=2.5, cost_per_agent_hour=2.0)

    assert reasons_after_an_hour(limits) == ("", "")


def test_drained_pool_has_its_drain_as_only_reason_while_trials_wait() -> None:
    drained = opened_pool(need(waiting=1, draining=True), capacity=0)
    idle = opened_pool(need(draining=True))
    closed = opened_pool(need(waiting=1, draining=True, closed=True))

    state = pool_state(drained, 0.0)

    assert state.reason == "the pool is drained"
    assert state.remedy == f"let it take trials again: nnictl pool drain {POOL} --undo"
    assert [pool_state(pool, 0.0).reason for pool in (idle, closed)] == ["", ""]


def test_platform_that_can_start_no_agent_is_a_reason() -> None:
    state = pool_state(opened_pool(need(waiting=1), capacity=0), 0.0)

    assert state.reason == "slurm: it has no agent and can start none now"


def test_pool_without_platforms_says_so() -> None:
    pool = Pool(INSTALLATION, POOL)
    pool.apply(NeedChanged(replace(need(waiting=1), platforms=())), 0.0)

    assert pool_state(pool, 0.0).reason == "the pool has no platforms"


def test_queued_agents_are_counted_with_each_reason_once() -> None:
    pool = opened_pool(need(waiting=3))
    names = launch(pool)
    queued = [PlatformAgent(name, AgentPhase.PENDING, "", "Priority") for name in names[:2]]

    list_agents(pool, "slurm", *queued, PlatformAgent(names[2], AgentPhase.RUNNING))

    assert pool_state(pool, 0.0).reason == "slurm: 2 of its agents are in the queue: Priority"


def test_next_process_takes_over_times_and_unconfirmed_launches() -> None:
    pool = opened_pool(need(waiting=2, sequence=6))
    (first, second) = launch(pool)
    join(pool, first)
    pool.give_up(pool.agents[first], "it is silent", 40.0)
    pool.agents[second].launched_s = None
    pool.agents[second].phase = None
    later = Pool(INSTALLATION, POOL)

    state = pool_state(pool, 50.0)
    later.apply(state.restored(), 50.0)

    assert (state.log_sequence, state.cleaned, state.last_number) == (6, False, 2)
    assert [later.agents[name].launched_s for name in (first, second)] == [50.0, None]
    assert later.agent_s(50.0) == pool.agent_s(50.0) == 40.0 + 50.0


def test_state_before_any_need_keeps_number_and_time_of_an_earlier_process() -> None:
    pool = Pool(INSTALLATION, POOL)
    pool.apply(StateRestored((), last_number=5, ended_agent_s=7.0), 0.0)

    state = pool_state(pool, 0.0)

    assert (state.last_number, state.ended_agent_s) == (5, 7.0)
    assert (state.cleaned, state.log_sequence) == (False, 0)


def test_failed_launch_is_no_reason_while_no_slot_is_missing() -> None:
    pool = opened_pool(need(waiting=1))
    (name,) = launch(pool)
    pool.platforms["slurm"].fail(ListAgents, 0.0, "no route to host")
    before = pool_state(pool, 0.5).reason

    pool.apply(PresenceReceived(name, 0), 0.5)

    assert before == "slurm: no route to host"
    assert pool_state(pool, 0.5).reason == ""


def test_pool_without_a_need_has_no_agents_and_is_not_clean() -> None:
    state = pool_state(Pool(INSTALLATION, POOL), 0.0)

    assert (state.agents, state.cleaned, state.log_sequence) == ((), False, 0)
    assert (state.last_number, state.ended_agent_s) == (0, 0.0)


def test_state_answers_its_need_with_the_time_of_ended_agents() -> None:
    pool = opened_pool(need(sequence=7))
    pool.ended_agent_s = 12.5

    state = pool_state(pool, 0.0)

    assert (state.log_sequence, state.ended_agent_s) == (7, 12.5)
    assert (PoolState(POOL).last_number, PoolState(POOL).ended_agent_s) == (0, 0.0)


def test_only_the_limit_that_is_used_up_is_named() -> None:
    limits = PoolLimits(max_agent_s=36_000.0, max_cost=1.0, cost_per_agent_hour=1.0)
    pool = opened_pool(need(waiting=1, limits=limits))
    pool.ended_agent_s = 3_600.0

    reason = pool_state(pool, 0.0).reason

    assert reason == "the pool has used 1 of the cost of 1 (maxCost)"


def test_platform_with_room_for_one_agent_is_not_full() -> None:
    assert pool_state(opened_pool(need(waiting=1), capacity=1), 0.0).reason == ""


def test_full_platform_of_machines_of_people_needs_another_machine() -> None:
    pool = opened_pool(need(1, 0, "joined"), capacity=0)

    assert pool_state(pool, 0.0).remedy == "bring another machine: nnictl runner invite"
