from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.kubernetes.agent_states import (
    NO_POD,
    is_leaving,
    latest_pods,
    needs_warnings,
    object_agent,
    platform_agent,
    pod_end,
    warning_texts,
)
from svc_trial_runner.fleet.domain.agents import AgentName, AgentPhase, PlatformAgent

NAME = AgentName("0123abcd", "exp-a", 7)
METADATA = {"name": str(NAME), "labels": {"nni-agent": str(NAME)}}


def job(**status: Any) -> dict[str, Any]:
    return {"metadata": METADATA, "spec": {}, "status": status}


def pod(phase: str, node: str = "node-1", **status: Any) -> dict[str, Any]:
    return {
        "metadata": {**METADATA, "name": f"{NAME}-x"},
        "spec": {"nodeName": node},
        "status": {"phase": phase, **status},
    }


def state(name: str, kind: str, **facts: Any) -> dict[str, Any]:
    return {"name": name, "state": {kind: facts}}


def found(one: dict[str, Any], its_pod: dict[str, Any] | None = None, *words: str) -> PlatformAgent:
    agent = platform_agent(one, its_pod, words)
    assert agent is not None
    return agent


def test_object_of_another_program_is_no_agent() -> None:
    assert object_agent({"metadata": {"name": "a"}}) is None
    assert platform_agent({"metadata": {"name": "a"}}, None) is None


def test_job_without_pod_is_pending() -> None:
    assert found(job()) == PlatformAgent(NAME, AgentPhase.PENDING, "", NO_POD)


def test_quota_of_the_namespace_is_the_reason_of_a_job_without_pod() -> None:
    words = 'FailedCreate: pods "a" is forbidden: exceeded quota: team'

    agent = found(job(), None, words)

    assert agent.phase is AgentPhase.PENDING
    assert agent.reason.startswith(words)
    assert "larger quota" in agent.reason


def test_suspended_job_names_its_queue() -> None:
    one = job()
    one["spec"] = {"suspend": True}
    labels = {**METADATA["labels"], "kueue.x-k8s.io/queue-name": "team"}  # type: ignore[dict-item] # of this test
    one["metadata"] = {"name": str(NAME), "labels": labels}

    assert "queue team" in found(one).reason


def test_unscheduled_pod_has_the_words_of_the_scheduler() -> None:
    words = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}

    agent = found(job(), pod("Pending", "", conditions=[{**condition, "message": words}]))

    assert (agent.phase, agent.machine) == (AgentPhase.PENDING, "")
    assert agent.reason.startswith(f"Unschedulable: {words}")


def test_image_that_cannot_be_fetched_is_a_reason_with_a_remedy() -> None:
    waiting = state("agent", "waiting", reason="ErrImagePull", message="not found")

    agent = found(job(), pod("Pending", containerStatuses=[waiting]))

    assert (agent.phase, agent.machine) == (AgentPhase.PENDING, "node-1")
    assert agent.reason.startswith("ErrImagePull: not found; look at image")


def test_container_that_is_created_has_no_reason_but_that_of_events() -> None:
    creating = pod(
        "Pending", containerStatuses=[state("agent", "waiting", reason="ContainerCreating")]
    )

    assert found(job(), creating).reason == ""
    assert needs_warnings(found(job(), creating))
    assert found(job(), creating, "FailedMount: no such secret").reason.startswith("FailedMount")


def test_agent_runs_when_its_container_does() -> None:
    running = pod("Running", containerStatuses=[state("agent", "running")])
    sidecar = pod("Running", containerStatuses=[state("proxy", "running")])

    assert found(job(), running) == PlatformAgent(NAME, AgentPhase.RUNNING, "node-1")
    assert found(job(), sidecar).phase is AgentPhase.STARTING


def test_node_that_does_not_answer_is_the_reason_of_a_running_agent() -> None:
    condition = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
    running = [state("agent", "running")]

    agent = found(job(), pod("Running", containerStatuses=running, conditions=[condition]))

    assert (agent.phase, agent.reason) == (AgentPhase.RUNNING, "node node-1 does not answer")
    assert "does not answer" in found(job(), pod("Unknown")).reason


def test_agent_that_ended_in_order_has_no_reason() -> None:
    done = {"type": "Complete", "status": "True"}

    agent = found(job(conditions=[done]), pod("Succeeded"))

    assert agent == PlatformAgent(NAME, AgentPhase.ENDED, "node-1")


def test_evicted_pod_has_the_words_of_its_node() -> None:
    words = "The node was low on resource: memory."

    agent = found(job(), pod("Failed", reason="Evicted", message=words))

    assert (agent.phase, agent.reason) == (AgentPhase.ENDED, f"Evicted: {words}")


