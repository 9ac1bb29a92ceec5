import hashlib
import ssl
from datetime import UTC, datetime, timedelta

import pytest

from nni_proto.runner.v1 import invitation_service_pb2, pool_pb2, task_pb2
from nni_wire.values import to_value
from svc_common.agent_time import SILENCE_LIMIT
from svc_common.errors import InvalidArgumentError
from svc_trial_runner.fleet.converters import (
    check_from_bytes,
    definition_from_bytes,
    drain_to_bytes,
    front_state_to_bytes,
    front_to_bytes,
    invitations_from_bytes,
    need_from_bytes,
    presence_from_bytes,
    problems_to_bytes,
    restored_from_bytes,
    slots_to_bytes,
    state_to_bytes,
)
from svc_trial_runner.fleet.domain.agents import PlatformProblem
from svc_trial_runner.fleet.domain.checks import CheckRequest
from svc_trial_runner.fleet.domain.invitations import Invitation
from svc_trial_runner.fleet.domain.leftovers import Leftover
from svc_trial_runner.fleet.domain.needs import IDLE_S, PoolLimits, PoolPlatform
from svc_trial_runner.fleet.domain.pool_events import PresenceReceived
from svc_trial_runner.fleet.domain.pool_states import AgentStatus, PoolAgent, PoolState
from svc_trial_runner.fleet.domain.shared_pools import PoolDefinition
from svc_trial_runner.fleet.ports import FrontEndpoint, PlatformError
from tests.support.fleet_pools import POOL, agent

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_need_is_read() -> None:
    message = pool_pb2.PoolNeed(
        pool=POOL,
        waiting_count=3,
        running_count=2,
        concurrency=8,
        gpus_per_trial=0,
        closed=True,
        log_sequence=7,
    )
    message.platforms.add(platform="slurm", options=to_value({"slots": 2}), secrets_id="s1")
    message.limits.max_agents = 4
    message.limits.idle.FromSeconds(5)
    message.limits.max_agent_time.FromSeconds(3600)
    message.limits.max_cost = 12.5
    message.limits.cost_per_agent_hour = 0.5

    need = need_from_bytes(message.SerializeToString())

    assert (need.pool, need.waiting, need.running, need.concurrency) == (POOL, 3, 2, 8)
    assert (need.gpus_per_trial, need.closed, need.log_sequence) == (0, True, 7)
    assert need.platforms == (PoolPlatform("slurm", {"slots": 2}, "s1"),)
    assert need.limits == PoolLimits(0, 4, 5.0, 3600.0, 12.5, 0.5)


def test_unset_fields_of_a_need_have_their_defaults() -> None:
    message = pool_pb2.PoolNeed(pool=POOL, platforms=[pool_pb2.PoolPlatform(platform="local")])

    need = need_from_bytes(message.SerializeToString())

    assert need.gpus_per_trial is None
    assert need.limits == PoolLimits(0, None, IDLE_S)
    assert need.platforms == (PoolPlatform("local", {}),)


def test_damaged_need_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="PoolNeed"):
        need_from_bytes(b"\xff\xff")


def test_options_that_are_no_map_are_refused() -> None:
    message = pool_pb2.PoolNeed(pool=POOL)
    message.platforms.add(platform="slurm", options=to_value([1]))

    with pytest.raises(InvalidArgumentError, match="options of slurm"):
        need_from_bytes(message.SerializeToString())


@pytest.mark.parametrize("status", list(AgentStatus))
def test_state_is_taken_over_by_the_next_process(status: AgentStatus) -> None:
    one = PoolAgent(agent(3), "slurm", status, slots=2, ordered_s=90.0, counts_from_s=95.0)
    state = PoolState(POOL, (one,), cleaned=True, last_number=5, ended_agent_s=7.5)

    assert restored_from_bytes(state_to_bytes(state, NOW, 100.0), NOW, 100.0) == state.restored()


def test_times_of_a_state_are_times_of_day() -> None:
    one = PoolAgent(agent(3), "slurm", AgentStatus.PENDING, 1, ordered_s=90.0, reason="Priority")
    state = PoolState(POOL, (one,), reason="no", next_launch_s=130.0)

    message = pool_pb2.PoolState.FromString(state_to_bytes(state, NOW, 100.0))

    assert message.agents[0].launched_at.ToDatetime(UTC) == NOW.replace(
        hour=11, minute=59, second=50
    )
    assert message.next_launch_at.ToDatetime(UTC) == NOW.replace(second=30)
    assert message.agents[0].reason == "Priority"


