"""Training on a table: budgets, and checkpoints on which a trial goes on."""

from typing import Any

import pytest

from nni.hpo.simulation.curve_table import Curve, CurveTable, GridAxis
from nni.hpo.simulation.table_training import TableTraining

TABLE = CurveTable(
    (GridAxis("x", "choice", (1, 2), (1, 2)),),
    (Curve((0.1, 0.2, 0.3, 0.4), 1.0), Curve((1.0, 2.0, 3.0, 4.0), 2.0)),
)


def values(training: TableTraining, **parameters: Any) -> tuple[float, ...]:
    return training.segment(parameters).values


def test_configuration_without_a_budget_is_trained_for_the_steps_of_a_trial() -> None:
    training = TableTraining(TABLE, trial_steps=3)

    assert values(training, x=1) == (0.1, 0.2, 0.3)
    assert training.segment({"x": 2}) == Curve((1.0, 2.0, 3.0), 2.0)
    assert training.resumed_at({"x": 1}) == 0


def test_budget_is_the_last_step_and_a_curve_is_constant_beyond_its_end() -> None:
    training = TableTraining(TABLE, trial_steps=1)

    assert values(training, x=1, TRIAL_BUDGET=2) == (0.1, 0.2)
    assert values(training, x=1, TRIAL_BUDGET=2.9) == (0.1, 0.2)
    assert values(training, x=1, TRIAL_BUDGET=6) == (0.1, 0.2, 0.3, 0.4, 0.4, 0.4)


@pytest.mark.parametrize("budget", [0, 0.5, True, "2", None])
def test_budget_that_is_no_number_from_1_on_is_refused(budget: object) -> None:
    with pytest.raises(ValueError, match="TRIAL_BUDGET must be a number >= 1"):
        values(TableTraining(TABLE, 1), x=1, TRIAL_BUDGET=budget)


def test_training_goes_on_at_the_step_of_its_checkpoint_on_its_own_curve() -> None:
    training = TableTraining(TABLE, trial_steps=1)
    training.save({"x": 1, "save_checkpoint_dir": "a"}, 2)
    training.save({"x": 2, "load_checkpoint_dir": "a", "save_checkpoint_dir": "b"}, 1)

    assert values(training, x=2, load_checkpoint_dir="a") == (3.0,)
    assert training.resumed_at({"x": 2, "load_checkpoint_dir": "a"}) == 2
    assert values(training, x=1, load_checkpoint_dir="b", TRIAL_BUDGET=4) == (0.4,)
    assert training.resumed_at({"x": 1, "load_checkpoint_dir": "unknown"}) == 0


def test_checkpoint_at_or_beyond_the_budget_is_trained_for_one_step() -> None:
    training = TableTraining(TABLE, trial_steps=1)
    training.save({"x": 1, "save_checkpoint_dir": "a"}, 3)

    assert training.resumed_at({"x": 1, "load_checkpoint_dir": "a", "TRIAL_BUDGET": 2}) == 1
    assert values(training, x=1, load_checkpoint_dir="a", TRIAL_BUDGET=2) == (0.2,)


def test_configuration_without_a_folder_saves_nothing() -> None:
    training = TableTraining(TABLE, trial_steps=1)

    training.save({"x": 1}, 3)

    assert training.resumed_at({"x": 1, "load_checkpoint_dir": ""}) == 0
