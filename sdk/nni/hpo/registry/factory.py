"""Factory of algorithms: looks names up, checks arguments and spaces, and constructs objects.

A third party adds an algorithm with an entry point of the group `nni.hpo` whose object is a class
declared with `@algorithm`, or an `AlgorithmEntry`; users register one with `nnictl algo register`.
No algorithm is imported before it is used.
"""

import importlib
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast, get_args, overload

from nni.hpo.advisor import MsgDispatcherBase
from nni.hpo.base import Assessor, Tuner
from nni.hpo.json_value import JsonValue
from nni.hpo.registry.built_in import BUILT_IN
from nni.hpo.registry.declaration import BASES, declaration_of, is_declared
from nni.hpo.registry.entries import AlgorithmEntry, Kind, folded_name
from nni.hpo.registry.named_tuners import NamedTuner, named_tuners
from nni.hpo.registry.outcome_arguments import check_single_outcome
from nni.hpo.registry.registrations import registered
from nni.hpo.space.parser import parse_space

__all__ = [
    "ENTRY_POINT_GROUP",
    "Algorithm",
    "AlgorithmEntry",
    "Kind",
    "algorithms",
    "create",
    "create_custom",
    "custom_class",
    "find",
    "named_class",
    "validate",
]

Algorithm: TypeAlias = Tuner | Assessor | MsgDispatcherBase

ENTRY_POINT_GROUP: Final = "nni.hpo"


@cache
def _third_party() -> tuple[AlgorithmEntry, ...]:
    from importlib.metadata import entry_points  # slow to import, and seldom needed

    entries: list[AlgorithmEntry] = []
    for point in entry_points(group=ENTRY_POINT_GROUP):
        entry = point.load()
        if is_declared(entry):
            entry = declaration_of(entry)
        if not isinstance(entry, AlgorithmEntry):
            raise TypeError(
                f"entry point {point.name!r} of group {ENTRY_POINT_GROUP!r} must be an "
                f"AlgorithmEntry or a class declared with @algorithm, got {entry!r:.200}"
            )
        entries.append(entry)
    return tuple(entries)


def algorithms(kind: Kind | None = None) -> tuple[AlgorithmEntry, ...]:
    """Return the entries of all known algorithms, built-in ones first; of one kind if it is given.

    Built-in ones come first, then what the user registered, then entry points; a name that is taken
    does not count again.

    Raises:
        ValueError: the file of registered algorithms cannot be read.
    """
    every: dict[tuple[Kind, str], AlgorithmEntry] = {}
    for entry in (*BUILT_IN, *registered(), *_third_party()):
        every.setdefault((entry.kind, entry.name), entry)
    return tuple(entry for entry in every.values() if kind is None or entry.kind == kind)


def find(kind: Kind, name: str) -> AlgorithmEntry:
    """Return the entry of this kind and name, exact or nearly so; ValueError if there is none.

    A name as it is declared comes first; without one, capitals, punctuation and the ending
    `Tuner`, `Assessor` or `Advisor` do not matter: `gp` and `GP` are `GPTuner`, as in NNI 3.0.

    Raises:
        ValueError: there is none; the text lists those that exist.
    """
    if kind not in get_args(Kind):
        raise ValueError(f"kind must be one of {', '.join(get_args(Kind))}; got {kind!r}")
    for entry in BUILT_IN:
        if (entry.kind, entry.name) == (kind, name):
            return entry
    entries = {entry.name: entry for entry in algorithms(kind)}
    if name in entries:
        return entries[name]
    same = [
        entry for entry in entries.values() if folded_name(entry.name) == folded_name(str(name))
    ]
    if len(same) == 1:
        return same[0]
    known = ", ".join(entries) or "none"
    hint = _hint_of_name(str(name), entries) or _hint_of_kind(name)
    raise ValueError(f"{kind} name must be one of {known}; got {name!r}{hint}")