def test_preempted_pod_names_the_disruption() -> None:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "preempting to accommodate a higher priority pod",
    }

    assert "PreemptionByScheduler" in pod_end(pod("Failed", conditions=[condition]))


def test_container_that_used_too_much_memory_has_a_remedy() -> None:
    killed = state("agent", "terminated", exitCode=137, reason="OOMKilled")

    reason = found(job(), pod("Failed", containerStatuses=[killed])).reason

    assert reason == "container agent ended: OOMKilled, exit code 137; raise memory"


def test_last_words_of_a_container_are_shown() -> None:
    message = "python3: No module named svc_trial_runner"
    ended = state("agent", "terminated", exitCode=1, reason="Error", message=message)

    reason = found(job(), pod("Failed", containerStatuses=[ended])).reason

    assert message in reason
    assert "derive it from the image" in reason


def test_job_whose_pod_was_deleted_has_ended() -> None:
    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}

    assert found(job(conditions=[failed])).reason == "its pod was deleted"


def test_deadline_of_a_job_is_its_reason() -> None:
    failed = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "late"}

    assert found(job(conditions=[failed]), pod("Running")).reason == "DeadlineExceeded: late"


def test_live_pod_of_an_agent_counts_before_one_that_is_over() -> None:
    over, live = pod("Failed"), pod("Running")
    over["metadata"] = {**over["metadata"], "creationTimestamp": "2026-01-02T00:00:00Z"}

    assert latest_pods([live, over]) == {NAME: live}


