"""Domains: samples of the prior and validation of values."""

import hashlib
import json
import math
from collections import Counter
from random import Random
from typing import Any

import pytest

from nni.hpo.space.domains import (
    Branch,
    ChoiceDomain,
    IntegerDomain,
    NormalDomain,
    Space,
    UniformDomain,
    canonical_json,
    configuration_hash,
    same_value,
)
from nni.hpo.space.parser import parse_space

DRAWS = 10_000

SPECIFICATIONS: dict[str, list[Any]] = {
    "choice": ["a", "b"],
    "randint": [0, 3],
    "uniform": [-2, 5],
    "quniform": [1, 10, 3],
    "loguniform": [1e-4, 1],
    "qloguniform": [1, 100, 7],
    "normal": [3, 2],
    "qnormal": [0, 2, 0.5],
    "lognormal": [0, 1],
    "qlognormal": [0, 1, 0.5],
}


def draws(kind: str, values: list[Any], count: int = DRAWS, seed: int = 0) -> list[Any]:
    space = parse_space({"x": {"_type": kind, "_value": values}})
    rng = Random(seed)
    return [space.draw(rng)["x"] for _ in range(count)]


@pytest.mark.claim("hpo", 9)
@pytest.mark.parametrize("kind", ["uniform", "quniform", "loguniform", "qloguniform"])
def test_bounded_types_stay_in_their_bounds(kind: str) -> None:
    low, high = SPECIFICATIONS[kind][:2]

    values = draws(kind, SPECIFICATIONS[kind])

    assert all(isinstance(value, float) for value in values)
    assert low <= min(values)
    assert max(values) <= high


@pytest.mark.claim("hpo", 9)
def test_randint_gives_each_integer_and_never_the_upper_bound() -> None:
    values = draws("randint", [0, 3])

    assert set(values) == {0, 1, 2}
    assert all(type(value) is int for value in values)


@pytest.mark.claim("hpo", 9)
@pytest.mark.parametrize(
    ("kind", "values", "support"),
    [
        ("quniform", [0, 10, 2.5], {0, 2.5, 5, 7.5, 10}),
        ("quniform", [2, 10, 5], {2, 5, 10}),
        ("quniform", [1, 10, 3], {1, 3, 6, 9}),
        ("qloguniform", [1, 10, 3], {1, 3, 6, 9}),
    ],
)
def test_quantised_bounded_types_have_exactly_their_support(
    kind: str, values: list[object], support: set[float]
) -> None:
    assert set(draws(kind, values)) == support


@pytest.mark.claim("hpo", 9)
@pytest.mark.parametrize("kind", ["qnormal", "qlognormal"])
def test_quantised_bells_give_multiples_of_the_step(kind: str) -> None:
    step = SPECIFICATIONS[kind][2]

    assert all(value == round(value / step) * step for value in draws(kind, SPECIFICATIONS[kind]))


@pytest.mark.claim("hpo", 9)
def test_bells_have_their_mean_and_spread() -> None:
    normal = draws("normal", [3, 2])
    logarithms = [math.log(value) for value in draws("lognormal", [1, 0.5])]

    # The mean of n draws has the standard deviation sigma / sqrt(n): 0.02 and 0.005; five of them.
    assert abs(sum(normal) / DRAWS - 3) < 0.1
    assert abs(sum(logarithms) / DRAWS - 1) < 0.025


@pytest.mark.claim("hpo", 9)
def test_choice_gives_each_option_about_equally_often() -> None:
    counts = Counter(draws("choice", ["a", "b", "c", "d"]))

    # Binomial with n = 10,000, p = 1/4: standard deviation 43; five of them.
    assert all(abs(count - DRAWS / 4) < 217 for count in counts.values())
    assert len(counts) == 4


@pytest.mark.claim("hpo", 10)
def test_ends_of_quniform_are_half_as_likely() -> None:
    counts = Counter(draws("quniform", [0, 10, 2.5]))

    expected = {0: 1 / 8, 2.5: 1 / 4, 5: 1 / 4, 7.5: 1 / 4, 10: 1 / 8}
    # Standard deviation of a frequency at n = 10,000 is at most 0.0043; five of them.
    assert all(abs(counts[value] / DRAWS - p) < 0.022 for value, p in expected.items())


