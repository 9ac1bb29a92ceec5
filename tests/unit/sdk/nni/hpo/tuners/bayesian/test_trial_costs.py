"""Run times of the trials of a cost-aware search."""

import json
import math

import numpy as np
import pytest

from nni.hpo.encoding.encoded_space import EncodedSpace
from nni.hpo.models.cost_model import FEWEST
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners.bayesian.trial_costs import TrialCosts


def space(low: float, high: float) -> EncodedSpace:
    return EncodedSpace(parse_space({"x": {"_type": "uniform", "_value": [low, high]}}))


SPACE = space(0, 10)


def measured(budget_s: float | None = None, count: int = 8) -> TrialCosts:
    """Return costs of trials at 0, 1, 2, … that took 1, 2, 4, … seconds."""
    costs = TrialCosts(SPACE, budget_s)
    for number in range(count):
        costs.complete(number, {"x": float(number)})
        costs.end(number, 2.0**number, success=True)
    return costs


def weights(costs: TrialCosts) -> list[float]:
    """Return the log weights at 1 and at 7."""
    prediction = costs.prediction(0)
    assert prediction is not None
    ends = np.array([SPACE.encode({"x": 1.0}), SPACE.encode({"x": 7.0})])
    found: list[float] = prediction.log_weight(SPACE.features(ends)).tolist()
    return found


def test_longer_trials_have_the_lesser_weight() -> None:
    cheap, dear = weights(measured())

    assert cheap > dear


def test_run_time_follows_the_result() -> None:
    costs = TrialCosts(SPACE, None)

    costs.complete(0, {"x": 1.0})
    before = costs.known
    costs.end(0, 3.0, success=True)

    assert (before, costs.known) == (0, 1)


@pytest.mark.parametrize("duration_s", [None, 0.0, -1.0, math.nan, math.inf, "3", True])
def test_unknown_run_time_is_not_learned(duration_s: object) -> None:
    costs = TrialCosts(SPACE, None)
    costs.complete(0, {"x": 1.0})

    costs.end(0, duration_s, success=True)

    assert costs.known == 0


def test_failed_trial_takes_part_of_the_budget_but_predicts_nothing() -> None:
    costs = measured(budget_s=2.0**9)
    counting = costs.prediction(0)

    costs.end(99, 2.0**9, success=False)

    assert counting is not None
    assert costs.known == 8
    assert costs.prediction(0) is None


@pytest.mark.parametrize(("completed", "success"), [(True, False), (False, True), (False, False)])
def test_run_time_without_both_result_and_success_is_spent_only(
    completed: bool, success: bool
) -> None:
    costs = TrialCosts(SPACE, None)
    if completed:
        costs.complete(0, {"x": 1.0})

    costs.end(0, 3.0, success=success)

    assert (costs.known, costs.state()["spent_s"]) == (0, 3.0)


def test_few_run_times_are_not_predicted() -> None:
    assert measured(count=FEWEST - 1).prediction(0) is None
    assert TrialCosts(SPACE, None).prediction(0) is None


def test_imported_run_times_are_learned_and_others_skipped() -> None:
    costs = TrialCosts(SPACE, None)

    costs.learn_all(
        [{"parameter": {"x": 1.0}, "duration_s": 2}, {"parameter": {"x": 2.0}, "duration_s": "?"}]
    )

    assert costs.known == 1


def test_other_space_models_the_run_times_within_it_and_forgets_none() -> None:
    costs = measured()

    narrow = costs.moved_to(space(0, 3))
    wide = narrow.moved_to(SPACE)

    assert (narrow.known, wide.known) == (4, 8)
    assert weights(wide) == weights(measured())


def test_state_restores_run_times_model_and_trials_before_their_end() -> None:
    costs, restored = measured(), TrialCosts(SPACE, None)
    costs.prediction(8)
    costs.complete(8, {"x": 8.0})

    restored.load_state(json.loads(json.dumps(costs.state())))
    restored.load_model_state(json.loads(json.dumps(costs.model_state())))
    for one in (costs, restored):
        one.end(8, 256.0, success=True)

    assert restored.known == costs.known == 9
    assert weights(restored) == weights(costs)


def test_nothing_is_spent_at_first() -> None:
    costs = TrialCosts(SPACE, 8.0)
    costs.complete(0, {"x": 1.0})
    first = costs.state()["spent_s"]

    costs.end(0, 2.5, success=True)

    assert (first, costs.state()["spent_s"]) == (0.0, 2.5)


def test_state_of_the_model_is_restored_without_the_run_times() -> None:
    costs, restored = measured(), TrialCosts(SPACE, None)
    costs.prediction(8)
    assert restored.model_state() != costs.model_state()

    restored.load_model_state(json.loads(json.dumps(costs.model_state())))

    assert restored.model_state() == costs.model_state()
    assert restored.known == 0
