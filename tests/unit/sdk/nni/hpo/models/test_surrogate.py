"""A Gaussian process over the course of an experiment."""

import numpy as np

from nni.hpo.models.matern import Matern
from nni.hpo.models.surrogate import Surrogate


def new() -> Surrogate:
    return Surrogate(Matern.of(2.5), 1e-6)


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