def test_start_of_an_agent_in_the_future_counts_from_now() -> None:
    one = PoolAgent(agent(3), "slurm", AgentStatus.RUNNING, 1, ordered_s=90.0, counts_from_s=100.0)
    payload = state_to_bytes(PoolState(POOL, (one,)), NOW, 100.0)

    restored = restored_from_bytes(payload, NOW - timedelta(hours=1), 40.0)

    assert restored.agents[0].counts_from_s == 40.0


def test_start_of_an_agent_after_the_state_was_published_counts_from_now() -> None:
    one = PoolAgent(agent(3), "slurm", AgentStatus.RUNNING, 1, ordered_s=90.0, counts_from_s=105.0)
    payload = state_to_bytes(PoolState(POOL, (one,)), NOW, 100.0)

    restored = restored_from_bytes(payload, NOW, 40.0)

    assert restored.agents[0].counts_from_s == 40.0


@pytest.mark.parametrize(
    ("step", "counted_s"),
    [
        (timedelta(minutes=5), 305.0),
        (timedelta(hours=2), 605.0),
        (timedelta(days=3650), 605.0),
        (timedelta(hours=-2), 5.0),
    ],
)
def test_step_of_the_clock_between_two_processes_is_no_time_of_agents(
    step: timedelta, counted_s: float
) -> None:
    one = PoolAgent(agent(3), "slurm", AgentStatus.RUNNING, 1, ordered_s=90.0, counts_from_s=95.0)
    payload = state_to_bytes(PoolState(POOL, (one,)), NOW, 100.0)

    restored = restored_from_bytes(payload, NOW + step, 1000.0)

    (found,) = restored.agents
    assert found.counts_from_s == 1000.0 - counted_s
    is_long = step > SILENCE_LIMIT
    assert found.started_s == (995.0 - step.total_seconds() if is_long else None)


def test_foreign_names_in_a_state_are_ignored() -> None:
    message = pool_pb2.PoolState(agents=[pool_pb2.PoolAgent(name="runner-x")])

    assert restored_from_bytes(message.SerializeToString(), NOW, 100.0).agents == ()


def test_presence_is_read() -> None:
    message = task_pb2.RunnerPresence(
        draining=True, slots=2, trials=[task_pb2.HeldTrial()], uploads=3
    )
    message.running_time.FromMilliseconds(1_500)

    found = presence_from_bytes(agent(1), message.SerializeToString())

    assert found == PresenceReceived(agent(1), 1, draining=True, slots=2, uploads=3, running_s=1.5)


def test_presence_with_too_many_parts_is_refused_by_the_rule() -> None:
    with pytest.raises(InvalidArgumentError, match="at most 50,000 parts"):
        presence_from_bytes(agent(1), b"\x2a\x00" * 50_001)


def test_order_to_drain_is_a_control_message() -> None:
    message = task_pb2.RunnerControl.FromString(drain_to_bytes())

    assert message.WhichOneof("kind") == "drain_runner"


def test_order_of_slots_is_a_control_message() -> None:
    message = task_pb2.RunnerControl.FromString(slots_to_bytes(3))

    assert message.set_runner_slots.slots == 3


def test_definition_is_read() -> None:
    message = pool_pb2.PoolDefinition(pool="gpus", draining=True, removed=True, revision=9)
    message.platforms.add(platform="slurm", options=to_value({"partition": "a"}), secrets_id="gpus")
    message.limits.min_agents = 1
    message.created_at.FromNanoseconds(1_000)

    found = definition_from_bytes(message.SerializeToString())

    platforms = (PoolPlatform("slurm", {"partition": "a"}, "gpus"),)
    assert found == PoolDefinition(
        "gpus",
        platforms,
        PoolLimits(1),
        draining=True,
        removed=True,
        revision=9,
        created_at_ns=1_000,
    )


def test_check_is_read() -> None:
    message = pool_pb2.PoolCheck(check_id="c1", pool="check-1")
    message.platforms.add(platform="slurm", options=to_value({}))
    message.deadline.FromDatetime(NOW)

    found = check_from_bytes(message.SerializeToString())

    assert found == CheckRequest("c1", (PoolPlatform("slurm", {}),), NOW)


def test_problems_are_written_with_the_number_of_their_platform() -> None:
    problem = PlatformProblem("host", "cannot be reached", "box", "try ssh", permanent=False)

    message = pool_pb2.PoolProblems.FromString(problems_to_bytes("c1", [(1, problem)]))

    assert message.check_id == "c1"
    (found,) = message.problems
    assert (found.platform_index, found.field, found.rule) == (1, "host", "cannot be reached")
    assert (found.value, found.remedy, found.permanent) == ("box", "try ssh", False)


