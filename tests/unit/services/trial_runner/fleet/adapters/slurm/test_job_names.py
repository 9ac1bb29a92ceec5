"""Names of jobs and arrays."""

import pytest

from svc_trial_runner.fleet.adapters.slurm.job_names import agent_of_job, group_orders
from svc_trial_runner.fleet.domain.agents import AgentCredentials, AgentName, AgentOrder


def name(number: int) -> AgentName:
    return AgentName("0123abcd", "exp-a", number)


def order(number: int, slots: int = 1, gpus: int | None = None) -> AgentOrder:
    credentials = AgentCredentials("user", "password", "token")
    return AgentOrder(name(number), credentials, slots, gpus_per_trial=gpus)


def test_job_of_one_agent_has_its_name() -> None:
    (job,) = group_orders([order(7)], 1000)

    assert (job.job_name, job.indices) == ("nni-0123abcd-exp-a-7", [])


def test_agents_that_ask_for_the_same_are_one_array() -> None:
    (job,) = group_orders([order(9), order(7), order(12)], 1000)

    assert (job.job_name, job.indices) == ("nni-0123abcd-exp-a-7.array", [0, 2, 5])


def test_agents_that_ask_for_different_resources_are_different_jobs() -> None:
    jobs = group_orders([order(1), order(2, gpus=1), order(3, slots=2)], 1000)

    assert [[one.name.number for one in job.orders] for job in jobs] == [[1], [2], [3]]


def test_numbers_that_are_further_apart_than_the_largest_index_are_different_jobs() -> None:
    jobs = group_orders([order(number) for number in (1, 2, 5, 6)], 3)

    assert [job.job_name for job in jobs] == [
        "nni-0123abcd-exp-a-1.array",
        "nni-0123abcd-exp-a-5.array",
    ]


def test_without_arrays_each_agent_is_a_job() -> None:
    assert len(group_orders([order(1), order(2)], 0)) == 2


@pytest.mark.parametrize("numbers", [[4], [4, 5, 17]])
def test_agents_are_found_by_the_jobs_that_they_were_submitted_as(numbers: list[int]) -> None:
    (job,) = group_orders([order(number) for number in numbers], 1000)
    ids = [f"88_{index}" for index in job.indices] or ["88"]

    assert [agent_of_job(one, job.job_name) for one in ids] == [name(one) for one in numbers]


@pytest.mark.parametrize(
    ("job_id", "job_name"),
    [
        ("88", "train.sh"),
        ("88", "nni-0123abcd-exp-a-7.array"),
        ("88_[1-3]", "nni-0123abcd-exp-a-7.array"),
        ("88", "nni-0123abcd-exp-a-x"),
        ("88_9", f"nni-0123abcd-{'p' * 48}-1.array"),  # 10 makes it longer than a name can be
    ],
)
def test_other_jobs_are_no_agents(job_id: str, job_name: str) -> None:
    assert agent_of_job(job_id, job_name) is None


def test_arrays_are_sorted_by_resources_and_numbers() -> None:
    jobs = group_orders([order(5, 2), order(4), order(3, 2), order(2), order(9, 1, 1)], 1000)

    assert [[one.name.number for one in job.orders] for job in jobs] == [[2, 4], [9], [3, 5]]


def test_orders_with_as_many_gpus_in_all_are_of_one_array_if_their_slots_agree() -> None:
    (zero,) = group_orders([order(1, gpus=0), order(2)], 1000)

    assert zero.indices == [0, 1]
    assert len(group_orders([order(1, 2, 1), order(2, 1, 2)], 1000)) == 2


@pytest.mark.parametrize(("limit", "count"), [(3, 1), (2, 2)])
def test_largest_index_is_that_of_the_last_agent(limit: int, count: int) -> None:
    assert len(group_orders([order(1), order(4)], limit)) == count


def test_number_of_a_task_is_added_to_that_of_the_first_agent() -> None:
    assert agent_of_job("88_12", "nni-0123abcd-exp-a-7.array") == name(19)
    assert agent_of_job("anything", "nni-0123abcd-exp-a-7") == name(7)
