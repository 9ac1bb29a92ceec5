"""Samplings as entries of a search space."""

import pytest

from nni.hpo import (
    Choice,
    LogNormal,
    LogUniform,
    Normal,
    QLogNormal,
    QLogUniform,
    QNormal,
    QUniform,
    RandInt,
    Uniform,
)
from nni.hpo.space.parser import ALL_TYPES, parse_space
from nni.hpo.space.samplings import Range

RANGES = [
    RandInt(1, 9),
    Uniform(0, 1),
    QUniform(0, 8, 2),
    LogUniform(0.1, 1),
    QLogUniform(1, 64, 1),
    Normal(0, 1),
    QNormal(0, 10, 5),
    LogNormal(0, 1),
    QLogNormal(0, 1, 0.5),
]


@pytest.mark.parametrize("sampling", RANGES, ids=lambda sampling: type(sampling).__name__)
def test_entry_of_a_range_is_a_valid_search_space_of_its_type(sampling: Range) -> None:
    entry = sampling.entry()

    (parameter,) = parse_space({"x": entry}).parameters

    assert parameter.kind == type(sampling).__name__.lower()


def test_samplings_cover_all_types_of_search_spaces() -> None:
    assert {one.entry()["_type"] for one in RANGES} | {"choice"} == set(ALL_TYPES)


@pytest.mark.parametrize(
    ("sampling", "integral"),
    [
        (RandInt(1, 9), True),
        (Uniform(0, 1), False),
        (QUniform(0, 8, 2), True),
        (QUniform(0, 8, 0.5), False),
        (QUniform(0.5, 8, 1), False),
        (QNormal(0.5, 1, 5), True),
        (QLogNormal(0, 1, 0.5), False),
        (Normal(0, 1), False),
    ],
)
def test_range_is_integral_only_if_all_values_are_integers(
    sampling: Range, *, integral: bool
) -> None:
    assert sampling.is_integral() is integral


def test_choice_keeps_its_options_in_order() -> None:
    assert Choice("b", "a").options == ("b", "a")
    assert Choice().options == ()


def test_user_prior_is_a_key_of_the_entry() -> None:
    sampling = LogUniform(1e-5, 1, prior={"value": 1e-3, "confidence": "high"})

    assert sampling.entry() == {
        "_type": "loguniform",
        "_value": [1e-5, 1],
        "_prior": {"value": 1e-3, "confidence": "high"},
    }
    assert hash(sampling) == hash(LogUniform(1e-5, 1))
    assert sampling != LogUniform(1e-5, 1)


def test_prior_is_given_by_keyword_only() -> None:
    with pytest.raises(TypeError):
        Uniform(0, 1, 0.5)  # type: ignore[call-arg] # the mistake under test


@pytest.mark.parametrize(
    ("plain", "expected"),
    [(Choice("a", "b"), Choice("a", "b", prior="b")), (Uniform(0, 1), Uniform(0, 1, prior=0.5))],
)
def test_user_prior_tells_samplings_apart_but_is_in_neither_hash_nor_text(
    plain: object, expected: object
) -> None:
    assert plain != expected
    assert hash(plain) == hash(expected)
    assert "prior" not in repr(expected)
