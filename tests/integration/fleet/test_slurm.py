"""The platform `slurm` over a real Slurm: limits, requeue, and daemons that are down."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.slurm.adapter import SlurmAdapter
from svc_trial_runner.fleet.domain.agents import AgentPhase, PlatformAgent
from svc_trial_runner.fleet.ports import PlatformError
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, agent_name, agent_order
from tests.support.slurm_agents import SlurmAgents
from tests.support.slurm_cluster import DOWN, SHORT, SlurmCluster, slurm_cluster

LIMIT_S = 120.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    """Cluster of all tests of this module."""
    with slurm_cluster() as one:
        yield one


@pytest.fixture
async def agents(cluster: SlurmCluster, tmp_path: Path) -> AsyncIterator[SlurmAgents]:
    """Folder of agents, which have ended when the test has."""
    one = SlurmAgents(cluster, tmp_path)
    yield one
    await one.adapter(POOL, INSTALLATION).clean()


def adapter(agents: SlurmAgents, **options: object) -> SlurmAdapter:
    return agents.adapter(POOL, INSTALLATION, **options)


async def launch(one: SlurmAdapter, number: int = 1) -> None:
    assert await one.launch([agent_order(agent_name(number))]) == []


async def wait_for(one: SlurmAdapter, phase: AgentPhase) -> PlatformAgent:
    """Return the only agent once it is in a phase."""
    async with asyncio.timeout(LIMIT_S):
        while True:
            (agent,) = await one.agents()
            if agent.phase is phase:
                return agent
            await one.wait_changed()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"partition": "no-such"}, "partition"),
        ({"partition": DOWN}, "partition"),
        ({"partition": SHORT, "timeLimit": "2m"}, "timeLimit"),
        ({"gres": "gpu:3"}, "gres"),
        ({"gres": "tpu:1"}, "gres"),
        ({"memory": "1T"}, "memory"),
        ({"cpus": 1000}, "cpus"),
        ({"options": ["--no-such-option"]}, "options"),
        ({"options": ["--begin=never"]}, "options"),
    ],
)
async def test_check_refuses_what_would_pend_for_ever(
    agents: SlurmAgents, cluster: SlurmCluster, options: dict[str, object], field: str
) -> None:
    problems = await adapter(agents, **options).check()

    assert [problem.field for problem in problems] == [field]
    assert cluster.output("squeue", "--noheader") == ""


async def test_comment_and_paths_with_blanks_and_quotes_arrive(
    agents: SlurmAgents, cluster: SlurmCluster, tmp_path: Path
) -> None:
    logs = tmp_path / "my 'logs'"
    one = adapter(
        agents, comment='it\'s "ours", 100 %', logFolder=str(logs), setupLines=["echo loaded"]
    )

    await launch(one)
    await wait_for(one, AgentPhase.RUNNING)

    assert cluster.output("squeue", "--noheader", "--format=%k").strip() == 'it\'s "ours", 100 %'
    (log,) = logs.iterdir()
    assert "loaded" in log.read_text()


async def test_agent_gets_term_before_its_limit(agents: SlurmAgents) -> None:
    # Slurm's limits are whole minutes; it looks every 30 s, and may be a minute early.
    one = adapter(agents, partition=SHORT, timeLimit="1m", graceSeconds=59)
    await launch(one)

    ended = await wait_for(one, AgentPhase.ENDED)

    # By its exit code, or by the signal if it came before the agent was ready for it.
    assert ended.reason.startswith(("FAILED with exit code 143", "FAILED with signal 15"))


async def test_requeued_job_starts_the_same_agent_again(
    agents: SlurmAgents, cluster: SlurmCluster
) -> None:
    one = adapter(agents)
    await launch(one)
    await wait_for(one, AgentPhase.RUNNING)
    job = cluster.output("squeue", "--noheader", "--format=%i").strip()

    cluster.output("scontrol", "requeue", job)
    pending = await wait_for(one, AgentPhase.PENDING)
    # It would wait for two minutes.
    cluster.output("scontrol", "update", f"JobId={job}", "StartTime=now")
    running = await wait_for(one, AgentPhase.RUNNING)

    assert pending.reason.startswith("BeginTime: it was requeued")
    assert running.name == agent_name(1)


async def test_pending_agent_shows_slurms_reason(agents: SlurmAgents) -> None:
    one = adapter(agents, options=["--begin=now+1hour"])

    await launch(one)
    agent = await wait_for(one, AgentPhase.PENDING)

    assert "BeginTime" in agent.reason


async def test_controller_that_is_down_is_an_error_until_it_is_back(
    agents: SlurmAgents, cluster: SlurmCluster
) -> None:
    one = adapter(agents)
    await launch(one)
    await wait_for(one, AgentPhase.RUNNING)
    cluster.stop_daemon("slurmctld")
    try:
        with pytest.raises(PlatformError, match="controller does not answer"):
            await one.agents()
        (problem,) = await one.check()
    finally:
        await asyncio.to_thread(cluster.start_controller)

    assert "controller does not answer" in problem.rule
    assert (await wait_for(one, AgentPhase.RUNNING)).name == agent_name(1)


async def test_authentication_that_is_down_is_a_problem(
    agents: SlurmAgents, cluster: SlurmCluster
) -> None:
    cluster.stop_daemon("munged")
    try:
        (problem,) = await adapter(agents).check()
    finally:
        await asyncio.to_thread(cluster.start_munge)

    assert "authentication does not work" in problem.rule
    assert "munged" in problem.remedy
