"""A Gaussian process over the course of an experiment."""

import json

import numpy as np
import pytest

from nni.hpo.tuners._matern import Matern
from nni.hpo.tuners._parzen import Floats
from nni.hpo.tuners._surrogate import Surrogate


def results(count: int) -> tuple[list[Floats], list[float]]:
    points = list(np.random.default_rng(0).random((count, 2)))
    return points, [float((point[0] - 0.4) ** 2) for point in points]


def new() -> Surrogate:
    return Surrogate(Matern.of(2.5), 1e-6)


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
    surrogate = new()
    belief = surrogate.believe(points, losses)
    at = np.array([[0.9, 0.05]])

    expecting = surrogate.expecting(belief, [at[0]])

    assert expecting.predict(at)[1] < 0.2 * belief.model.predict(at)[1]
    assert expecting.predict(at)[0] == pytest.approx(belief.model.predict(at)[0], abs=0.01)


def test_nothing_running_changes_nothing() -> None:
    surrogate = new()
    belief = surrogate.believe(*results(15))

    assert surrogate.expecting(belief, []) is belief.model


def test_model_of_many_results_is_bounded_and_holds_the_best() -> None:
    points, losses = results(1200)

    belief = new().believe(points, losses)

    assert len(belief.points) == 500
    assert points[int(np.argmin(losses))].tolist() in belief.points.tolist()
    assert belief.best == belief.targets.min()


def test_selection_predicts_like_the_model_of_all_results() -> None:
    rng = np.random.default_rng(3)
    crowd = 0.5 + 0.05 * rng.standard_normal((700, 2))
    points = np.concatenate([rng.random((100, 2)), crowd, rng.random((100, 2))])
    losses = [float(((point - 0.5) ** 2).sum()) for point in points]
    # Where nothing was chosen a model predicts the mean; what is out there is worse than that.
    corners = np.array([[0.05, 0.05], [0.95, 0.1], [0.1, 0.9], [0.9, 0.95]])

    belief = new().believe(list(points), losses)

    means, _ = belief.model.predict(corners)
    assert means.min() > np.percentile(belief.targets, 60)


def test_one_result_is_enough() -> None:
    belief = new().believe(*results(1))

    assert np.isfinite(belief.model.predict(np.array([[0.1, 0.2]]))).all()