@pytest.mark.claim("hpo", 11)
def test_loguniform_is_uniform_in_the_logarithm() -> None:
    places = sorted((math.log10(value) + 4) / 4 for value in draws("loguniform", [1e-4, 1]))

    # Kolmogorov-Smirnov: the distance exceeds 1.95 / sqrt(n) with probability 0.001.
    distance = max(abs(place - (rank + 0.5) / DRAWS) for rank, place in enumerate(places))
    assert distance < 1.95 / math.sqrt(DRAWS)


@pytest.mark.claim("hpo", 12)
def test_only_the_chosen_branch_appears() -> None:
    space = parse_space(
        {
            "layer": {
                "_type": "choice",
                "_value": [
                    {"_name": "Empty"},
                    {
                        "_name": "Conv",
                        "kernel": {"_type": "choice", "_value": [1, 3]},
                        "act": {
                            "_type": "choice",
                            "_value": [
                                {"_name": "relu"},
                                {"_name": "leaky", "slope": {"_type": "uniform", "_value": [0, 1]}},
                            ],
                        },
                    },
                ],
            }
        }
    )
    rng = Random(0)
    layers = [space.draw(rng)["layer"] for _ in range(200)]

    shapes = {(tuple(layer), tuple(layer.get("act", ()))) for layer in layers}
    assert shapes == {
        (("_name",), ()),
        (("_name", "kernel", "act"), ("_name",)),
        (("_name", "kernel", "act"), ("_name", "slope")),
    }


def test_options_keep_their_json_type() -> None:
    options = [1, 1.5, "1", True, None, [1, 2]]

    drawn = {json.dumps(value) for value in draws("choice", options, 500)}

    assert drawn == {json.dumps(option) for option in options}


def test_same_seed_gives_the_same_draws() -> None:
    assert draws("uniform", [0, 1], 20, seed=5) == draws("uniform", [0, 1], 20, seed=5)


def test_lognormal_neither_overflows_nor_becomes_zero() -> None:
    domain = NormalDomain(0, 1, log=True)

    assert math.isfinite(domain.check(domain.from_normal(1e6)))
    assert domain.check(domain.from_normal(-1e6)) > 0


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (1, 1.0, True),
        (0.3, 0.30000000000000004, True),
        (0.3, 0.3001, False),
        (True, 1, False),
        (True, True, True),
        ("1", 1, False),
        ([1, [2.0]], [1.0, [2]], True),
        ([1], [1, 2], False),
        ({"a": 1, "b": None}, {"b": None, "a": 1.0}, True),
        ({"a": 1}, {"a": 2}, False),
        (None, None, True),
        (None, 0, False),
    ],
)
def test_same_value_compares_by_meaning(left: object, right: object, same: bool) -> None:
    assert same_value(left, right) is same


@pytest.mark.parametrize(
    ("value", "position"), [(1, 0), (1.0, 0), ("a", 1), (True, 2), ([1, 2], 3), ({"_name": "b"}, 4)]
)
def test_choice_finds_the_position_of_a_value(value: object, position: int) -> None:
    choice = ChoiceDomain((1, "a", True, [1, 2], Branch("b", Space(()))))

    assert choice.position(value) == position


@pytest.mark.parametrize("value", [False, "b", None, {"_name": "c"}, [2, 1]])
def test_choice_refuses_what_is_no_option(value: object) -> None:
    choice = ChoiceDomain((1, "a", True, [1, 2], Branch("b", Space(()))))

    with pytest.raises(ValueError, match="must be one of"):
        choice.position(value)


@pytest.mark.parametrize(
    ("domain", "value"),
    [
        (UniformDomain(0, 1), 1.1),
        (UniformDomain(0, 1), "0.5"),
        (UniformDomain(0, 1), True),
        (UniformDomain(0, 1), math.nan),
        (UniformDomain(0, 10, 2.5), 3.0),
        (IntegerDomain(0, 3), 3),
        (IntegerDomain(0, 3), 1.5),
        (NormalDomain(0, 1, log=True), -1.0),
        (NormalDomain(0, 1, log=True), 0.0),
        (NormalDomain(0, 1, 0.5), 0.3),
        (NormalDomain(0, 1), None),
    ],
)
def test_domains_refuse_values_outside(
    domain: UniformDomain | IntegerDomain | NormalDomain, value: object
) -> None:
    with pytest.raises(ValueError, match="must"):
        domain.check(value)