def is_advisor(name: str) -> bool:
    """Return whether a name is one of an advisor, and of no tuner; False if it is unknown.

    False for an unknown name, which `validate` refuses.
    """
    try:
        find("tuner", name)
    except ValueError:
        pass
    else:
        return False
    try:
        find("advisor", name)
    except ValueError:
        return False
    return True


REMOVED_ALGORITHMS: Final[Mapping[str, str]] = {
    "PPOTuner": "it searched network architectures only; for hyperparameters use 'auto' or 'TPE'",
}
"""Names that NNI 2.x had, and the remedy."""

_DECORATION: Final = re.compile(r"[^a-z0-9]|tuner|search|assessor|advisor|naive|stopping")
"""Parts of a name that differ between NNI's names of an algorithm, folded to lower case."""


def _hint_of_name(name: str, names: Iterable[str]) -> str:
    """Return the hint for an error about an unknown name: its removal, a close name, or empty."""
    if name in REMOVED_ALGORITHMS:
        return f"; {REMOVED_ALGORITHMS[name]}"
    folded = {_DECORATION.sub("", known.casefold()): known for known in names}
    bare = _DECORATION.sub("", name.casefold())
    close = [bare] if bare in folded else get_close_matches(bare, folded, n=1)
    return f"; did you mean {folded[close[0]]!r}?" if close else ""


def validate(
    kind: Kind,
    name: str,
    class_args: Mapping[str, JsonValue] | None = None,
    search_space: object = None,
    *,
    several_outcomes: bool = False,
) -> None:
    """Raise ValueError unless an algorithm, its arguments and its search space are valid.

    Imports no algorithm, unless an entry names a validator or space check of its own.

    Args:
        kind: what the algorithm is used as.
        name: of a built-in or registered algorithm.
        class_args: of the configuration; None for none.
        search_space: None leaves the space unchecked, as for assessors.
        several_outcomes: whether it learns several objectives, or limits on outcomes.

    Raises:
        ValueError: with the name, the rule, the value and the remedy.
    """
    entry = find(kind, name)
    _check_class_args(entry, dict(class_args or {}))
    check_single_outcome(class_args, several_outcomes=several_outcomes)
    for index, listed in enumerate(_listed(entry, class_args)):
        with _named(f"{entry.tuners_argument}[{index}]"):
            check_listed(listed.name)
            validate("tuner", listed.name, listed.class_args, search_space)
    replaced = entry.space_argument and (class_args or {}).get(entry.space_argument) is not None
    if search_space is None or kind == "assessor" or replaced:
        return
    if several_outcomes and entry.any_space_with_outcomes:
        parse_space(search_space, algorithm=name, priors=entry.priors)
    elif entry.space_check:
        _load(entry.space_check)(search_space)
    elif kind == "tuner" or entry.reserved:
        parse_space(
            search_space,
            algorithm=name,
            types=entry.types,
            nested=entry.nested,
            reserved=frozenset(entry.reserved),
            priors=entry.priors,
        )


def check_replaceable(
    kind: Kind, name: str, class_args: Mapping[str, JsonValue] | None = None
) -> None:
    """Raise ValueError unless an algorithm accepts another search space while it runs.

    Raises:
        ValueError: it keeps its first search space; or the name is unknown.
    """
    entry = find(kind, name)
    given = (class_args or {}).get(entry.space_argument) if entry.space_argument else None
    remedy = "create a new experiment with the new one, and warm-start it from this one"
    if given is not None:
        raise ValueError(
            f"{name} has its search space from {entry.space_argument} = {given!r} and keeps it; "
            "create a new experiment without that argument"
        )
    if entry.keeps_first_space:
        raise ValueError(f"{name} keeps the search space that it began with; {remedy}")
    for index, listed in enumerate(_listed(entry, class_args)):
        with _named(f"{entry.tuners_argument}[{index}]"):
            check_replaceable("tuner", listed.name, listed.class_args)


