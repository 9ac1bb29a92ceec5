"""User priors over the rows of a level."""

import numpy as np
import pytest

from nni.hpo.encoding.columns import levels_of
from nni.hpo.encoding.encoded_space import EncodedSpace
from nni.hpo.json_value import JsonValue
from nni.hpo.models.space_prior import SpacePrior
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners.density.level_prior import LevelPrior, level_prior

SPACE = {
    "x": {"_type": "uniform", "_value": [0, 1], "_prior": {"value": 0.2, "confidence": "high"}},
    "plain": {"_type": "uniform", "_value": [0, 1]},
    "word": {"_type": "choice", "_value": ["a", "b"], "_prior": {"weights": [1, 9]}},
    "other": {"_type": "choice", "_value": ["a", "b"]},
}


def prior_of(space: JsonValue) -> LevelPrior:
    found = level_prior(levels_of(parse_space(space))[0])
    assert found is not None
    return found


def test_level_has_a_prior_only_if_one_of_its_own_parameters_has() -> None:
    inner = {"_name": "deep", "x": SPACE["x"]}
    space = parse_space({"model": {"_type": "choice", "_value": ["a", inner]}})

    root, branch = levels_of(space)

    assert level_prior(root) is None
    assert level_prior(branch) is not None


def test_rows_have_the_density_of_their_configuration() -> None:
    space = EncodedSpace(parse_space(SPACE))
    points, options = np.array([[0.25, 0.7], [0.8, 0.1]]), np.array([[1, 0], [0, 1]])

    found = prior_of(SPACE).log_ratio(points, options)

    vectors = np.concatenate([points, options], axis=1)  # numbers first, as the axes are
    assert found == pytest.approx(SpacePrior(space).log_ratio(vectors))


def test_only_columns_with_a_prior_are_redrawn() -> None:
    points, options = np.full((500, 2), 0.9), np.zeros((500, 2), dtype=np.int64)

    drawn, chosen = prior_of(SPACE).redrawn(points, options, np.random.default_rng(0))

    assert abs(np.median(drawn[:, 0]) - 0.2) < 0.02
    assert (drawn[:, 1] == 0.9).all()
    assert chosen[:, 0].mean() > 0.8
    assert not chosen[:, 1].any()
    assert (points == 0.9).all()
