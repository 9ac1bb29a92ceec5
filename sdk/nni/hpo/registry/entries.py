"""Entry of a named algorithm: arguments and capabilities, known without importing it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from nni.hpo.json_value import JsonValue
from nni.hpo.registry.arguments import Argument, DeclaredArguments
from nni.hpo.registry.validation import ClassArgsValidator
from nni.hpo.space.parser import ALL_TYPES

Kind: TypeAlias = Literal["tuner", "assessor", "advisor"]
_ENDING: Final = re.compile(r"(tuner|assessor|advisor)$")
"""Ending of an algorithm's name that NNI 2.x has and NNI 3.0 lacks, or the other way round."""


@dataclass(frozen=True, slots=True)
class AlgorithmEntry:
    """Name, class, arguments, capabilities and page of one algorithm.

    Those of the built-in algorithms are written by `./dev algorithms` from the declarations beside
    the classes. A third party makes one with `declaration_of(MyTuner)`, or by hand.

    Examples:
        >>> from nni.hpo.registry.factory import find
        >>> entry = find("tuner", "Evolution")
        >>> entry.class_path, entry.nested, entry.multi_objective
        ('nni.hpo.tuners.evolution:EvolutionTuner', True, False)
        >>> [argument.name for argument in entry.arguments]
        ['optimize_mode', 'population_size', 'seed']
    """

    name: str
    """Name that users write; capitals and an ending such as `Tuner` do not matter, see `find`."""
    kind: Kind
    """`tuner`, `assessor` or `advisor`."""
    class_path: str
    """`module:class` of the class to construct."""
    documented_path: str
    """`module.class` under which the class is documented."""
    validator: ClassArgsValidator | str = field(default_factory=ClassArgsValidator)
    """Check of `classArgs`; `module:class` of one to import first."""
    defaults: Mapping[str, JsonValue] = field(default_factory=lambda: MappingProxyType({}))
    """Arguments that a configuration means if it does not give them; constructors may default
    otherwise."""
    types: tuple[str, ...] = ALL_TYPES
    """The `_type`s of the search space that the algorithm supports."""
    nested: bool = True
    """True if it supports conditional spaces, that is dict options of a choice with a `_name`."""
    space_check: str = ""
    """`module:function` that raises ValueError for a bad space; empty for a check of the usual
    language by `types`, `nested` and `reserved`; advisors without `reserved` take any space."""
    any_space_with_outcomes: bool = False
    """True if it supports every type, and nesting, with several objectives or limits on outcomes,
    whatever it supports otherwise; tuners only."""
    space_argument: str = ""
    """The argument that, where given, replaces the search space; empty if none does."""
    tuners_argument: str = ""
    """The argument that lists tuners whose proposals it passes on; empty if none does. The search
    space must suit each of them."""
    keeps_first_space: bool = False
    """True if it keeps the first search space, and ignores changes of it."""
    extra: str = ""
    """The extra of the distribution that its dependencies come with; empty if none."""
    source: Literal["nni", "user"] = "user"
    """`nni` for the built-in algorithms, `user` for registered ones."""
    reserved: tuple[str, ...] = ()
    """Keys that it adds to every configuration, and a search space must not have."""
    takes_assessor: bool = True
    """True if an assessor may stop its trials; tuners only."""
    lookahead: bool = False
    """True if results never change its proposals, so that it may be asked early; tuners only."""
    multi_objective: bool = False
    """True if it learns several objectives, and limits on outcomes, at once; another tuner gets
    one number that is computed from them."""
    constraints: bool = True
    """True if it keeps the `_constraints` of a search space."""
    imports: bool = True
    """True if it learns imported samples."""
    priors: bool = False
    """True if it uses the user priors of a search space, the key `_prior` of a parameter."""
    resumable: bool = False
    """True if its state can be saved and loaded; any other one is restored by replay."""
    parallel: str = ""
    """Treatment of several requests at once."""
    summary: str = ""
    """First line of its page."""
    use_when: str = ""
    """Situation in which to choose it."""
    reference: str = ""
    """Paper or library that it follows."""

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments of its constructor, in order; empty if they are not declared."""
        declared = self.validator
        return declared.arguments if isinstance(declared, DeclaredArguments) else ()

    @property
    def capabilities(self) -> dict[str, str]:
        """Labels and values of the algorithm's capabilities, for a table."""
        if self.kind == "assessor":
            return {"Resumable": _yes(self.resumable)}
        return {
            "Search space": "its own" if self.space_check else ", ".join(self.types),
            "Conditional spaces": _yes(self.nested),
            "Constraints": _yes(self.constraints),
            "Several objectives": "yes" if self.multi_objective else "as one number",
            "Parallel requests": self.parallel,
            "Lookahead": _yes(self.lookahead),
            "Imported samples": _yes(self.imports),
            "User priors": _yes(self.priors),
            "Assessor": _yes(self.takes_assessor and self.kind == "tuner"),
            "Resumable": "yes" if self.resumable else "by replay",
        }

    def argument_rows(self) -> list[dict[str, str]]:
        """Return the table of its arguments: name, type, default, range, meaning.

        Returns:
            One dict per argument, with the columns `Name`, `Type`, `Default`, `Range`, `Meaning`.
        """
        return [
            {
                "Name": argument.name,
                "Type": argument.type,
                "Default": self._default_text(argument),
                "Range": argument.range,
                "Meaning": argument.meaning,
            }
            for argument in self.arguments
        ]

    def _default_text(self, argument: Argument) -> str:
        """Return an argument's default in a configuration as text, or `required`."""
        if argument.required:
            return "required"
        return str(self.defaults.get(argument.name, argument.default))


def _yes(value: bool) -> str:  # noqa: FBT001 - the value is what is named
    return "yes" if value else "no"


def folded_name(name: str) -> str:
    """Return a name as lower-case letters and digits, less an ending such as `tuner`."""
    return _ENDING.sub("", re.sub(r"[^a-z0-9]", "", name.casefold()))
