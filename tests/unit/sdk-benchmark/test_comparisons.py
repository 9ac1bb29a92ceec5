"""Comparison of searchers with their best peers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nni_benchmark.comparisons import (
    compare_with_best_peer,
    head_to_head,
    median_regrets,
    rank_table,
)
from nni_benchmark.runs import Run, Runs


def runs_of(**regrets: Sequence[float]) -> Runs:
    """Give runs of one trial on problem `p`, a seed per number; `_` in names stands for `-`."""
    runs = Runs()
    for name, values in regrets.items():
        for seed, value in enumerate(values):
            runs.add(Run(name.replace("_", "-"), "p", seed, 1, ((1, value),)))
    return runs


@pytest.mark.parametrize(
    ("own", "peer", "verdict"),
    [
        ([2.0] * 6, [1.0] * 6, "lost"),
        ([1.0] * 6, [2.0] * 6, "won"),
        ([1.1] * 6, [1.0] * 6, "even"),
        ([2.0, 2.0, 2.0, 2.0, 0.5, 0.5], [1.0] * 6, "even"),
    ],
    ids=["worse", "better", "by less than a fifth", "not in all seeds"],
)
def test_cell_is_lost_or_won_by_significance_and_margin(
    own: list[float], peer: list[float], verdict: str
) -> None:
    cell = compare_with_best_peer(
        runs_of(auto=own, optuna_tpe=peer), "auto", ["optuna-tpe"], "p", 1
    )

    assert cell is not None
    assert cell.verdict == verdict


def test_regrets_under_a_thousandth_of_random_count_as_equal() -> None:
    runs = runs_of(auto=[9e-4] * 6, optuna_gp=[1e-6] * 6, Random=[1.0] * 6)

    cell = compare_with_best_peer(runs, "auto", ["optuna-gp"], "p", 1)

    assert cell is not None
    assert (cell.verdict, cell.ratio) == ("even", 1.0)


def test_the_best_peer_is_the_one_that_counts() -> None:
    runs = runs_of(auto=[2.0] * 6, optuna_tpe=[3.0] * 6, hyperopt_tpe=[1.0] * 6)

    cell = compare_with_best_peer(runs, "auto", ["optuna-tpe", "hyperopt-tpe"], "p", 1)

    assert cell is not None
    assert (cell.peer, cell.verdict, cell.ratio) == ("hyperopt-tpe", "lost", 2.0)


def test_too_few_common_seeds_decide_nothing() -> None:
    runs = runs_of(auto=[2.0] * 6, optuna_gp=[1.0] * 5)

    assert compare_with_best_peer(runs, "auto", ["optuna-gp"], "p", 1) is None


def test_ranks_are_of_medians_over_problems_that_all_took() -> None:
    runs = runs_of(a=[1.0, 9.0, 2.0], b=[3.0, 3.0, 3.0])
    runs.add(Run("c", "q", 0, 1, ((1, 0.0),)))

    table = rank_table(runs, "group", ["p"], 1)

    assert median_regrets(runs, "p", 1) == {"a": 2.0, "b": 3.0}
    assert table is not None
    assert (table.searchers, table.means) == (("a", "b"), (1.0, 2.0))


def test_ranks_are_of_common_seeds_and_leave_out_who_has_few() -> None:
    runs = runs_of(a=[1.0, 1.0, 9.0, 9.0, 9.0], b=[2.0, 2.0, 2.0], c=[0.0])

    table = rank_table(runs, "group", ["p"], 1)

    assert table is not None
    assert (table.searchers, table.means) == (("a", "b"), (1.0, 2.0))


def test_one_search_is_not_ranked() -> None:
    assert rank_table(runs_of(a=[1.0]), "group", ["p"], 1) is None


def test_duel_counts_the_best_setting_of_a_peer_on_common_seeds() -> None:
    runs = runs_of(TPE=[2.0, 2.0, 99.0], optuna_tpe=[3.0, 3.0], optuna_tpe_group=[1.0, 1.0])

    found = head_to_head(runs, "TPE", ["optuna-tpe", "optuna-tpe-group"], ["p"], [1])

    assert (found.wins, found.losses, found.ties) == (0, 1, 0)
    assert found.mean_rank == 2.0
