from __future__ import annotations

from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.kubernetes.workloads import JOBS, JobWorkload, condition_end
from svc_trial_runner.fleet.testing import agent_name


def test_objects_of_a_kind_have_a_path() -> None:
    assert JOBS.path == "/apis/batch/v1/namespaces/{namespace}/jobs"


def test_job_has_the_name_of_its_agent() -> None:
    assert JobWorkload({}).object_name(agent_name(1)) == str(agent_name(1))


def test_pod_of_a_role_is_not_that_of_the_agent() -> None:
    workload = JobWorkload({})

    assert workload.is_agent_pod({"metadata": {"labels": {}}})
    assert not workload.is_agent_pod({"metadata": {"labels": {"nni-role": "ps"}}})


@pytest.mark.parametrize(
    ("condition", "failed"),
    [
        ({"type": "Complete", "status": "True"}, False),
        ({"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}, True),
    ],
)
def test_condition_that_holds_is_the_end(condition: dict[str, Any], failed: bool) -> None:
    end = condition_end({"status": {"conditions": [condition]}}, "Complete")

    assert end is not None
    assert end.failed is failed


def test_condition_that_does_not_hold_is_no_end() -> None:
    failed = {"type": "Failed", "status": "False"}

    assert condition_end({"status": {"conditions": [failed]}}, "Complete") is None
    assert condition_end({}, "Complete") is None


def test_section_is_checked() -> None:
    (problem,) = JobWorkload({"memory": "16GB"}).problems()

    assert problem.field == "memory"


def test_first_condition_that_is_an_end_counts() -> None:
    conditions = [
        {"type": "Suspended", "status": "True"},
        {"type": "Failed", "status": "True", "reason": "a", "message": "b"},
    ]

    end = condition_end({"status": {"conditions": conditions}}, "Complete")

    assert end is not None
    assert (end.failed, end.words) == (True, "a: b")
    assert condition_end({"status": {"conditions": None}}, "Complete") is None