def test_request_to_clean_is_read_and_its_answer_has_what_was_left() -> None:
    message = pool_pb2.PoolCheck(check_id="c1", cleaning=pool_pb2.PlatformCleaning(dry_run=True))
    left = Leftover("gpus", ("nni-0123abcd-gpus-1",), in_use=True)

    request = check_from_bytes(message.SerializeToString())
    answer = pool_pb2.PoolProblems.FromString(problems_to_bytes("c1", [], [(2, left)]))

    assert (request.cleans, request.dry_run) == (True, True)
    (found,) = answer.leftovers
    assert (found.platform_index, found.pool) == (2, "gpus")
    assert (found.in_use, found.removed) == (True, False)
    assert list(found.agents) == ["nni-0123abcd-gpus-1"]


AUTHORITY = ssl.DER_cert_to_PEM_cert(b"authority")
INVITATION = Invitation("i1", "a" * 64, 3, NOW)


def front_of(payload: bytes) -> invitation_service_pb2.PoolFront:
    """Return the parsed message."""
    return invitation_service_pb2.PoolFront.FromString(payload)


def test_invitations_are_read() -> None:
    message = invitation_service_pb2.PoolInvitations()
    one = message.invitations.add(id="i1", sha256="a" * 64, use_limit=3)
    one.expires_at.FromDatetime(NOW)

    assert invitations_from_bytes(message.SerializeToString()) == [INVITATION]


def test_damaged_invitations_are_refused() -> None:
    with pytest.raises(InvalidArgumentError):
        invitations_from_bytes(b"\xff")


def test_open_front_is_written_with_the_fingerprint_of_its_authority() -> None:
    endpoint = FrontEndpoint("gate:9443", AUTHORITY)

    front = front_of(front_to_bytes("gpus", endpoint, [INVITATION]))
    state = front_of(front_state_to_bytes(endpoint))

    fingerprint = hashlib.sha256(b"authority").hexdigest()
    assert (front.pool, list(front.invitation_ids)) == ("gpus", ["i1"])
    assert (front.address, front.authority_sha256) == ("gate:9443", fingerprint)
    assert (state.pool, state.address) == ("local", "gate:9443")
    assert state.authority_sha256 == fingerprint


def test_front_that_is_not_open_is_written_with_the_reason_or_without_an_address() -> None:
    front = front_of(front_to_bytes("gpus", PlatformError("no port", "free one"), []))
    state = front_of(front_state_to_bytes(None))

    assert (front.address, front.reason, front.remedy) == ("", "no port", "free one")
    assert (state.pool, state.address) == ("local", "")


def test_restored_agent_has_a_slot_at_least() -> None:
    message = pool_pb2.PoolState(pool=POOL)
    for number, slots in ((1, 0), (2, 5)):
        message.agents.add(name=str(agent(number)), platform="slurm", slots=slots)

    restored = restored_from_bytes(message.SerializeToString(), NOW, 0.0)

    assert [one.slots for one in restored.agents] == [1, 5]


def test_permanent_problem_and_removed_leftover_are_written_as_such() -> None:
    problem, left = PlatformProblem("host", "must be given"), Leftover("gpus", removed=True)

    payload = problems_to_bytes("c1", [(0, problem)], [(0, left)])

    answer = pool_pb2.PoolProblems.FromString(payload)
    assert answer.problems[0].permanent
    assert (answer.leftovers[0].removed, answer.leftovers[0].in_use) == (True, False)


def test_all_parts_of_a_state_are_written() -> None:
    one = PoolAgent(
        agent(3), "slurm", AgentStatus.PENDING, 2, ordered_s=90.0, machine="node-1", reason="full"
    )
    state = PoolState(
        POOL, (one,), "no room", "add one", cleaned=True, log_sequence=4, last_number=5
    )

    message = pool_pb2.PoolState.FromString(state_to_bytes(state, NOW, 100.0))

    assert (message.pool, message.reason, message.remedy) == (POOL, "no room", "add one")
    assert (message.cleaned, message.log_sequence, message.last_number) == (True, 4, 5)
    (found,) = message.agents
    assert (found.name, found.platform, found.machine) == (str(agent(3)), "slurm", "node-1")
    assert (found.state, found.reason, found.slots) == (
        pool_pb2.POOL_AGENT_STATE_PENDING,
        "full",
        2,
    )
