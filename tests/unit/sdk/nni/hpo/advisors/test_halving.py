"""Successive halving."""

import math
from random import Random

import pytest

from nni.hpo.advisors._halving import Bracket, Job, Round, deepest_bracket, rounds_of


def jobs_of(bracket: Bracket) -> list[Job]:
    jobs: list[Job] = []
    while (job := bracket.next_job()) is not None:
        jobs.append(job)
    return jobs


@pytest.mark.parametrize(
    ("smallest", "largest", "eta", "depth"),
    [(1, 243, 3, 5), (1, 1000, 10, 3), (1, 81, 3, 4), (1, 60, 3, 3), (1, 1, 2, 0), (2, 7, 3, 1)],
)
def test_depth_is_exact_where_logarithms_are_not(
    smallest: int, largest: int, eta: int, depth: int
) -> None:
    assert deepest_bracket(smallest, largest, eta) == depth


def test_budgets_are_rounded_down_to_at_least_one() -> None:
    assert [entry.budget for entry in rounds_of(27, 60 / 27, 3, 4)] == [2, 6, 20, 60]
    assert rounds_of(1, 0.5, 2, 1) == (Round(1, 1),)


def test_a_third_of_a_third_is_not_rounded_below_its_value() -> None:
    assert [entry.budget for entry in rounds_of(243, 1000 / 3**5, 3, 6)][-1] == 1000


def test_rounds_without_configurations_are_left_out() -> None:
    assert rounds_of(2, 1, 3, 3) == (Round(2, 1),)


def test_best_go_on_and_ties_keep_their_order() -> None:
    bracket = Bracket(0, (Round(4, 1), Round(2, 2)))
    for job, (name, loss) in zip(
        jobs_of(bracket), [("a", 3.0), ("b", 1.0), ("c", 1.0), ("d", 1.0)], strict=True
    ):
        bracket.end(job, name, loss)

    assert [job.configuration for job in jobs_of(bracket)] == ["b", "c"]


def test_order_of_arrival_does_not_matter() -> None:
    bracket = Bracket(0, (Round(3, 1), Round(1, 3)))
    jobs = jobs_of(bracket)
    for index, loss in [(2, 5.0), (0, 5.0), (1, 7.0)]:
        bracket.end(jobs[index], index, loss)

    (promoted,) = jobs_of(bracket)
    assert promoted.configuration == 0
    assert promoted.budget == 3


def test_configuration_without_a_result_ranks_last() -> None:
    bracket = Bracket(0, (Round(3, 1), Round(2, 3)))
    for job, loss in zip(jobs_of(bracket), [math.inf, 1e300, math.inf], strict=True):
        bracket.end(job, job.index, loss)

    assert [job.configuration for job in jobs_of(bracket)] == [1, 0]


def test_round_waits_for_its_last_result() -> None:
    bracket = Bracket(3, (Round(2, 1), Round(1, 2)))
    first, second = jobs_of(bracket)
    bracket.end(first, "a", 0.0)
    assert bracket.next_job() is None

    bracket.end(second, "b", 1.0)

    (last,) = jobs_of(bracket)
    assert (first.id, second.id, last.id) == ("3_0_0", "3_0_1", "3_1_0")


def test_asynchronous_bracket_promotes_what_its_share_of_ended_jobs_allows() -> None:
    bracket = Bracket(0, (Round(6, 1), Round(2, 3)), asynchronous=True)
    jobs = jobs_of(bracket)
    for job, loss in zip(jobs[:2], [2.0, 1.0], strict=True):
        bracket.end(job, job.index, loss)
    too_few = jobs_of(bracket)

    bracket.end(jobs[2], 2, 3.0)
    (early,) = jobs_of(bracket)
    for job in jobs[3:]:
        bracket.end(job, job.index, 0.0)

    assert too_few == []
    assert (early.configuration, early.budget, early.source) == (1, 3, "0_0_1")
    assert [job.configuration for job in jobs_of(bracket)] == [3]


def test_asynchronous_bracket_promotes_before_it_begins_others() -> None:
    bracket = Bracket(0, (Round(4, 1), Round(2, 3)), asynchronous=True)
    for loss in (1.0, 2.0):
        job = bracket.next_job()
        assert job is not None
        bracket.end(job, loss, loss)

    following = [bracket.next_job(), bracket.next_job()]

    assert [job.budget for job in following if job] == [3, 1]


def test_asynchronous_bracket_waits_with_failed_ones_until_the_round_is_complete() -> None:
    bracket = Bracket(0, (Round(2, 1), Round(1, 3)), asynchronous=True)
    first, second = jobs_of(bracket)
    bracket.end(first, "a", math.inf)
    before = jobs_of(bracket)
    bracket.end(second, "b", math.inf)

    (promoted,) = jobs_of(bracket)

    assert before == []
    assert (promoted.configuration, promoted.source) == ("a", None)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("deepest", [1, 2, 3, 4])
def test_asynchronous_bracket_keeps_the_sizes_of_its_rounds(seed: int, deepest: int) -> None:
    rounds = rounds_of(-(-5 * 3**deepest // (deepest + 1)), 1, 3, deepest + 1)
    rng = Random(seed)
    bracket = Bracket(0, rounds, asynchronous=True)
    running: list[Job] = []
    ran = [0 for _ in rounds]
    while not bracket.finished:
        while len(running) < 4 and (job := bracket.next_job()) is not None:
            running.append(job)
        job = running.pop(rng.randrange(len(running)))
        ran[job.round] += 1
        bracket.end(job, None, rng.choice([rng.random(), math.inf]))

    assert ran == [entry.size for entry in rounds]
    assert running == []


def test_bracket_is_finished_after_its_last_round() -> None:
    bracket = Bracket(0, (Round(1, 1),))
    (only,) = jobs_of(bracket)
    open_before = not bracket.finished

    bracket.end(only, "a", 0.0)

    assert open_before
    assert bracket.finished
    assert jobs_of(bracket) == []


def test_bracket_promotes_after_complete_rounds_only_unless_it_is_asynchronous() -> None:
    rounds = (Round(4, 1), Round(2, 2))
    plain, early = Bracket(0, rounds), Bracket(0, rounds, asynchronous=True)
    for bracket in (plain, early):
        for job in jobs_of(bracket)[:2]:
            bracket.end(job, job.index, float(job.index))

    assert [job.budget for job in jobs_of(plain)] == []
    assert [job.budget for job in jobs_of(early)] == [2]
