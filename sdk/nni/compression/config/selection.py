"""Selection of modules by the name and type filters of an entry."""

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, cast

from nni.compression.config.settings import ConfigListError

_logger = logging.getLogger(__name__)

DEFAULT_TYPES: Final = (
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Linear",
    "Bilinear",
    "PReLU",
    "Embedding",
    "EmbeddingBag",
)
"""Types that `default` in `op_types` stands for."""

SELECTION_KEYS: Final = (
    "op_names",
    "op_names_re",
    "op_types",
    "exclude_op_names",
    "exclude_op_names_re",
    "exclude_op_types",
)
"""Keys of an entry that select modules."""


@dataclass(frozen=True, slots=True)
class ModuleInfo:
    """Type name and parameter names of a module."""

    type_name: str
    """Name of its class."""
    parameters: frozenset[str]
    """Names of its own parameters."""


def check_selection(entry: Mapping[str, object], where: str) -> None:
    """Raise ConfigListError unless selection keys hold lists of str, and one selects modules.

    Args:
        entry: entry of a configuration list.
        where: its place.

    Raises:
        ConfigListError: a value is no list of str, a pattern is no regular expression, or the
            entry selects by neither name nor type.
    """
    for key in (*SELECTION_KEYS, "op_partial_names"):
        values = entry.get(key)
        if values is None:
            continue
        listed = isinstance(values, list | tuple) and all(isinstance(one, str) for one in values)
        if not listed:
            raise ConfigListError(f"{where}.{key}", f"must be a list of str, got {values!r}")
        if key.endswith("_re"):
            _check_patterns(cast("Iterable[str]", values), f"{where}.{key}")
    selecting = ("op_names", "op_names_re", "op_types", "op_partial_names")
    if not any(entry.get(key) for key in selecting):
        raise ConfigListError(
            where, "selects no module; give op_types, op_names, op_names_re or op_partial_names"
        )


def select(
    entry: Mapping[str, object], modules: Mapping[str, ModuleInfo], where: str = "the entry"
) -> list[str]:
    """Return names of modules that fit an entry's names, types and exclusions, in model order.

    The selection is (`op_names` and the matches of `op_names_re`, of the types `op_types`) without
    the excluded ones. Without names, all modules of the types are selected. Names and types that
    the model lacks are logged as warnings.

    Args:
        entry: entry that `check_selection` accepts.
        modules: modules of the model by dotted name, without the root.
        where: place of the entry, for warnings.

    Returns:
        Names of the selected modules.

    Examples:
        >>> conv = ModuleInfo("Conv2d", frozenset({"weight"}))
        >>> select({"op_types": ["Conv2d"], "exclude_op_names": ["b"]}, {"a": conv, "b": conv})
        ['a']
    """
    names = set(_strings(entry, "op_names"))
    patterns = _strings(entry, "op_names_re")
    partial = _strings(entry, "op_partial_names")
    types = expand_types(_strings(entry, "op_types"))
    _warn_unknown(names | set(_strings(entry, "exclude_op_names")), types, modules, where)
    by_name = bool(names or patterns or partial)
    excluded_names = set(_strings(entry, "exclude_op_names"))
    excluded_patterns = _strings(entry, "exclude_op_names_re")
    excluded_types = expand_types(_strings(entry, "exclude_op_types"))
    return [
        name
        for name, info in modules.items()
        if (not by_name or name in names or _matches(name, patterns) or _holds(name, partial))
        and (not types or info.type_name in types)
        and name not in excluded_names
        and info.type_name not in excluded_types
        and not _matches(name, excluded_patterns)
    ]


def expand_types(types: Iterable[str]) -> set[str]:
    """Return type names with `default` replaced by the types that it represents."""
    return {name for one in types for name in (DEFAULT_TYPES if one == "default" else (one,))}


def _check_patterns(patterns: Iterable[str], where: str) -> None:
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ConfigListError(
                where, f"must hold regular expressions, got {pattern!r}: {error}"
            ) from error


def _strings(entry: Mapping[str, object], key: str) -> tuple[str, ...]:
    return tuple(cast("Iterable[str]", entry.get(key) or ()))


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(re.match(pattern, name) for pattern in patterns)


def _holds(name: str, parts: Iterable[str]) -> bool:
    return any(part in name for part in parts)


def _warn_unknown(
    names: set[str], types: set[str], modules: Mapping[str, ModuleInfo], where: str
) -> None:
    known_types = {info.type_name for info in modules.values()} | set(DEFAULT_TYPES)
    for name in sorted(names - modules.keys()):
        _logger.warning("%s: the model has no module %r", where, name)
    for name in sorted(types - known_types):
        _logger.warning("%s: the model has no module of type %r", where, name)
