"""Probability of success over rows of numbers and options."""

import subprocess
import sys

import numpy as np
import pytest

from nni.hpo.models.feasibility import FeasibilityModel
from nni.hpo.models.feasible_rows import RowFeasibility


def learnt(safe: float = 0.75) -> RowFeasibility:
    """Return rows of a number and an option of three, of which the second always failed."""
    rows = RowFeasibility(1, np.array([3]), safe=safe)
    for index, number in enumerate(np.random.default_rng(0).random(30)):
        rows.add((float(number),), (index % 3,), succeeded=index % 3 != 1)
    return rows


def test_option_that_fails_is_improbable() -> None:
    rows = learnt()

    assert rows.log_probability((0.5,), (1,)) < np.log(0.4)
    assert rows.log_probability((0.5,), (2,)) > np.log(0.8)


def test_weights_are_of_each_row() -> None:
    weights = learnt().log_weights(np.array([[0.2], [0.2]]), np.array([[1], [0]]))

    assert weights is not None
    assert weights[0] < weights[1]


def test_rows_that_all_succeeded_have_no_weights() -> None:
    rows = RowFeasibility(1, np.empty(0, dtype=np.int64), safe=0.75)
    rows.add((0.5,), (), succeeded=True)

    assert rows.log_weights(np.array([[0.1]]), np.empty((1, 0), dtype=np.int64)) is None
    assert rows.log_probability((0.1,), ()) == 0.0


def test_later_trials_change_what_was_known() -> None:
    rows = RowFeasibility(1, np.array([3]), safe=0.75)
    rows.add((0.5,), (1,), succeeded=False)
    assert rows.current() is None
    for index, number in enumerate(np.random.default_rng(0).random(30)):
        rows.add((float(number),), (index % 3,), succeeded=index % 3 != 1)

    assert rows.log_probability((0.5,), (1,)) < np.log(0.4)
    assert rows.current() is rows.current()


def test_tpe_without_failures_loads_no_gaussian_process() -> None:
    program = (
        "import sys\n"
        "from nni.hpo import Study\n"
        "study = Study({'x': {'_type': 'uniform', '_value': [0, 1]}}, tuner='TPE', seed=0)\n"
        "study.tell(study.ask(), 1.0)\n"
        "assert 'nni.hpo.models.gp_regression' not in sys.modules"
    )

    done = subprocess.run([sys.executable, "-c", program], check=False)

    assert done.returncode == 0


def test_weight_falls_below_the_safe_share_of_the_greatest_probability() -> None:
    place = (np.array([[0.2]]), np.array([[1]]))

    strict, loose, none = (learnt(safe).log_weights(*place) for safe in (0.99, 0.75, 1e-9))

    chance = learnt().log_probability((0.2,), (1,))
    assert strict is not None
    assert loose is not None
    assert none is not None
    assert strict[0] < loose[0] < chance
    assert none[0] == chance


def test_options_are_at_distance_one_and_numbers_are_as_they_are() -> None:
    rows, rng = RowFeasibility(1, np.array([3, 2]), safe=0.75), np.random.default_rng(0)
    numbers, options = rng.random(30), rng.integers((3, 2), size=(30, 2))
    succeeded = options[:, 0] != 1
    for number, row, success in zip(numbers, options, succeeded, strict=True):
        rows.add((float(number),), (int(row[0]), int(row[1])), succeeded=bool(success))

    weights = rows.log_weights(numbers[:, None], options)

    places = np.sqrt(0.5) * np.eye(3)[options[:, 0]], np.sqrt(0.5) * np.eye(2)[options[:, 1]]
    features = np.column_stack([numbers, *places])
    model = FeasibilityModel(np.array([0, 1, 1, 1, 2, 2]), 0.75).update(features, succeeded)
    assert weights is not None
    assert model is not None
    assert weights == pytest.approx(model.log_weight(features))


def test_row_without_one_of_its_options_is_refused() -> None:
    rows = RowFeasibility(1, np.array([3, 2]), safe=0.75)
    rows.add((0.5,), (1,), succeeded=False)

    with pytest.raises(ValueError, match="longer"):
        rows.current()