def test_deleted_object_is_leaving() -> None:
    assert is_leaving({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    assert not is_leaving({"metadata": {}})


def test_latest_warning_is_the_first_one() -> None:
    events = [
        {
            "type": kind,
            "reason": "FailedMount",
            "message": time,
            "lastTimestamp": time,
            "involvedObject": {"name": "a"},
        }
        for kind, time in (("Warning", "1"), ("Warning", "3"), ("Normal", "4"), ("Warning", "2"))
    ]

    assert warning_texts(events) == {"a": ["FailedMount: 3", "FailedMount: 2", "FailedMount: 1"]}


def test_pod_without_a_status_has_ended_in_order() -> None:
    assert pod_end({}) == ""


def test_pod_that_is_deleted_counts_as_one_that_is_over() -> None:
    leaving, live = pod("Running"), pod("Pending")
    leaving["metadata"] = {
        **leaving["metadata"],
        "creationTimestamp": "2026-01-02T00:00:00Z",
        "deletionTimestamp": "2026-01-02T00:00:01Z",
    }

    assert latest_pods([leaving, live]) == {NAME: live}


def test_last_one_of_several_live_pods_counts() -> None:
    first, last = pod("Running"), pod("Pending")
    last["metadata"] = {**last["metadata"], "creationTimestamp": "2026-01-02T00:00:00Z"}

    assert latest_pods([last, first, {"metadata": {}}]) == {NAME: last}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_agent_whose_pod_is_over_has_ended_before_its_job(phase: str) -> None:
    agent = found(job(), pod(phase))

    assert agent == PlatformAgent(NAME, AgentPhase.ENDED, "node-1")


@pytest.mark.parametrize(
    ("phase", "reason", "needed"),
    [
        (AgentPhase.PENDING, "", True),
        (AgentPhase.PENDING, NO_POD, True),
        (AgentPhase.PENDING, "ErrImagePull", False),
        (AgentPhase.RUNNING, "", False),
    ],
)
def test_events_are_needed_for_waits_without_a_reason(
    phase: AgentPhase, reason: str, *, needed: bool
) -> None:
    assert needs_warnings(PlatformAgent(NAME, phase, "", reason)) is needed


def test_job_that_was_tried_too_often_has_its_own_words_if_it_has_a_pod() -> None:
    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}

    assert found(job(conditions=[failed]), pod("Failed")).reason == "BackoffLimitExceeded"
    failed["reason"] = "DeadlineExceeded"
    assert found(job(conditions=[failed])).reason == "DeadlineExceeded"


def test_words_of_a_job_that_has_not_failed_are_no_reason() -> None:
    done = {"type": "Complete", "status": "True", "reason": "CompletionsReached"}

    assert found(job(conditions=[done]), pod("Succeeded")).reason == ""


def test_disruption_that_did_not_happen_is_no_reason() -> None:
    conditions = [
        {"type": "DisruptionTarget", "status": "False", "reason": "a"},
        {"type": "Ready", "status": "True", "reason": "b"},
    ]

    assert pod_end(pod("Failed", conditions=conditions)) == ""


def test_container_that_ended_in_order_is_no_reason() -> None:
    containers = [
        state("settings", "terminated", exitCode=0),
        state("proxy", "running"),
        state("agent", "terminated", exitCode=3),
    ]

    assert pod_end(pod("Failed", containerStatuses=containers)) == (
        "container agent ended: exit code 3"
    )


def test_words_of_a_running_pod_with_a_reason_are_shown() -> None:
    assert pod_end(pod("Running", reason="Evicted")) == "Evicted"


@pytest.mark.parametrize("spec", [{"suspend": True}, {"runPolicy": {"suspend": True}}])
def test_suspended_job_without_a_queue_waits(spec: dict[str, Any]) -> None:
    assert found({**job(), "spec": spec}).reason == "Suspended"


@pytest.mark.parametrize("reason", ["NodeLost", "NodeUnreachable"])
def test_pod_of_a_lost_node_names_it(reason: str) -> None:
    assert found(job(), pod("Running", reason=reason)).reason == "node node-1 does not answer"


@pytest.mark.parametrize(
    "condition",
    [
        {"type": "Ready", "status": "True", "reason": "NodeNotReady"},
        {"type": "Ready", "status": "False", "reason": "ContainersNotReady"},
        {"type": "Initialized", "status": "False", "reason": "NodeNotReady"},
    ],
)
def test_pod_that_is_not_ready_by_itself_is_on_no_lost_node(condition: dict[str, str]) -> None:
    running = [state("agent", "running")]

    agent = found(job(), pod("Running", containerStatuses=running, conditions=[condition]))

    assert (agent.phase, agent.reason) == (AgentPhase.RUNNING, "")


@pytest.mark.parametrize(
    "condition",
    [
        {"type": "PodScheduled", "status": "True", "reason": "a"},
        {"type": "Ready", "status": "False", "reason": "b"},
    ],
)
def test_pod_that_has_a_node_waits_there(condition: dict[str, str]) -> None:
    agent = found(job(), pod("Pending", conditions=[condition]))

    assert agent == PlatformAgent(NAME, AgentPhase.PENDING, "node-1")


def test_time_of_a_repeated_event_is_that_of_its_last_repetition() -> None:
    place = {"involvedObject": {"name": "a"}, "type": "Warning"}
    events = [
        {**place, "reason": "created", "metadata": {"creationTimestamp": "1"}},
        {**place, "reason": "series", "series": {"lastObservedTime": "5"}, "lastTimestamp": "2"},
        {**place, "reason": "time", "eventTime": "3", "metadata": {"creationTimestamp": "6"}},
        {**place, "reason": "last", "lastTimestamp": "4", "eventTime": "7"},
    ]

    assert warning_texts(events) == {"a": ["series", "last", "time", "created"]}


def test_init_container_that_failed_is_named_before_the_others() -> None:
    ended = pod(
        "Failed",
        initContainerStatuses=[state("settings", "terminated", exitCode=2, message="no\nspace")],
        containerStatuses=[state("agent", "terminated", exitCode=1)],
    )

    assert pod_end(ended) == "container settings ended: exit code 2: no space"


def test_reason_disruption_and_exit_of_a_pod_are_shown_together() -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "a", "message": "b"}
    ended = pod(
        "Failed",
        reason="Preempted",
        message="for others",
        conditions=[condition],
        containerStatuses=[state("agent", "terminated", exitCode=143, reason="Error")],
    )

    assert pod_end(ended) == ("Preempted: for others: a: b: container agent ended: exit code 143")


def test_init_container_that_waits_is_the_reason() -> None:
    waits = pod(
        "Pending",
        initContainerStatuses=[state("settings", "waiting", reason="CrashLoopBackOff")],
        containerStatuses=[state("agent", "waiting", reason="PodInitializing")],
    )

    assert found(job(), waits) == PlatformAgent(
        NAME, AgentPhase.PENDING, "node-1", "CrashLoopBackOff"
    )


@pytest.mark.parametrize("container", ["tensorflow", "pytorch", "agent"])
def test_container_of_an_operator_is_that_of_the_agent(container: str) -> None:
    running = pod("Running", containerStatuses=[state(container, "running")])

    assert found(job(), running).phase is AgentPhase.RUNNING


def test_pod_whose_container_ended_is_starting_until_the_pod_is_over() -> None:
    ended = pod("Running", containerStatuses=[state("agent", "terminated", exitCode=0)])

    assert found(job(), ended) == PlatformAgent(NAME, AgentPhase.STARTING, "node-1")


def test_condition_of_the_scheduler_without_words_is_its_reason() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}

    assert found(job(), pod("Pending", "", conditions=[condition])).reason == "SchedulingGated"


def test_lost_node_is_named_with_what_is_known_of_it() -> None:
    assert found(job(), pod("Unknown")) == PlatformAgent(
        NAME, AgentPhase.RUNNING, "node-1", "node node-1 does not answer"
    )
