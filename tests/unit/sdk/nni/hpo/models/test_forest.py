"""Random forests."""

import numpy as np
import pytest

from nni.hpo.models.forest import _best_cut, _category_ranks, grown_forest

NUMBER = np.array([0])


def test_follows_a_step() -> None:
    points = np.random.default_rng(0).random((200, 1))
    targets = np.where(points[:, 0] < 0.6, -1.0, 1.0)

    means, _ = grown_forest(points, targets, NUMBER, 10, np.random.default_rng(0)).predict(
        np.array([[0.1], [0.5], [0.7], [0.95]])
    )

    assert means == pytest.approx([-1, -1, 1, 1], abs=0.05)


def test_tells_sets_of_categories_apart() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(6, size=(200, 1)).astype(np.float64)
    targets = np.isin(codes[:, 0], [1, 4]).astype(np.float64)

    means, _ = grown_forest(codes, targets, np.array([6]), 10, rng).predict(np.arange(6.0)[:, None])

    assert means == pytest.approx([0, 1, 0, 0, 1, 0], abs=0.01)


def test_mixed_columns_interact() -> None:
    rng = np.random.default_rng(0)
    points = np.column_stack([rng.random(400), rng.integers(2, size=400)])
    targets = np.where(points[:, 1] == 1, points[:, 0], -points[:, 0])

    means, _ = grown_forest(points, targets, np.array([0, 2]), 10, rng).predict(
        np.array([[0.9, 0], [0.9, 1]])
    )

    assert means == pytest.approx([-0.9, 0.9], abs=0.1)


def test_doubt_is_greater_where_results_disagree() -> None:
    rng = np.random.default_rng(0)
    points = rng.random((300, 1))
    targets = np.where(points[:, 0] > 0.5, rng.standard_normal(300), 0.0)

    _, deviations = grown_forest(points, targets, NUMBER, 10, rng).predict(np.array([[0.2], [0.8]]))

    assert deviations[1] > 10 * deviations[0]


@pytest.mark.parametrize("count", [1, 3, 50])
def test_equal_points_make_one_leaf(count: int) -> None:
    targets = np.arange(count, dtype=np.float64)

    means, deviations = grown_forest(
        np.zeros((count, 2)), targets, np.array([0, 3]), 5, np.random.default_rng(0)
    ).predict(np.zeros((4, 2)))

    assert np.ptp(means) == 0
    assert np.isfinite(deviations).all()


def test_neighbouring_floats_can_be_cut() -> None:
    low = 0.5
    points = np.array([[low]] * 5 + [[np.nextafter(low, 1)]] * 5)
    targets = np.array([0.0] * 5 + [1.0] * 5)

    means, _ = grown_forest(points, targets, NUMBER, 20, np.random.default_rng(0)).predict(points)

    assert means[-1] > means[0]


def test_same_draws_give_the_same_forest() -> None:
    points = np.random.default_rng(0).random((60, 3))
    first, second = (
        grown_forest(points, points[:, 0], np.zeros(3, dtype=np.int64), 5, np.random.default_rng(2))
        for _ in range(2)
    )

    assert np.array_equal(first.predict(points), second.predict(points))


@pytest.mark.parametrize("seed", range(5))
def test_cut_lowers_the_squared_error_most(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys = rng.integers(6, size=(30, 3)).astype(np.float64)
    targets = rng.standard_normal(30) + keys[:, 1]

    def error(column: int, low: float) -> float:
        left = keys[:, column] <= low
        sides = (targets[left], targets[~left])
        return float(sum(((side - side.mean()) ** 2).sum() for side in sides))

    found = _best_cut(keys, targets)

    assert found is not None
    column, low, high = found
    slow = [(c, k) for c in range(3) for k in np.unique(keys[:, c])[:-1]]
    assert error(column, low) == pytest.approx(min(error(*cut) for cut in slow))
    assert high == min(key for key in keys[:, column] if key > low)


def test_five_of_six_columns_are_tried_first() -> None:
    points = np.random.default_rng(0).random((40, 6))
    targets = np.where(points[:, 2] < 0.5, -1.0, 1.0)

    forest = grown_forest(
        points, targets, np.zeros(6, dtype=np.int64), 200, np.random.default_rng(1)
    )

    # The root is split by the column that matters if it is tried: in 5/6 of the trees; the
    # standard error is 0.026.
    chosen = np.mean([tree.columns[0] == 2 for tree in forest.trees])
    assert chosen == pytest.approx(5 / 6, abs=0.1)


@pytest.mark.parametrize(
    ("count", "equal", "split"), [(3, False, False), (40, True, False), (40, False, True)]
)
def test_node_of_few_observations_or_equal_targets_is_a_leaf(
    count: int, equal: bool, split: bool
) -> None:
    points = np.linspace(0, 1, count)[:, None]
    targets = np.ones(count) if equal else points[:, 0]

    forest = grown_forest(points, targets, NUMBER, 10, np.random.default_rng(0))

    assert {len(tree.columns) > 1 for tree in forest.trees} == {split}


def test_leaf_has_no_column() -> None:
    forest = grown_forest(np.zeros((3, 1)), np.ones(3), NUMBER, 1, np.random.default_rng(0))

    assert forest.trees[0].columns.tolist() == [-1]
    assert forest.trees[0].children.tolist() == [[-1, -1]]


@pytest.mark.parametrize(
    ("codes", "targets", "ranks"),
    [
        ([0, 2, 2], [1.0, 9.0, 9.0], [0, 1, 2]),  # 1 does not occur: 19 / 3
        ([0, 1, 1, 2], [4.0, 3.0, 3.0, 5.0], [1, 0, 2]),
        ([0, 1, 2], [2.0, 2.0, 1.0], [1, 2, 0]),
    ],
)
def test_categories_are_ranked_by_their_mean_targets(
    codes: list[int], targets: list[float], ranks: list[int]
) -> None:
    found = _category_ranks(np.array(codes, dtype=np.float64), np.array(targets), 3)

    assert found.tolist() == ranks


def test_prediction_has_the_variance_within_and_between_leaves() -> None:
    single = np.zeros((6, 1))
    targets = np.array([0.0, 2.0, 0.0, 2.0, 0.0, 2.0])
    forest = grown_forest(single, targets, NUMBER, 4, np.random.default_rng(0))

    means, deviations = forest.predict(single[:1])

    trees = [(tree.means[0], tree.variances[0]) for tree in forest.trees]
    between = np.var([mean for mean, _ in trees])
    assert means[0] == pytest.approx(np.mean([mean for mean, _ in trees]))
    assert deviations[0] ** 2 == pytest.approx(between + np.mean([inner for _, inner in trees]))


def test_cuts_are_spread_evenly_between_two_values() -> None:
    points = np.array([[0.2]] * 5 + [[0.6]] * 5)

    forest = grown_forest(points, points[:, 0], NUMBER, 400, np.random.default_rng(0))

    cuts = np.array([tree.thresholds[0] for tree in forest.trees if tree.columns[0] >= 0])
    # Four standard errors of the mean: 4 * 0.4 / sqrt(12 * 400).
    assert cuts.mean() == pytest.approx(0.4, abs=0.024)
    assert cuts.min() < 0.21
    assert cuts.max() > 0.59
