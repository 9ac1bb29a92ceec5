"""The suite of declarations passes a good one and fails what contradicts itself."""

from dataclasses import replace
from typing import Annotated

import pytest

from nni.hpo import RandomTuner, algorithm
from nni.hpo.registry.declaration import declaration_of
from nni.hpo.registry.rules import IntRange
from nni.testing import DeclarationConformance


@algorithm("Good", use_when="In tests.", parallel="All are served.")
class Good(RandomTuner):
    """Draws at random.

    Args:
        size: without effect.
        name: without effect, too.
    """

    def __init__(self, size: Annotated[int, IntRange(1)], name: str = "x") -> None:
        super().__init__()
        del size, name


class TestGood(DeclarationConformance):
    algorithm = Good


@algorithm("Bad", use_when="")
class Bad(RandomTuner):
    def __init__(self, size: Annotated[int, IntRange(1)] = 0) -> None:
        super().__init__()
        del size


class BadSuite(DeclarationConformance):
    algorithm = Bad


def test_default_outside_of_its_range_fails() -> None:
    with pytest.raises(ValueError, match="size must be an int >= 1, got 0"):
        BadSuite().test_defaults_keep_their_own_rules()


def test_missing_meaning_and_page_fail() -> None:
    with pytest.raises(AssertionError):
        BadSuite().test_every_argument_says_what_it_means()
    with pytest.raises(AssertionError):
        BadSuite().test_page_says_what_it_is_and_when_to_use_it()


def test_signature_that_differs_from_the_declaration_fails() -> None:
    class Other(Bad):
        def __init__(self, length: int = 1) -> None:
            super().__init__(length)

    Other._declaration = replace(declaration_of(Bad), name="Other")  # type: ignore[attr-defined] # as the decorator does

    class OtherSuite(DeclarationConformance):
        algorithm = Other

    with pytest.raises(AssertionError):
        OtherSuite().test_arguments_are_those_of_the_constructor()
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        OtherSuite().test_constructor_refuses_what_a_configuration_refuses()
