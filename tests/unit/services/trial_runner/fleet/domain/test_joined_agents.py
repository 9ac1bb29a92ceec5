"""Tests of agents that people bring: they are supply, and the pool alone ends them."""

from dataclasses import replace

from svc_trial_runner.fleet.domain.agents import AgentPhase, PlatformAgent
from svc_trial_runner.fleet.domain.decisions import LOST_AFTER_S, decide
from svc_trial_runner.fleet.domain.needs import IDLE_S, PoolLimits
from svc_trial_runner.fleet.domain.pool import Pool
from svc_trial_runner.fleet.domain.pool_events import (
    AgentEnrolled,
    NeedChanged,
    PresenceReceived,
    TerminateAgents,
)
from svc_trial_runner.fleet.domain.pool_states import AgentStatus, pool_state
from tests.support.fleet_pools import agent, launched_numbers, list_agents, need, opened_pool


def joined_pool(waiting: int = 0, limits: PoolLimits | None = None) -> Pool:
    """Return a pool on `slurm` that one machine with four slots has joined."""
    pool = opened_pool(need(waiting, 0, "slurm", "joined", limits=limits))
    list_agents(pool, "joined", capacity=0)
    pool.apply(AgentEnrolled(agent(1), "joined", 4, "desk"), 0.0)
    pool.apply(PresenceReceived(agent(1), 0), 0.0)
    return pool


def listed(number: int) -> PlatformAgent:
    return PlatformAgent(agent(number), AgentPhase.RUNNING, "desk", slots=4)


def test_joined_agent_runs_with_its_slots() -> None:
    [shown] = pool_state(joined_pool(), 0.0).agents

    assert (shown.platform, shown.slots, shown.machine) == ("joined", 4, "desk")
    assert shown.status is AgentStatus.RUNNING


def test_joined_agent_is_supply_and_no_more_is_launched() -> None:
    assert launched_numbers(decide(joined_pool(waiting=4), 0.0)) == {}


def test_demand_beyond_it_is_launched_elsewhere_with_other_numbers() -> None:
    assert launched_numbers(decide(joined_pool(waiting=6), 0.0)) == {"slurm": [2, 3]}


def test_idle_joined_agent_stays() -> None:
    pool = joined_pool()
    pool.apply(PresenceReceived(agent(1), 0), IDLE_S)

    assert decide(pool, IDLE_S + 1).drains == ()


def test_joined_agents_stay_above_the_limit_of_agents() -> None:
    pool = joined_pool(limits=PoolLimits(max_agents=1))
    pool.apply(AgentEnrolled(agent(2), "joined", 1, "other"), 0.0)
    pool.apply(PresenceReceived(agent(2), 0), 0.0)

    assert decide(pool, 1.0).drains == ()


def test_closed_pool_drains_joined_agents() -> None:
    pool = joined_pool()
    assert pool.need is not None
    pool.apply(NeedChanged(replace(pool.need, closed=True)), 1.0)

    assert decide(pool, 1.0).drains == (agent(1),)


def test_second_enrolment_of_a_machine_ends_its_first_agent() -> None:
    pool = joined_pool()
    pool.apply(AgentEnrolled(agent(2), "joined", 4, "desk", agent(1)), 1.0)

    decision = decide(pool, 1.0)

    assert decision.actions["joined"] == TerminateAgents((agent(1),))
    assert not pool.platforms["joined"].back_offs


def test_silent_joined_agent_is_given_up() -> None:
    pool = joined_pool()
    list_agents(pool, "joined", listed(1), now_s=1.0)

    [(name, reason)] = decide(pool, LOST_AFTER_S).lost

    assert name == agent(1)
    assert "not heard from" in reason


def test_restarted_fleet_finds_joined_agents_with_their_slots() -> None:
    pool = opened_pool(need(0, 0, "slurm", "joined"))
    list_agents(pool, "joined", listed(7), capacity=1)

    assert pool.agents[agent(7)].slots == 4
    assert pool.last_number == 7
