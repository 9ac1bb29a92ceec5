"""What is believed of a loss over the course of an experiment."""

import json

import numpy as np

from nni.hpo.models.gp_regression import Blend
from nni.hpo.models.matern import Matern
from nni.hpo.models.tree_model import TreeModel


def new() -> TreeModel:
    return TreeModel(Blend(np.arange(2), Matern.of(2.5)))


def test_model_of_many_results_leaves_no_region_out() -> None:
    crowd = 0.5 + 0.01 * np.random.default_rng(0).standard_normal((1200, 2))
    points = [*crowd, np.array([0.95, 0.05])]

    belief = new().believe(points, [float(point @ point) for point in points])

    assert len(belief.points) == 500
    assert belief.points[-1].tolist() == [0.95, 0.05]


def test_learns_that_results_lie_on_a_logarithmic_scale() -> None:
    points = list(np.random.default_rng(0).random((60, 2)))
    losses = [float(np.exp(10 * ((point - 0.4) ** 2).sum())) for point in points]
    model = new()

    for count in (30, 60):
        model.believe(points[:count], losses[:count])

    assert model.scale is not None
    assert model.scale >= 10
    second = new()
    second.load_state(json.loads(json.dumps(model.state())))
    assert second.scale == model.scale
    model.forget()
    assert model.scale == new().scale == 0


def test_scale_does_not_change_without_evidence() -> None:
    points = list(np.random.default_rng(0).random((60, 2)))
    model = new()

    for count in (30, 60):
        model.believe(points[:count], [2.0] * count)

    assert model.scale == 0
