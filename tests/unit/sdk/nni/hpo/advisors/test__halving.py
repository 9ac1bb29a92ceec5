"""Successive halving."""

import math

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


def test_rounds_that_nobody_reaches_are_left_out() -> None:
    assert rounds_of(2, 1, 3, 3) == (Round(2, 1),)


def test_best_go_on_and_ties_keep_their_order() -> None:
    bracket = Bracket(0, (Round(4, 1), Round(2, 2)))
    for job, (name, loss) in zip(
        jobs_of(bracket), [("a", 3.0), ("b", 1.0), ("c", 1.0), ("d", 1.0)], strict=True
    ):
        bracket.end(job.index, name, loss)

    assert [job.configuration for job in jobs_of(bracket)] == ["b", "c"]


def test_order_of_arrival_does_not_matter() -> None:
    bracket = Bracket(0, (Round(3, 1), Round(1, 3)))
    jobs_of(bracket)
    for index, loss in [(2, 5.0), (0, 5.0), (1, 7.0)]:
        bracket.end(index, index, loss)

    (promoted,) = jobs_of(bracket)
    assert promoted.configuration == 0
    assert promoted.budget == 3


def test_configuration_without_a_result_ranks_last() -> None:
    bracket = Bracket(0, (Round(3, 1), Round(2, 3)))
    jobs_of(bracket)
    for index, loss in enumerate([math.inf, 1e300, math.inf]):
        bracket.end(index, index, loss)

    assert [job.configuration for job in jobs_of(bracket)] == [1, 0]


def test_round_waits_for_its_last_result() -> None:
    bracket = Bracket(3, (Round(2, 1), Round(1, 2)))
    first, second = jobs_of(bracket)
    bracket.end(first.index, "a", 0.0)
    assert bracket.next_job() is None

    bracket.end(second.index, "b", 1.0)

    (last,) = jobs_of(bracket)
    assert (first.id, second.id, last.id) == ("3_0_0", "3_0_1", "3_1_0")


def test_bracket_is_finished_after_its_last_round() -> None:
    bracket = Bracket(0, (Round(1, 1),))
    (only,) = jobs_of(bracket)
    open_before = not bracket.finished

    bracket.end(only.index, "a", 0.0)

    assert open_before
    assert bracket.finished
    assert jobs_of(bracket) == []
