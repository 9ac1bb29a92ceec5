"""Conformance suite of a declared algorithm: declaration, constructor and docstring agree."""

import inspect
from abc import ABC
from collections.abc import Callable
from typing import ClassVar

from nni.hpo.registry.arguments import REQUIRED, Argument
from nni.hpo.registry.declaration import declaration_of
from nni.hpo.registry.entries import AlgorithmEntry


class _Unacceptable:
    """Value that the check of every argument rejects."""

    def __repr__(self) -> str:
        """Return a text for errors."""
        return "an unacceptable value"


class DeclarationConformance(ABC):
    """Base of test classes that check the contract of `@algorithm` on one class, `algorithm`.

    Examples:
        >>> from nni.hpo import RandomTuner
        >>> class TestMyDeclaration(DeclarationConformance):
        ...     algorithm = RandomTuner
        >>> TestMyDeclaration().test_arguments_are_those_of_the_constructor()
    """

    algorithm: ClassVar[type]
    """The declared class."""

    @property
    def entry(self) -> AlgorithmEntry:
        """The declaration of the class."""
        return declaration_of(self.algorithm)

    def test_arguments_are_those_of_the_constructor(self) -> None:
        """Names and defaults are those of the signature, in its order."""
        parameters = inspect.signature(self.algorithm).parameters.values()

        assert [one.name for one in self.entry.arguments] == [one.name for one in parameters]
        for argument, parameter in zip(self.entry.arguments, parameters, strict=True):
            without = parameter.default is inspect.Parameter.empty
            assert argument.default == (REQUIRED if without else parameter.default)

    def test_defaults_keep_their_own_rules(self) -> None:
        """Every default value, and every default of configurations, is accepted."""
        values = {one.name: one.default for one in self.entry.arguments}

        for argument in self.entry.arguments:
            for value in (argument.default, self.entry.defaults.get(argument.name, REQUIRED)):
                if value is not REQUIRED:
                    argument.check(value, values)

    def test_every_argument_says_what_it_means(self) -> None:
        """Every argument has an entry in the section `Args` of the class's docstring."""
        assert [one.name for one in self.entry.arguments if not one.meaning] == []

    def test_page_says_what_it_is_and_when_to_use_it(self) -> None:
        """The docstring has a first line, and the declaration a sentence on its use."""
        assert self.entry.summary
        assert self.entry.use_when

    def test_constructor_refuses_what_a_configuration_refuses(self) -> None:
        """Configuration check and constructor raise the same message for a wrong value."""
        for argument in self.entry.arguments:
            if argument.type == "any":
                continue
            refusals = self._refusals(argument, _Unacceptable())
            assert refusals[0].endswith(refusals[1])
            assert refusals[1].startswith(f"{argument.name} must be ")

    def test_unknown_arguments_are_refused(self) -> None:
        """A configuration with a name that the constructor does not have is an error."""
        refusal = self._message(lambda: self._validate({"no_such_argument": 1}))

        assert "unknown argument 'no_such_argument'" in refusal

    def _refusals(self, argument: Argument, value: object) -> tuple[str, str]:
        """Return the messages by which configuration check and constructor reject a value.

        Raises:
            AssertionError: one of them accepts it.
        """
        given = {
            one.name: _accepted(one)
            for one in self.entry.arguments
            if one.required and one is not argument
        } | {argument.name: value}
        return (
            self._message(lambda: self._validate(given)),
            self._message(lambda: self.algorithm(**given)),
        )

    def _validate(self, given: dict[str, object]) -> None:
        validator = self.entry.validator
        assert not isinstance(validator, str)
        validator.validate_class_args(**given)

    def _message(self, call: Callable[[], object]) -> str:
        try:
            call()
        except ValueError as error:
            return str(error)
        raise AssertionError("a wrong argument was accepted")


def _accepted(argument: Argument) -> object:
    """Return a value that is accepted for an argument: its default, or 1 if it has none."""
    return 1 if argument.default is REQUIRED else argument.default