@pytest.mark.parametrize(
    ("domain", "value", "expected"),
    [
        (UniformDomain(0, 1), 1, 1.0),
        (UniformDomain(0, 1, 0.1), 0.1 + 0.2, 3 * 0.1),
        (UniformDomain(2, 10, 5), 2, 2.0),
        (IntegerDomain(0, 3), 2.0, 2),
        (NormalDomain(0, 1, 0.5, log=True), 0, 0.0),
        (NormalDomain(0, 1), -7, -7.0),
    ],
)
def test_domains_recognise_their_values(
    domain: UniformDomain | IntegerDomain | NormalDomain, value: object, expected: float
) -> None:
    assert domain.check(value) == expected


def test_canonical_text_has_sorted_keys_and_no_spaces() -> None:
    assert canonical_json({"b": 1, "a": ["ä", None]}) == '{"a":["ä",null],"b":1}'


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (0, 0),
        (-7, -7),
        (2**70, 2**70),
        (2.0, 2),
        (-0.0, 0),
        (2.5, 2.5),
        (1e300, int(1e300)),
        (1e-7, 1e-7),
        (math.inf, math.inf),
        (True, True),
        ("2", "2"),
        ([2.0], [2]),
    ],
)
def test_hash_is_that_of_the_canonical_text(value: object, plain: object) -> None:
    text = canonical_json(plain)

    assert configuration_hash(value) == hashlib.sha256(text.encode()).hexdigest()


PRIOR_RANGE = {"_type": "uniform", "_value": [0, 1], "_prior": {"value": 0.2, "confidence": "high"}}
PRIOR_BRANCH = {"_name": "deep", "n": {"_type": "randint", "_value": [0, 10], "_prior": 7}}
PRIOR_SPACE = {
    "x": PRIOR_RANGE,
    "plain": {"_type": "uniform", "_value": [0, 1]},
    "model": {
        "_type": "choice",
        "_value": ["flat", PRIOR_BRANCH],
        "_prior": {"value": "deep", "confidence": "high"},
    },
}


@pytest.mark.parametrize(
    "domain",
    [
        UniformDomain(-2, 5),
        UniformDomain(1e-4, 1, log=True),
        UniformDomain(1, 10, 3),
        UniformDomain(3, 3),
        IntegerDomain(-3, 9),
    ],
)
def test_value_comes_back_from_its_share_of_the_range(
    domain: UniformDomain | IntegerDomain,
) -> None:
    rng = Random(0)
    for _ in range(50):
        value = domain.draw(rng)
        share = domain.share_of(value)
        assert 0 <= share <= 1
        assert domain.at(share) == pytest.approx(value)


def test_half_of_the_draws_follow_the_user_priors_in_branches_too() -> None:
    space, rng, count = parse_space(PRIOR_SPACE), Random(0), 4000

    found = [space.draw(rng) for _ in range(count)]

    # Standard deviations of shares of 4000 draws are at most 0.008; five of them.
    near = sum(abs(one["x"] - 0.2) < 0.1 for one in found) / count
    assert abs(near - 0.5 * (0.916 + 0.2)) < 0.04
    below = sum(one["plain"] < 0.5 for one in found) / count
    assert abs(below - 0.5) < 0.04
    deep = [one["model"]["n"] for one in found if one["model"] != "flat"]
    assert abs(len(deep) / count - 0.5 * (0.5 + 0.929)) < 0.04
    assert Counter(deep).most_common(1)[0][0] == 7
    assert set(deep) == set(range(10))


def test_draws_by_user_priors_keep_constraints_of_a_small_feasible_part() -> None:
    space = parse_space({**PRIOR_SPACE, "_constraints": ["x > 0.98", "plain > 0.9"]})
    rng = Random(0)

    assert all(space.allows(space.draw(rng)) for _ in range(20))


