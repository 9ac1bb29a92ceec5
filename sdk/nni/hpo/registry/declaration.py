"""Decorator that declares an algorithm: its name, arguments and capabilities, beside its class.

`@algorithm` on the class holds its name and what it supports; the constructor's signature holds
names, types, ranges (see `arguments`) and defaults; the docstrings hold the meaning of each
argument, a one-line summary and the source. `./dev algorithms` imports every module below `tuners`,
`assessors` and `advisors` that uses the decorator, and writes from the declarations the table
`nni.hpo.registry.built_in` and the exports of `nni.hpo`; a test compares them. So adding an
algorithm is adding one file, and running that command.

Why a generated table: `nni.hpo` must import in milliseconds and a configuration must be checked
without numpy, but a class stands in a module that imports numpy. A table that is committed can be
read, reviewed and searched; lazy imports in every algorithm, or reading source text at run time,
would cost each reader and each start instead.
"""

import functools
import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Final, TypeVar

from nni.hpo.advisor import MsgDispatcherBase
from nni.hpo.base import Assessor, Resumable, Tuner
from nni.hpo.json_value import JsonValue
from nni.hpo.registry.arguments import DeclaredArguments, arguments_of
from nni.hpo.registry.entries import AlgorithmEntry, Kind
from nni.hpo.registry.rules import OneOf
from nni.hpo.space.parser import ALL_TYPES

_ATTRIBUTE: Final = "_declaration"
"""Attribute of a class that holds its declaration."""

_MODE: Final = "optimize_mode"

BASES: Final[dict[Kind, type]] = {
    "tuner": Tuner,
    "assessor": Assessor,
    "advisor": MsgDispatcherBase,
}
"""Base class of each kind of algorithm."""

_Class = TypeVar("_Class", bound=type)


def algorithm(  # noqa: PLR0913 - one parameter per fact that is declared
    name: str,
    *,
    use_when: str,
    parallel: str = "",
    documented_as: str = "",
    types: Collection[str] = ALL_TYPES,
    nested: bool = True,
    reserved: Collection[str] = (),
    space_check: str | Callable[[object], object] = "",
    any_space_with_outcomes: bool = False,
    space_argument: str = "",
    tuners_argument: str = "",
    keeps_first_space: bool = False,
    takes_assessor: bool = True,
    constraints: bool = True,
    imports: bool = True,
    priors: bool = False,
    defaults: Mapping[str, JsonValue] | None = None,
    argument_check: str | Callable[..., object] = "",
    extra: str = "",
) -> Callable[[_Class], _Class]:
    """Return a decorator that declares a class as a named algorithm and checks its arguments.

    The constructor then checks its arguments by the declaration before its body runs.

    Args:
        name: as users write it.
        use_when: one sentence that helps to choose.
        parallel: what happens to several requests at once; empty for assessors.
        documented_as: import path under which the class is documented; empty for its own.
        types: see `AlgorithmEntry`, as all below.
        nested: see there.
        reserved: see there.
        space_check: see there; a function stands for its `module:function`.
        any_space_with_outcomes: see there.
        space_argument: see there.
        tuners_argument: see there.
        keeps_first_space: see there.
        takes_assessor: see there.
        constraints: see there.
        imports: see there.
        priors: see there.
        defaults: see there; None for `optimize_mode: maximize`, if there is such an argument.
        argument_check: see `DeclaredArguments`; a function stands for its `module:function`.
        extra: see there.

    Returns:
        Decorator that returns the class itself, with its constructor checked.

    Examples:
        >>> from nni.hpo import Tuner
        >>> from nni.hpo.registry.arguments import Seed
        >>> @algorithm("Zero", use_when="Nothing is to be tuned.", parallel="All are served.")
        ... class ZeroTuner(Tuner):
        ...     '''Proposes an empty configuration.
        ...
        ...     Args:
        ...         seed: without effect.
        ...     '''
        ...
        ...     def __init__(self, seed: Seed = None) -> None:
        ...         pass
        ...     def update_search_space(self, search_space): pass
        ...     def generate_parameters(self, parameter_id, **kwargs): return {}
        ...     def receive_trial_result(self, parameter_id, parameters, value, **kwargs): pass
        >>> declaration_of(ZeroTuner).name
        'Zero'
        >>> ZeroTuner(seed=-1)
        Traceback (most recent call last):
        ValueError: seed must be an int in [0, 9223372036854775807], or None, got -1; leave it out
        for None
    """

    def declare(cls: _Class) -> _Class:
        arguments = DeclaredArguments(name, arguments_of(cls), _path_of(argument_check))
        own_path = f"{cls.__module__}.{cls.__qualname__}"
        entry = AlgorithmEntry(
            name=name,
            kind=_kind_of(cls),
            class_path=f"{cls.__module__}:{cls.__qualname__}",
            documented_path=documented_as or own_path,
            validator=arguments,
            defaults=_configured(arguments) if defaults is None else MappingProxyType(defaults),
            types=tuple(types),
            nested=nested,
            reserved=tuple(sorted(reserved)),
            space_check=_path_of(space_check),
            any_space_with_outcomes=any_space_with_outcomes,
            space_argument=space_argument,
            tuners_argument=tuners_argument,
            keeps_first_space=keeps_first_space,
            takes_assessor=takes_assessor,
            extra=extra,
            lookahead=bool(getattr(cls, "lookahead", False)),
            multi_objective=bool(getattr(cls, "multi_objective", False)),
            resumable=issubclass(cls, Resumable),
            constraints=constraints,
            imports=imports,
            priors=priors,
            source="nni" if cls.__module__.startswith("nni.hpo.") else "user",
            parallel=parallel,
            summary=(inspect.getdoc(cls) or "").partition("\n")[0],
            use_when=use_when,
            reference=_source_of(cls),
        )
        setattr(cls, _ATTRIBUTE, entry)
        cls.__init__ = _checked(cls.__init__, arguments)  # type: ignore[misc] # the decorator's purpose
        return cls

    return declare


