"""The key `_prior` of a search space."""

from typing import Any

import pytest

from nni.hpo.space.domains import Parameter
from nni.hpo.space.parser import parse_space
from nni.hpo.space.user_priors import DEVIATIONS, ODDS, NumberPrior, OptionPrior, option_prior

RANGE = {"_type": "uniform", "_value": [0, 10]}
RATE = {"_type": "loguniform", "_value": [1e-4, 1]}
KIND = {"_type": "choice", "_value": ["a", "b", {"_name": "deep", "x": RANGE}]}


def parameter_of(entry: dict[str, Any], prior: object) -> Parameter:
    (parameter,) = parse_space({"x": {**entry, "_prior": prior}}).parameters
    return parameter


@pytest.mark.parametrize("confidence", DEVIATIONS)
def test_confidence_is_the_deviation_around_a_number(confidence: str) -> None:
    prior = parameter_of(RANGE, {"value": 2, "confidence": confidence}).prior

    assert prior == NumberPrior(0.2, DEVIATIONS[confidence])


@pytest.mark.parametrize("given", [2, 2.0, "2.0", {"value": 2}, {"value": "2e0"}])
def test_number_alone_has_medium_confidence(given: object) -> None:
    assert parameter_of(RANGE, given).prior == NumberPrior(0.2, DEVIATIONS["medium"])


@pytest.mark.parametrize(
    ("entry", "value", "share"),
    [
        (RATE, 1e-3, 0.25),
        ({"_type": "randint", "_value": [0, 4]}, 1, 0.375),
        ({"_type": "quniform", "_value": [0, 8, 2]}, 4, 0.5),
        ({"_type": "qloguniform", "_value": [1, 100, 1]}, 10, 0.5),
        ({"_type": "uniform", "_value": [3, 3]}, 3, 0.5),
    ],
)
def test_centre_is_on_the_scale_of_the_range(
    entry: dict[str, Any], value: float, share: float
) -> None:
    prior = parameter_of(entry, value).prior

    assert isinstance(prior, NumberPrior)
    assert prior.centre == pytest.approx(share)


@pytest.mark.parametrize(("value", "position"), [("b", 1), ("deep", 2)])
def test_option_or_the_name_of_a_branch_has_the_odds_of_the_confidence(
    value: str, position: int
) -> None:
    prior = parameter_of(KIND, {"value": value, "confidence": "high"}).prior

    weights = [1.0, 1.0, 1.0]
    weights[position] = ODDS["high"]
    assert prior == option_prior(weights)


def test_weights_are_of_the_options_in_order() -> None:
    prior = parameter_of(KIND, {"weights": [2, 1, 0]}).prior

    assert isinstance(prior, OptionPrior)
    assert list(prior.probabilities) == sorted(prior.probabilities, reverse=True)


@pytest.mark.parametrize("factor", [0.01, 0.3, 7])
def test_weights_need_no_particular_sum(factor: float) -> None:
    given, scaled = ({"weights": [each * 2, each, each]} for each in (1, factor))

    prior = parameter_of(KIND, scaled).prior

    assert isinstance(prior, OptionPrior)
    expected = parameter_of(KIND, given).prior
    assert isinstance(expected, OptionPrior)
    assert prior.probabilities == pytest.approx(expected.probabilities)


def test_prior_within_a_branch_is_read() -> None:
    branch = {"_name": "deep", "x": {**RANGE, "_prior": 1}}
    space = parse_space({"model": {"_type": "choice", "_value": ["a", branch]}})

    assert space.has_priors
    assert not parse_space({"model": KIND}).has_priors


@pytest.mark.parametrize(
    ("entry", "prior", "message"),
    [
        (RANGE, 11, r"parameter 'x': _prior: value must lie in \[0.0, 10.0\], got 11; give one in"),
        (RANGE, {"mean": 2}, r"_prior must be a number, or \{'value'.*got \{'mean': 2\}"),
        (RANGE, {"weights": [1]}, "_prior must be a number, or"),
        (RANGE, True, "_prior must be a number, or"),
        (RANGE, float("nan"), "_prior: value must be finite, got nan"),
        (RANGE, 10**400, "_prior: value must be finite, got 1000"),
        (RANGE, {"value": "many"}, "_prior: value must be a number, got 'many'"),
        (RANGE, {"value": 2, "confidence": "sure"}, "one of low, medium, high; got 'sure'; leave"),
        ({"_type": "normal", "_value": [0, 1]}, 0, "of normal is a prior itself: change mu"),
        (KIND, "a", r"_prior must be \{'value': option"),
        (KIND, {"value": "c"}, "_prior: value must be one of 'a', 'b', 'deep'; got 'c'"),
        (KIND, {"weights": [1, 2]}, r"a list of 3 numbers, one for each option.*got \[1, 2\]"),
        (KIND, {"weights": [1, 2, -1]}, "must be finite numbers >= 0, one of them > 0"),
        (KIND, {"weights": [0, 0, 0]}, "must be finite numbers >= 0, one of them > 0"),
        (KIND, {"weights": [1, 2, "x"]}, "must be finite numbers >= 0, one of them > 0"),
        (KIND, {"weights": [1, 2, float("nan")]}, "must be finite numbers >= 0"),
        (KIND, {"weights": [1, 2, 10**400]}, "must be finite numbers >= 0"),
        (KIND, {"weights": [1, 1, 1], "confidence": "high"}, r"_prior must be \{'value': option"),
    ],
)
def test_malformed_prior_is_refused(entry: dict[str, Any], prior: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parameter_of(entry, prior)


def test_algorithm_without_priors_refuses_them_and_names_those_with() -> None:
    with pytest.raises(
        ValueError, match=r"'x': _prior is not supported by Anneal, got 2; .*use one of auto, GP"
    ):
        parse_space({"x": {**RANGE, "_prior": 2}}, algorithm="Anneal", priors=False)