@pytest.mark.parametrize("kind", ["uniform", "quniform", "loguniform", "randint", "normal"])
def test_integer_that_has_no_float_lies_outside_every_domain(kind: str) -> None:
    entry = {"_type": kind, "_value": SPECIFICATIONS[kind]}
    domain = parse_space({"x": entry}).parameters[0].domain
    assert not isinstance(domain, ChoiceDomain)

    with pytest.raises(ValueError, match="must be finite, got 1000"):
        domain.check(10**400)


@pytest.mark.parametrize("kind", ["quniform", "qnormal"])
def test_number_of_too_many_steps_lies_outside_the_domain(kind: str) -> None:
    entry = {"_type": kind, "_value": [0.0, 1.0, 1e-3]}
    domain = parse_space({"x": entry}).parameters[0].domain
    assert not isinstance(domain, ChoiceDomain)

    with pytest.raises(ValueError, match="got 1e"):
        domain.check(1e308)


def test_integer_that_has_no_float_is_no_option_of_a_choice_of_numbers() -> None:
    with pytest.raises(ValueError, match="must be one of"):
        ChoiceDomain((0.5, 1)).position(10**400)


@pytest.mark.parametrize(
    ("domain", "value", "expected"),
    [
        (UniformDomain(-1, 1), 1 + 1.5e-9, 1.0),
        (UniformDomain(-1, 1), -1 - 1.5e-9, -1.0),
        (UniformDomain(-1, 1, 0.5), 0.5 + 1.5e-9, 0.5),
        (NormalDomain(0, 1, 4.0), 3e-9, 0.0),
    ],
)
def test_rounding_error_in_proportion_to_the_range_is_accepted(
    domain: UniformDomain | NormalDomain, value: float, expected: float
) -> None:
    assert domain.check(value) == expected


@pytest.mark.parametrize(
    ("domain", "value"),
    [
        (UniformDomain(-1, 1), 1 + 3e-9),
        (UniformDomain(-1, 1), -1 - 3e-9),
        (UniformDomain(999, 1001), 1001 + 1.5e-6),
        (UniformDomain(-1, 1, 0.5), 0.5 + 3e-9),
        (NormalDomain(0, 1, 4.0), 5e-9),
    ],
)
def test_more_than_a_rounding_error_is_refused(
    domain: UniformDomain | NormalDomain, value: float
) -> None:
    with pytest.raises(ValueError, match="must"):
        domain.check(value)


@pytest.mark.parametrize("kind", [int, float])
def test_integers_include_the_lower_bound_and_exclude_the_upper_one(kind: type) -> None:
    domain = IntegerDomain(-1, 3)

    assert [domain.check(kind(value)) for value in range(-1, 3)] == [-1, 0, 1, 2]
    for outside in (-2, 3):
        with pytest.raises(ValueError, match="must be an integer in"):
            domain.check(kind(outside))


@pytest.mark.parametrize(("value", "share"), [(-1, 0.125), (0, 0.375), (2, 0.875)])
def test_an_integer_lies_in_the_middle_of_its_share(value: int, share: float) -> None:
    domain = IntegerDomain(-1, 3)

    assert domain.share_of(value) == share
    assert [domain.at(share - 0.12), domain.at(share), domain.at(share + 0.12)] == [value] * 3
    assert (domain.at(0.0), domain.at(1.0)) == (-1, 2)


def test_a_range_of_one_value_has_it_in_the_middle() -> None:
    assert UniformDomain(3, 3).share_of(3) == 0.5
    assert UniformDomain(3, 3, log=True).share_of(3) == 0.5


@pytest.mark.parametrize(("raw", "value"), [(1e6, math.exp(709)), (-1e6, math.exp(-709))])
def test_lognormal_is_cut_where_the_exponential_leaves_the_floats(raw: float, value: float) -> None:
    assert NormalDomain(0, 1, log=True).from_normal(raw) == value


@pytest.mark.parametrize(("count", "ending"), [(10, "9; got"), (11, "9, ...; got")])
def test_refusal_of_an_option_lists_the_first_ten(count: int, ending: str) -> None:
    with pytest.raises(ValueError, match="must be one of 0, 1") as caught:
        ChoiceDomain(tuple(range(count))).position("none")

    assert ending in str(caught.value)
