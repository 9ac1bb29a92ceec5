"""Warnings of the names of NNI 2.x."""

import warnings

import pytest

from nni.retiarii.deprecation import warn_once


def test_name_is_warned_of_with_the_newer_one() -> None:
    with pytest.warns(DeprecationWarning, match=r"nni\.retiarii\.old .* newer name is new"):
        warn_once("old", "new")


def test_name_is_warned_of_once() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(2):
            warn_once("older", "newer")

    assert len(seen) == 1