def declaration_of(cls: type) -> AlgorithmEntry:
    """Return the entry that `@algorithm` declared for a class itself; raise TypeError without.

    Raises:
        TypeError: the class itself has no declaration; those of its bases do not count.
    """
    entry = vars(cls).get(_ATTRIBUTE)
    if not isinstance(entry, AlgorithmEntry):
        raise TypeError(f"{cls.__qualname__} is not declared; put @algorithm(…) on the class")
    return entry


def is_declared(cls: object) -> bool:
    """Return whether an object is a class with a declaration of its own."""
    return isinstance(cls, type) and _ATTRIBUTE in vars(cls)


def accept_any_space(search_space: object) -> None:
    """Accept every search space: the algorithm itself decides what a space is."""
    del search_space


def _path_of(function: str | Callable[..., object]) -> str:
    """Return `module:function` of a function; a text is one already."""
    return function if isinstance(function, str) else f"{function.__module__}:{function.__name__}"


def _configured(declared: DeclaredArguments) -> Mapping[str, JsonValue]:
    """Return configuration defaults: `maximize` if the class has an optimize mode, else none."""
    for argument in declared.arguments:
        if argument.name == _MODE and isinstance(argument.rule, OneOf):
            return MappingProxyType({_MODE: "maximize"})
    return MappingProxyType({})


def _kind_of(cls: type) -> Kind:
    for kind, base in BASES.items():
        if issubclass(cls, base):
            return kind
    bases = ", ".join(base.__qualname__ for base in BASES.values())
    raise TypeError(f"{cls.__qualname__} must be a subclass of one of {bases}")


def _source_of(cls: type) -> str:
    """Return the `Source:` paragraph of the module's docstring, as one line; empty if none."""
    docstring = inspect.getdoc(sys.modules[cls.__module__]) or ""
    for paragraph in docstring.split("\n\n"):
        if paragraph.startswith("Source:"):
            return " ".join(paragraph.removeprefix("Source:").split())
    return ""


def _checked(init: Callable[..., None], arguments: DeclaredArguments) -> Callable[..., None]:
    """Wrap a constructor so that its arguments are checked before its body runs."""
    signature = inspect.signature(init)

    @functools.wraps(init)
    def construct(self: object, *args: object, **kwargs: object) -> None:
        try:
            given = signature.bind(self, *args, **kwargs).arguments
        except TypeError:
            init(self, *args, **kwargs)  # raises the usual error for a wrong call
            raise
        _, *values = given.items()
        arguments.validate(dict(values))
        init(self, *args, **kwargs)

    return construct
