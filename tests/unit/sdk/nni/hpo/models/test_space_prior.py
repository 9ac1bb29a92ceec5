"""User priors over vectors and features."""

from random import Random

import numpy as np
import pytest

from nni.hpo.encoding.encoded_space import EncodedSpace
from nni.hpo.json_value import JsonValue
from nni.hpo.models.space_prior import SpacePrior, space_prior
from nni.hpo.space.parser import parse_space
from nni.hpo.space.user_priors import DEVIATIONS, SPACE_SHARE, option_prior

NUMBER = {"_type": "uniform", "_value": [0, 1], "_prior": {"value": 0.2, "confidence": "high"}}
SIZES = {"_type": "choice", "_value": [32, 8, 16, 64], "_prior": {"weights": [6, 1, 2, 1]}}
WORDS = {"_type": "choice", "_value": ["a", "b", "a"], "_prior": {"weights": [1, 2, 2]}}
BRANCHES = {"_type": "choice", "_value": [{"_name": "flat"}, {"_name": "deep", "x": NUMBER}]}
PLAIN = {"_type": "normal", "_value": [0, 1]}
EVERY = {"model": BRANCHES, "size": SIZES, "word": WORDS, "bell": PLAIN, "y": NUMBER}


def priors_of(space: JsonValue) -> tuple[EncodedSpace, SpacePrior]:
    encoded = EncodedSpace(parse_space(space))
    found = space_prior(encoded)
    assert found is not None
    return encoded, found


def test_space_without_priors_has_none() -> None:
    assert space_prior(EncodedSpace(parse_space({"bell": PLAIN}))) is None


def test_log_density_is_the_sum_over_parameters() -> None:
    space, prior = priors_of({"y": NUMBER, "size": SIZES, "word": WORDS})
    configuration = {"y": 0.2, "size": 16, "word": "a"}

    found = prior.log_ratio(space.encode(configuration)[None, :])

    height = (1 - SPACE_SHARE) / (DEVIATIONS["high"] * np.sqrt(2 * np.pi))  # all of it in the range
    sizes, words = option_prior([6, 1, 2, 1]), option_prior([1, 2, 2])
    same = words.probabilities[0] + words.probabilities[2]  # "a" is listed twice
    expected = np.log([height + SPACE_SHARE, 4 * sizes.probabilities[2], 2 * same])
    assert found[0] == pytest.approx(expected.sum(), rel=1e-4)
    assert len(prior) == 3


def test_inactive_parameter_has_no_part() -> None:
    space, prior = priors_of({"model": BRANCHES})

    flat = space.encode({"model": {"_name": "flat"}})

    assert prior.log_ratio(flat[None, :])[0] == 0.0


def test_gradient_is_that_of_the_density_along_ordered_parameters() -> None:
    space, prior = priors_of(EVERY)
    rng, step = Random(0), 1e-6
    for _ in range(10):
        features = space.features(space.sample_prior(rng)[None, :])[0]
        gradient = prior.log_ratio_and_gradient(features)[1]
        for column, axis in enumerate(space.feature_axes):
            if not space.ordered[axis]:
                assert gradient[column] == 0.0
                continue
            shift = np.eye(len(features))[column] * step
            # Off the knots of the piecewise linear weights of ordered options.
            inner = np.clip(features, 0.1, 0.9) if space.axes[axis].choice else features
            gradient = prior.log_ratio_and_gradient(inner)[1]
            above, below = (
                prior.log_ratio_and_gradient(inner + way * shift)[0] for way in (1.0, -1.0)
            )
            if (
                space.axes[axis].choice
                and np.min(np.abs(inner[column] - np.asarray(space.axes[axis].values))) <= step
            ):
                continue
            assert gradient[column] == pytest.approx((above - below) / (2 * step), abs=1e-3)


def test_values_and_features_agree_up_to_unordered_choices() -> None:
    space, prior = priors_of({"y": NUMBER, "size": SIZES})
    vectors = np.array([space.sample_prior(Random(seed)) for seed in range(20)])

    by_features = [prior.log_ratio_and_gradient(row)[0] for row in space.features(vectors)]

    assert by_features == pytest.approx(prior.log_ratio(vectors).tolist())


def test_mode_is_the_expected_configuration() -> None:
    space, prior = priors_of({"y": NUMBER, "size": SIZES, "word": WORDS, "bell": PLAIN})

    vector = prior.mode(np.full(4, 0.5))

    assert space.decode(vector) == {"y": pytest.approx(0.2), "size": 32, "word": "a", "bell": 0.0}


def test_draws_follow_the_priors_and_leave_other_parameters() -> None:
    space, prior = priors_of({"y": NUMBER, "word": WORDS, "bell": PLAIN})
    rng = np.random.default_rng(0)
    filled = space.sample_filled(rng, 2000)

    redrawn = prior.redrawn(filled, rng)

    axes = {axis.path: index for index, axis in enumerate(space.axes)}
    near = np.abs(redrawn[:, axes["y"]] - 0.2) < 0.1
    # As in the test of draws: 0.916 expected; five deviations of a share of 2000 are 0.031.
    assert abs(near.mean() - (0.954 * (1 - SPACE_SHARE) + 0.2 * SPACE_SHARE)) < 0.031
    assert set(redrawn[:, axes["word"]]) == {0.0, 1.0}
    assert (redrawn[:, axes["bell"]] == filled[:, axes["bell"]]).all()


def test_choice_without_a_prior_has_equal_shares_of_its_options() -> None:
    plain = {"_type": "choice", "_value": ["a", "b", "c", "d"]}
    space, prior = priors_of({"y": NUMBER, "plain": plain})
    (index,) = (i for i, axis in enumerate(space.axes) if axis.path == "plain")
    shares = np.full((4, len(space)), 0.5)
    shares[:, index] = [0.1, 0.3, 0.74, 0.99]

    assert prior.filled_from(shares)[:, index].tolist() == [0, 1, 2, 3]
