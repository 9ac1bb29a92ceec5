from __future__ import annotations

from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.aml.jobs import (
    compute_words,
    is_over,
    is_waiting,
    job_of,
    platform_agent,
    tag_of,
)
from svc_trial_runner.fleet.adapters.aml.options import AmlOptions
from svc_trial_runner.fleet.adapters.job_options import JobOptions
from svc_trial_runner.fleet.domain.agents import AgentPhase
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, agent_name

NAME = agent_name(1)
OPTIONS = AmlOptions("id", "tuning", "trials", "gpus", agent=JobOptions(python="/opt/a python"))


def job(status: str, **properties: Any) -> dict[str, Any]:
    return {"name": str(NAME), "properties": {"status": status, **properties}}


def test_job_has_the_documented_fields_and_its_settings_as_an_input() -> None:
    found = job_of(OPTIONS, NAME, "/environments/1", "store", "folder/one.json")

    assert (found["jobType"], found["displayName"]) == ("Command", str(NAME))
    assert found["computeId"] == OPTIONS.compute_id
    assert found["environmentId"] == "/environments/1"
    assert found["tags"] == {tag_of(INSTALLATION): POOL}
    assert found["resources"] == {"instanceCount": 1}
    assert found["experimentName"] == f"nni-{POOL}"
    assert found["inputs"] == {
        "settings": {
            "jobInputType": "uri_file",
            "mode": "Download",
            "uri": (
                "azureml://subscriptions/id/resourcegroups/tuning/workspaces/trials"
                "/datastores/store/paths/folder/one.json"
            ),
        }
    }


def test_command_takes_the_settings_out_of_the_input_and_runs_the_agent() -> None:
    command = job_of(OPTIONS, NAME, "", "store", "one.json")["command"]

    assert '(umask 077; cat "${{inputs.settings}}" >"$HOME/.nni-agent/settings.json")' in command
    assert 'rm -f "${{inputs.settings}}"' in command
    assert command.endswith(
        "exec '/opt/a python' -P -m svc_trial_runner --settings \"$HOME/.nni-agent/settings.json\""
    )
    assert "\n" not in command


@pytest.mark.parametrize("status", ["Queued", "Preparing", "Provisioning", "NotStarted"])
def test_waiting_job_is_pending_with_its_state_and_that_of_the_compute(status: str) -> None:
    agent = platform_agent(NAME, job(status), "gpus has 0 of at most 4 nodes")

    assert agent.phase is AgentPhase.PENDING
    assert agent.reason == f"{status}: gpus has 0 of at most 4 nodes"
    assert is_waiting(job(status))


@pytest.mark.parametrize(
    ("status", "phase", "reason"),
    [
        ("Running", AgentPhase.RUNNING, ""),
        ("CancelRequested", AgentPhase.RUNNING, ""),
        ("Completed", AgentPhase.ENDED, ""),
        ("Canceled", AgentPhase.ENDED, "Canceled"),
        ("Failed", AgentPhase.ENDED, "Failed"),
        ("Hibernating", AgentPhase.RUNNING, "Azure says Hibernating"),
        ("", AgentPhase.RUNNING, "Azure says nothing"),
    ],
)
def test_state_is_the_phase_of_the_agent(status: str, phase: AgentPhase, reason: str) -> None:
    agent = platform_agent(NAME, job(status), "unused")

    assert (agent.phase, agent.reason) == (phase, reason)
    assert is_over(job(status)) is (phase is AgentPhase.ENDED)


def test_failed_job_names_its_page_in_the_studio() -> None:
    services = {"Studio": {"endpoint": "https://ml.azure.com/runs/1"}}

    agent = platform_agent(NAME, job("Failed", services=services), "")

    assert agent.reason == "Failed; its log is at https://ml.azure.com/runs/1"


def test_cluster_shows_its_nodes_and_a_quota_that_is_used_up() -> None:
    error = {"code": "QuotaExceeded", "message": "The limit of\n24 cores is reached."}
    compute = {
        "computeType": "AmlCompute",
        "properties": {
            "scaleSettings": {"maxNodeCount": 4},
            "currentNodeCount": 1,
            "allocationState": "Resizing",
            "errors": [{"error": error}, {"error": error}],
        },
    }

    assert compute_words("gpus", compute) == (
        "gpus has 1 of at most 4 nodes (Resizing); QuotaExceeded: The limit of 24 cores is reached."
    )


@pytest.mark.parametrize(
    ("compute", "words"),
    [
        ({"computeType": "ComputeInstance", "properties": {"state": "Stopped"}}, "pc is Stopped"),
        ({"computeType": "Kubernetes", "provisioningState": "Succeeded"}, "pc is Succeeded"),
        ({"provisioningErrors": [{"code": "A", "message": "b"}, 1]}, "pc is unknown; A: b"),
    ],
)
def test_other_compute_shows_its_state(compute: dict[str, Any], words: str) -> None:
    assert compute_words("pc", compute) == words


def test_cluster_without_a_count_has_no_nodes() -> None:
    assert compute_words("gpus", {"computeType": "AmlCompute"}) == (
        "gpus has 0 of at most None nodes (Unknown)"
    )


def test_reason_is_shortened_to_400_characters() -> None:
    assert platform_agent(NAME, job("Queued"), "a" * 500).reason == "Queued: " + "a" * 392


def test_whole_command_of_a_job_is_this_one() -> None:
    options = AmlOptions("id", "tuning", "trials", "gpus")

    assert job_of(options, NAME, "", "store", "one.json")["command"] == (
        'mkdir -p -m 700 "$HOME/.nni-agent" && (umask 077; cat "${{inputs.settings}}" '
        '>"$HOME/.nni-agent/settings.json") && rm -f "${{inputs.settings}}"; exec python3 -P -m '
        'svc_trial_runner --settings "$HOME/.nni-agent/settings.json"'
    )


def test_name_of_a_datastore_is_encoded() -> None:
    inputs = job_of(OPTIONS, NAME, "", "a/b c", "one.json")["inputs"]

    assert "/datastores/a%2Fb%20c/paths/one.json" in inputs["settings"]["uri"]


@pytest.mark.parametrize("status", ["Starting", "Paused"])
def test_job_without_a_machine_waits(status: str) -> None:
    assert is_waiting(job(status))
    assert platform_agent(NAME, job(status), "").reason == status


@pytest.mark.parametrize("status", ["Finalizing", "NotResponding", "Unknown", "Running"])
def test_job_with_a_machine_runs_without_a_reason(status: str) -> None:
    agent = platform_agent(NAME, job(status), "unused")

    assert (agent.phase, agent.reason, agent.machine) == (AgentPhase.RUNNING, "", "")
    assert not is_waiting(job(status))
    assert not is_over(job(status))


def test_job_without_properties_has_no_state() -> None:
    assert platform_agent(NAME, {"properties": 7}, "").reason == "Azure says nothing"


def test_errors_of_provisioning_come_before_those_of_nodes() -> None:
    compute = {
        "computeType": "AmlCompute",
        "provisioningErrors": [{"error": {"code": "A"}}, {"message": "b"}, {}],
        "properties": {
            "scaleSettings": {"maxNodeCount": 2},
            "errors": [{"code": "C", "message": "d"}],
        },
    }

    assert compute_words("gpus", compute) == ("gpus has 0 of at most 2 nodes (Unknown); A; b; C: d")
