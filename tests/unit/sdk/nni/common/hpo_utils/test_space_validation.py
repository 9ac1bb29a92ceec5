"""Checking search spaces."""

import pytest

from nni.common.hpo_utils import validate_search_space

GOOD = {"x": {"_type": "uniform", "_value": [0, 1]}}
BAD = {"x": {"_type": "uniform", "_value": [1, 0]}}


def test_good_spaces_are_distinguished_from_bad_ones() -> None:
    assert validate_search_space(GOOD)
    assert not validate_search_space(BAD)
    assert not validate_search_space([])


def test_types_beyond_the_supported_ones_are_bad() -> None:
    assert validate_search_space(GOOD, ["uniform"])
    assert not validate_search_space(GOOD, ["choice", "randint"])


def test_what_is_wrong_is_raised_if_wanted() -> None:
    with pytest.raises(ValueError, match="low must be <= high"):
        validate_search_space(BAD, raise_exception=True)
