"""States of pools, as the fleet publishes them."""

from __future__ import annotations

import asyncio

from nni_proto.runner.v1 import pool_pb2
from svc_common import subjects
from svc_common.experiment_events.causes import WaitCause, WaitReason
from svc_common.messaging.memory import InMemoryBus
from svc_manager.agents.pool_states import PoolStates
from svc_manager.domain.explanation import PoolFacts

PENDING = pool_pb2.PoolAgent(
    name="a1", platform="p", state=pool_pb2.POOL_AGENT_STATE_PENDING, reason="Resources"
)
RUNNING = pool_pb2.PoolAgent(name="a2", platform="p", state=pool_pb2.POOL_AGENT_STATE_RUNNING)
SUBJECT = subjects.pool_state_subject("exp-x")
PATIENCE_S = 60.0
"""Time limit for steps that take milliseconds on an idle machine."""


def states_with(**fields: object) -> PoolStates:
    states = PoolStates(InMemoryBus().last_values)
    states.handle_state(SUBJECT, pool_pb2.PoolState(**fields).SerializeToString())  # type: ignore[arg-type] # any field
    return states


def test_pool_that_the_fleet_is_silent_on_has_no_facts() -> None:
    states = PoolStates(InMemoryBus().last_values)

    assert states.facts("exp-x") is None
    assert states.wait("exp-x") is None
    assert states.agent("a1") is None


def test_reason_of_a_pool_becomes_the_wait_of_its_trials() -> None:
    states = states_with(reason="login refused", remedy="give a password")

    assert states.wait("exp-x") == WaitReason(
        WaitCause.PLATFORM, detail="login refused", remedy="give a password"
    )
    assert states.wait("exp-y") is None


def test_texts_of_platforms_are_cut() -> None:
    agent = pool_pb2.PoolAgent(name="a1", reason="r" * 9_000, machine="m" * 9_000)
    states = states_with(reason="a" * 9_000, remedy="b" * 9_000, agents=[agent])

    (state,) = states.states()
    texts = (state.reason, state.remedy, state.agents[0].reason, state.agents[0].machine)
    assert [len(text) for text in texts] == [2_000] * 4


def test_platform_of_an_agent_is_known_when_the_agent_is_gone() -> None:
    states = states_with(agents=[RUNNING])

    states.handle_state(SUBJECT, pool_pb2.PoolState(cleaned=True).SerializeToString())

    assert states.agent("a2") is None
    assert states.platform("a2") == "p"
    assert states.platform("a1") == ""


def test_agents_that_their_platform_has_no_more_are_reported() -> None:
    gone: list[str] = []
    states = PoolStates(InMemoryBus().last_values, gone.append)
    both = pool_pb2.PoolState(agents=[RUNNING, PENDING])
    states.handle_state(SUBJECT, both.SerializeToString())

    states.handle_state(SUBJECT, pool_pb2.PoolState(agents=[PENDING]).SerializeToString())
    first = list(gone)
    states.handle_state(SUBJECT, pool_pb2.PoolState(cleaned=True).SerializeToString())

    assert (first, gone) == (["a2"], ["a2", "a1"])


def test_words_of_a_platform_are_cut() -> None:
    wait = states_with(reason="r" * 5000, remedy="s" * 5000).wait("exp-x")

    assert wait is not None
    assert (len(wait.detail), len(wait.remedy)) == (2000, 2000)


def test_agents_that_are_not_there_yet_are_counted_with_a_reason() -> None:
    states = states_with(agents=[RUNNING, PENDING])

    assert states.facts("exp-x") == PoolFacts("", "", 1, "Resources")
    assert states.wait("exp-x") is None
    assert [(pool, agent.name) for pool, agent in states.agents()] == [
        ("exp-x", "a2"),
        ("exp-x", "a1"),
    ]


def test_later_state_replaces_the_agents_of_an_earlier_one() -> None:
    states = states_with(agents=[RUNNING, PENDING])

    states.handle_state(SUBJECT, pool_pb2.PoolState(agents=[RUNNING]).SerializeToString())

    assert states.agent("a1") is None
    assert states.agent("a2") == RUNNING


def test_pool_that_is_cleaned_is_forgotten() -> None:
    states = states_with(agents=[RUNNING])

    states.handle_state(SUBJECT, pool_pb2.PoolState(cleaned=True).SerializeToString())

    assert list(states.agents()) == []
    assert states.facts("exp-x") is None


def test_damaged_message_leaves_the_state_before() -> None:
    states = states_with(reason="login refused")

    states.handle_state(SUBJECT, b"\xff\xff")

    assert states.wait("exp-x") is not None


async def test_state_that_was_published_before_is_read() -> None:
    async with InMemoryBus() as bus:
        states = PoolStates(bus.last_values)
        before = pool_pb2.PoolState(reason="login refused")
        await bus.last_values.publish(SUBJECT, before.SerializeToString())
        listening = asyncio.ensure_future(states.listen())

        async with asyncio.timeout(PATIENCE_S):
            while states.wait("exp-x") is None:  # noqa: ASYNC110 - all happens in this loop
                await asyncio.sleep(0)
        listening.cancel()

    assert states.wait("exp-x") is not None


def test_pool_of_the_installation_that_is_not_defined_has_a_remedy() -> None:
    states = PoolStates(InMemoryBus().last_values)
    subject = subjects.pool_definition_subject("gpus")

    unknown = states.facts("gpus")
    states.handle_definition(subject, pool_pb2.PoolDefinition(pool="gpus").SerializeToString())
    defined = states.facts("gpus")
    states.handle_definition(subject, b"\xff\xff")
    removed = pool_pb2.PoolDefinition(pool="gpus", removed=True)
    states.handle_definition(subject, removed.SerializeToString())

    assert unknown is not None
    assert "nnictl pool create" in unknown.remedy
    assert defined is None
    assert states.facts("gpus") == unknown
    assert states.facts("local") is None
