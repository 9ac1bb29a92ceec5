"""Choice of the interpreters that tests run on."""

from __future__ import annotations

from tests.support.pythons import (
    oldest_and_newest,
    own_version,
    supported_pythons,
    versions_to_try,
)


def test_oldest_and_newest_patch_of_the_oldest_version_are_tried() -> None:
    found = [(3, 11, 7), (3, 12, 1), (3, 11, 2), (3, 11, 13), (3, 11, 9), (3, 13, 0)]

    assert versions_to_try(found) == [
        *((3, 11, 2), (3, 11, 7), (3, 11, 13)),
        *((3, 12, 1), (3, 13, 0)),
    ]


def test_oldest_and_newest_are_the_first_and_the_last() -> None:
    versions = list(supported_pythons())

    assert list(oldest_and_newest()) == list(dict.fromkeys([versions[0], versions[-1]]))


def test_first_of_a_later_minor_version_is_tried_alone() -> None:
    assert versions_to_try([(3, 13, 1), (3, 13, 0), (3, 13, 7)]) == [(3, 13, 1)]


def test_versions_that_are_not_supported_and_no_python_at_all_are_left_out() -> None:
    assert versions_to_try([(), (3, 10, 13), (2, 7, 18), (3, 11, 2)]) == [(3, 11, 2)]


def test_python_of_the_tests_is_among_those_of_this_machine() -> None:
    assert own_version() in supported_pythons()