def check_hand_over(present: str, successor: str) -> None:
    """Raise ValueError if a tuner of one name cannot learn the results of another one's trials.

    Args:
        present: name of the tuner that has proposed them; one that is empty or unknown is that of
            a class of the user's own.
        successor: name of the tuner that is to learn them; likewise.

    Raises:
        ValueError: the trials of `present` build on each other, or `successor` ignores results
            other than those of its own trials.
    """
    former, entry = _known_tuner(present), _known_tuner(successor)
    if former is not None and former.reserved:
        raise ValueError(
            f"cannot take over from {former.name}, whose trials go on from one another's "
            "checkpoints: their results are not those of their configurations alone"
        )
    if entry is not None and not (entry.imports or entry.lookahead):
        raise ValueError("must learn the results of earlier trials to take over")


def _known_tuner(name: str) -> AlgorithmEntry | None:
    """Return the entry of a tuner; None for an unknown name."""
    try:
        return find("tuner", name)
    except ValueError:
        return None


def check_listed(name: str) -> None:
    """Raise ValueError unless a tuner may be one of several that share the trials of a search.

    Raises:
        ValueError: it adds keys to configurations, or is itself made of several; or the name is
            unknown.
    """
    entry = find("tuner", name)
    if entry.tuners_argument:
        raise ValueError(f"{name} must not be one of several tuners; list its tuners instead")
    if entry.reserved:
        raise ValueError(
            f"{name} must not be one of several tuners: it adds {', '.join(entry.reserved)} to "
            "configurations; give it an experiment of its own"
        )


def _listed(
    entry: AlgorithmEntry, class_args: Mapping[str, JsonValue] | None
) -> tuple[NamedTuner, ...]:
    """Return the tuners that an algorithm's arguments list; none for other algorithms."""
    given = (class_args or {}).get(entry.tuners_argument) if entry.tuners_argument else None
    return () if given is None else named_tuners(given)


