"""What is believed of a loss over the course of an experiment."""

import json

import numpy as np
import pytest

from nni.hpo.tuners._blended_process import Blend
from nni.hpo.tuners._matern import Matern
from nni.hpo.tuners._parzen import Floats
from nni.hpo.tuners._tree_model import TreeModel


def results(count: int) -> tuple[list[Floats], list[float]]:
    points = list(np.random.default_rng(0).random((count, 2)))
    return points, [float((point[0] - 0.4) ** 2) for point in points]


def new() -> TreeModel:
    return TreeModel(Blend(np.arange(2), Matern.of(2.5)))


def test_goes_on_from_its_state() -> None:
    points, losses = results(30)
    first = new()
    first.believe(points[:20], losses[:20])

    second = new()
    second.load_state(json.loads(json.dumps(first.state())))

    left, right = (one.believe(points, losses) for one in (first, second))
    assert left.model.weights.tolist() == right.model.weights.tolist()


def test_running_trials_lower_the_doubt_and_keep_the_mean() -> None:
    points, losses = results(15)
    model = new()
    belief = model.believe(points, losses)
    at = np.array([[0.9, 0.05]])

    expecting = model.expecting(belief, [at[0]])

    assert expecting.predict(at)[1] < 0.2 * belief.model.predict(at)[1]
    assert expecting.predict(at)[0] == pytest.approx(belief.model.predict(at)[0], abs=0.01)


def test_nothing_running_changes_nothing() -> None:
    model = new()
    belief = model.believe(*results(15))

    assert model.expecting(belief, []) is belief.model


def test_model_of_many_results_is_bounded_and_holds_the_best() -> None:
    points, losses = results(1200)

    belief = new().believe(points, losses)

    assert len(belief.points) == 500
    assert points[int(np.argmin(losses))].tolist() in belief.points.tolist()
    assert belief.best == belief.targets.min()


def test_model_of_many_results_leaves_no_region_out() -> None:
    crowd = 0.5 + 0.01 * np.random.default_rng(0).standard_normal((1200, 2))
    points = [*crowd, np.array([0.95, 0.05])]

    belief = new().believe(points, [float(point @ point) for point in points])

    assert len(belief.points) == 500
    assert belief.points[-1].tolist() == [0.95, 0.05]


def test_one_result_is_enough() -> None:
    belief = new().believe(*results(1))

    assert np.isfinite(belief.model.predict(np.array([[0.1, 0.2]]))).all()
