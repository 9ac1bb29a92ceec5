"""States of agents from job and folder."""

import pytest

from svc_trial_runner.fleet.adapters.slurm.agent_jobs import latest_jobs, platform_agent
from svc_trial_runner.fleet.adapters.slurm.listings import SlurmJob
from svc_trial_runner.fleet.domain.agents import AgentName, AgentPhase

NAME = AgentName("0123abcd", "exp-a", 7)
PREPARED: dict[str, object] = {"state": "prepared", "host": ""}
RUNNING: dict[str, object] = {"state": "elsewhere", "host": "n1"}


def job(state: str, reason: str = "", job_id: str = "1", nodes: str = "") -> SlurmJob:
    return SlurmJob(job_id, NAME, state, reason, nodes)


@pytest.mark.parametrize(
    ("state", "folder", "phase"),
    [
        ("PENDING", PREPARED, AgentPhase.PENDING),
        ("CONFIGURING", PREPARED, AgentPhase.STARTING),
        ("RUNNING", PREPARED, AgentPhase.STARTING),
        ("RUNNING", RUNNING, AgentPhase.RUNNING),
        ("COMPLETING", RUNNING, AgentPhase.RUNNING),
        ("PENDING", RUNNING, AgentPhase.PENDING),
        ("TIMEOUT", RUNNING, AgentPhase.ENDED),
    ],
)
def test_phase_follows_the_job(state: str, folder: dict[str, object], phase: AgentPhase) -> None:
    found = platform_agent(NAME, folder, job(state))

    assert found is not None
    assert found.phase is phase


def test_requeued_job_is_pending_again_with_the_reason() -> None:
    found = platform_agent(NAME, RUNNING, job("PENDING", "BeginTime"))

    assert found is not None
    assert (found.phase, found.machine) == (AgentPhase.PENDING, "")
    assert found.reason.startswith("BeginTime: it was requeued")


def test_machine_is_the_node_of_the_job() -> None:
    found = platform_agent(NAME, RUNNING, job("RUNNING", nodes="n2"))

    assert found is not None
    assert found.machine == "n2"


@pytest.mark.parametrize(("folder", "machine"), [(RUNNING, "n1"), ({"state": "prepared"}, "")])
def test_machine_of_a_job_without_nodes_is_that_of_the_folder(
    folder: dict[str, object], machine: str
) -> None:
    found = platform_agent(NAME, folder, job("RUNNING"))

    assert found is not None
    assert found.machine == machine


def test_failed_job_shows_the_last_line_of_its_agent() -> None:
    state = {"state": "ended", "host": "n1", "exit_code": 2, "reason": "ERROR: no bus"}

    found = platform_agent(NAME, state, SlurmJob("1", NAME, "FAILED", "", "n1", "2:0"))

    assert found is not None
    assert found.reason == "FAILED with exit code 2; ERROR: no bus"


def test_agent_that_ended_in_order_has_no_reason() -> None:
    state = {"state": "ended", "host": "n1", "exit_code": 0, "reason": "last line"}

    found = platform_agent(NAME, state, job("COMPLETED"))

    assert found is not None
    assert (found.phase, found.reason) == (AgentPhase.ENDED, "")


def test_folder_without_a_job_that_never_ran_was_not_submitted() -> None:
    assert platform_agent(NAME, PREPARED, None) is None


def test_end_is_read_from_the_folder_when_slurm_has_forgotten_the_job() -> None:
    state = {"state": "ended", "host": "n1", "exit_code": 3, "reason": "out of disk"}

    found = platform_agent(NAME, state, None)

    assert found is not None
    assert (found.phase, found.reason) == (AgentPhase.ENDED, "it ended with 3: out of disk")


def test_agent_that_was_killed_long_ago_has_ended() -> None:
    found = platform_agent(NAME, RUNNING, None)

    assert found is not None
    assert found.phase is AgentPhase.ENDED
    assert "does not know its job" in found.reason


def test_live_job_of_an_agent_counts_before_ended_ones() -> None:
    jobs = [job("RUNNING", job_id="1"), job("COMPLETED", job_id="2")]

    assert latest_jobs(jobs)[NAME].state == "RUNNING"


def test_last_job_of_an_agent_counts() -> None:
    jobs = [job("FAILED", job_id="10"), job("TIMEOUT", job_id="9")]

    assert latest_jobs(jobs)[NAME].state == "FAILED"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"exit_code": 3}, "it ended with 3: it gives no reason"),
        ({"exit_code": 0, "reason": "last line"}, ""),
        ({"exit_code": None, "reason": "it was killed"}, "it was killed"),
        ({}, ""),
    ],
)
def test_end_of_a_forgotten_job_has_the_words_of_its_folder(
    fields: dict[str, object], reason: str
) -> None:
    found = platform_agent(NAME, {"state": "ended", **fields}, None)

    assert found is not None
    assert (found.phase, found.machine, found.reason) == (AgentPhase.ENDED, "", reason)


@pytest.mark.parametrize(
    ("stage", "reason", "phase", "machine", "shown"),
    [
        ("CONFIGURING", "", AgentPhase.STARTING, "n2", ""),
        ("POWER_UP_NODE", "", AgentPhase.STARTING, "n2", "POWER_UP_NODE"),
        ("SUSPENDED", "", AgentPhase.RUNNING, "n2", "SUSPENDED"),
        ("PENDING", "Priority", AgentPhase.PENDING, "",
         "Priority: jobs of higher priority are before it"),
    ],
)  # fmt: skip
def test_machine_and_reason_follow_the_job(
    stage: str, reason: str, phase: AgentPhase, machine: str, shown: str
) -> None:
    found = platform_agent(NAME, RUNNING, job(stage, reason, nodes="n2"))

    assert found is not None
    assert (found.name, found.phase, found.machine, found.reason) == (NAME, phase, machine, shown)


def test_last_task_of_an_array_is_known_by_the_number_of_its_job() -> None:
    jobs = [job("RUNNING", job_id="9_0"), job("PENDING", job_id="10_3")]

    assert latest_jobs(jobs)[NAME].id == "10_3"
    assert latest_jobs(reversed(jobs))[NAME].id == "10_3"


def test_failed_job_whose_agent_gave_no_reason_has_that_of_slurm() -> None:
    found = platform_agent(NAME, RUNNING, job("TIMEOUT"))

    assert found is not None
    assert found.reason == "TIMEOUT: its time limit was reached; raise timeLimit"