@contextmanager
def _named(field: str) -> Iterator[None]:
    """Return a context that puts the name of a field before the text of a ValueError."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from error


def takes_assessor(tuner: str) -> bool:
    """Return whether an assessor may stop the trials of a tuner; True for an unknown name.

    True for an unknown name, which `validate` refuses.
    """
    try:
        return find("tuner", tuner).takes_assessor
    except ValueError:
        return True


def _check_class_args(entry: AlgorithmEntry, class_args: dict[str, JsonValue]) -> None:
    validator = entry.validator
    if isinstance(validator, str):
        validator = _load(validator)()
    try:
        validator.validate_class_args(**class_args)
    except ValueError:
        raise
    except Exception as error:  # a validator rejects with any type
        raise ValueError(f"classArgs of {entry.name}: {error}") from error


@overload
def create(
    kind: Literal["tuner"],
    name: str,
    class_args: Mapping[str, JsonValue] | None = None,
    seed: int | None = None,
    optimize_mode: str | None = None,
) -> Tuner: ...
@overload
def create(
    kind: Literal["assessor"],
    name: str,
    class_args: Mapping[str, JsonValue] | None = None,
    seed: int | None = None,
    optimize_mode: str | None = None,
) -> Assessor: ...
@overload
def create(
    kind: Kind,
    name: str,
    class_args: Mapping[str, JsonValue] | None = None,
    seed: int | None = None,
    optimize_mode: str | None = None,
) -> Algorithm: ...
def create(
    kind: Kind,
    name: str,
    class_args: Mapping[str, JsonValue] | None = None,
    seed: int | None = None,
    optimize_mode: str | None = None,
) -> Algorithm:
    """Check arguments and construct a named algorithm, with seed and mode if it takes them.

    Args:
        kind: what the algorithm is used as.
        name: of a built-in or registered algorithm.
        class_args: keyword arguments of the constructor.
        seed: given to constructors that take one, unless `class_args` does.
        optimize_mode: the same; None for `maximize`, the default of
            configurations.

    Returns:
        An object of the base class of `kind`.

    Raises:
        ValueError: a name or an argument is wrong.
        ImportError: a dependency is missing; the text names the extra to install.
    """
    entry = find(kind, name)
    given = dict(class_args or {})
    _check_class_args(entry, given)
    cls = named_class(kind, name)
    arguments = {**entry.defaults, **given}
    taken = inspect.signature(cls).parameters
    arguments |= {
        key: value
        for key, value in (("seed", seed), ("optimize_mode", optimize_mode))
        if value is not None and key in taken and key not in given
    }
    return cls(**arguments)


def _hint_of_kind(name: str) -> str:
    """Return the hint for an error about a name that exists as another kind; else an empty text."""
    for kind in get_args(Kind):
        if any(entry.name == name for entry in algorithms(kind)):
            return f"; {name} is a name for {kind}"
    return ""


def named_class(kind: Kind, name: str) -> type[Algorithm]:
    """Import and return the class of a named algorithm; ImportError names the missing extra.

    Raises:
        ValueError: there is no such name.
        TypeError: its class is none of `kind`.
        ImportError: a dependency is missing; the text names the extra to install.
    """
    entry = find(kind, name)
    try:
        cls = _load(entry.class_path)
    except ImportError as error:
        if not entry.extra:
            raise
        raise ImportError(
            f"{kind} {name} needs a package that is missing ({error}); "
            f"install it with: pip install 'nni[{entry.extra}]'"
        ) from error
    return _checked_class(cls, kind)


def argument_names(entry: AlgorithmEntry) -> tuple[str, ...]:
    """Return argument names, declared or from the class's signature; none if it cannot be imported.

    Imports the class of an algorithm without a declaration.
    """
    if entry.arguments:
        return tuple(argument.name for argument in entry.arguments)
    try:
        return tuple(inspect.signature(named_class(entry.kind, entry.name)).parameters)
    except (ImportError, TypeError):
        return ()


def create_custom(
    kind: Kind,
    class_name: str,
    class_args: Mapping[str, JsonValue] | None = None,
    code_directory: str | Path | None = None,
) -> Algorithm:
    """Import and construct a class of the user's own; its code directory stays on `sys.path`.

    Args:
        kind: what the algorithm is used as.
        class_name: qualified, such as `my_tuner.MyTuner`.
        class_args: keyword arguments of the constructor.
        code_directory: put first on the import path, and left there: the class may import more
            when it runs.

    Raises:
        ValueError: `class_name` is not qualified, or its module has no such class.
        TypeError: the class is none of `kind`, or refuses its arguments.
        ImportError: its module cannot be imported.
    """
    return _built(custom_class(kind, class_name, code_directory), kind, dict(class_args or {}))


def custom_class(
    kind: Kind, class_name: str, code_directory: str | Path | None = None
) -> type[Algorithm]:
    """Import and return a class of the user's own; its code directory stays on `sys.path`.

    Raises:
        ValueError: `class_name` is not qualified, or its module has no such class.
        TypeError: the class is none of `kind`.
        ImportError: its module cannot be imported.
    """
    module_name, _, attribute = class_name.rpartition(".")
    if not module_name:
        raise ValueError(
            f"className must be qualified, as in 'my_module.{class_name}', got {class_name!r}"
        )
    if code_directory is not None:
        folder = str(Path(code_directory).resolve())
        if folder not in sys.path:
            sys.path.insert(0, folder)
    module = importlib.import_module(module_name)
    cls = getattr(module, attribute, None)
    if not isinstance(cls, type):
        raise ValueError(f"className {class_name!r}: module {module_name!r} has no such class")  # noqa: TRY004 - one type for all faults of an input
    return _checked_class(cls, kind)


def _checked_class(cls: type, kind: Kind) -> type[Algorithm]:
    base = BASES[kind]
    if not issubclass(cls, base):
        raise TypeError(f"{kind} {cls.__qualname__} must be a subclass of {base.__qualname__}")
    return cast("type[Algorithm]", cls)


def _built(cls: type, kind: Kind, arguments: dict[str, JsonValue]) -> Algorithm:
    return _checked_class(cls, kind)(**arguments)


def _load(path: str) -> JsonValue:
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)
