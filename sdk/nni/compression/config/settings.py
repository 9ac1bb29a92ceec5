"""Settings of pruned targets: their keys, ranges and defaults.

A setting is written in an entry of `config_list`, for all targets of the entry or, below
`target_settings`, for one of them. Every error names the entry, the key, the rule and the value.
"""

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from types import MappingProxyType
from typing import ClassVar, Final, Literal, cast

ApplyMethod = Literal["bypass", "mul", "add"]
NamedGranularity = Literal["default", "in_channel", "out_channel", "per_channel"]
Granularity = NamedGranularity | tuple[int, ...]
GroupId = int | str

_GRANULARITIES: Final = ("default", "in_channel", "out_channel", "per_channel")
_APPLY_METHODS: Final = ("bypass", "mul", "add")


class ConfigListError(ValueError):
    """Error that a `config_list` breaks a rule; `where` names the place.

    Args:
        where: place of the value, such as `config_list[1].sparse_ratio`.
        problem: the rule, the value and the remedy.

    Attributes:
        where: see above.

    Examples:
        >>> raise ConfigListError("config_list[0].sparse_ratio", "must be in [0, 1], got 2")
        Traceback (most recent call last):
        nni.compression.config.settings.ConfigListError: config_list[0].sparse_ratio must be in
        [0, 1], got 2
    """

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where} {problem}")
        self.where = where


@dataclass(frozen=True, slots=True)
class Align:
    """Reference to the target whose mask another one takes over, along some dimensions."""

    target_name: str
    """Target whose mask is taken over."""
    dims: tuple[int, ...] = (0,)
    """Dimensions of the other target's mask that become those of this one."""
    module_name: str | None = None
    """Module of the other target; None for the same module."""


@dataclass(frozen=True, slots=True)
class PruningSettings:
    """Settings of a pruned target: ratio or threshold, bounds, groups, granularity, method."""

    sparse_ratio: float | None = None
    """Fraction to mask, in [0, 1]; None if a threshold or an alignment decides."""
    sparse_threshold: float | None = None
    """Mask what has a smaller metric; excludes `sparse_ratio`."""
    max_sparse_ratio: float | None = None
    """Largest fraction to mask, in (0, 1]; None: all but one value in a global group, else all."""
    min_sparse_ratio: float | None = None
    """Smallest fraction to mask, in [0, 1); None for 0."""
    global_group_id: GroupId | None = None
    """Targets with the same id reach `sparse_ratio` together; None: each target on its own."""
    dependency_group_id: GroupId | None = None
    """Targets with the same id get the same mask; None for a mask of its own."""
    internal_metric_block: int | None = None
    """Number of equal blocks of channels that lose equally many; None for 1."""
    granularity: Granularity = "default"
    """What is masked as one: see `nni.compression.masking.granularity.block_sizes`."""
    apply_method: ApplyMethod = "mul"
    """`mul`: zero; `add`: add -1000; `bypass`: keep the mask, leave the target as it is."""
    align: Align | None = None
    """Other target whose mask is taken over; None for a mask from the target's own metric."""


SETTING_KEYS: Final = tuple(field.name for field in fields(PruningSettings))
"""Keys of settings in an entry."""


class PruningSetting:
    """Registry of a module type's default targets, with the defaults of their settings.

    Examples:
        >>> PruningSetting.register("RMSNorm", {"weight": {"apply_method": "mul"}})
        >>> sorted(PruningSetting.of("Conv2d"))
        ['bias', 'weight']
    """

    _registered: ClassVar[dict[str, Mapping[str, Mapping[str, object]]]] = {}

    @classmethod
    def register(cls, name: str, setting: Mapping[str, Mapping[str, object]]) -> None:
        """Check and register the default targets of a module type; replace earlier ones.

        Args:
            name: class name of the module type.
            setting: settings by target name.

        Raises:
            ConfigListError: a setting is unknown or out of range.

        Examples:
            >>> PruningSetting.register("MyLinear", {"weight": {}})
        """
        for target, values in setting.items():
            check_settings(values, f"PruningSetting {name!r} target {target!r}")
        cls._registered[name] = MappingProxyType({**setting})

    @classmethod
    def of(cls, name: str) -> Mapping[str, Mapping[str, object]]:
        """Return a module type's registered targets; else weight, and usually bias aligned to it.

        Args:
            name: class name of the module type.

        Returns:
            Settings by target name.

        Examples:
            >>> PruningSetting.of("ConvTranspose2d")["bias"]["align"]["dims"]
            [1]
        """
        if name in cls._registered:
            return cls._registered[name]
        if name in {"Embedding", "EmbeddingBag", "PReLU"}:
            return {"weight": {}}
        dim = 1 if name.startswith("ConvTranspose") else 0
        return {"weight": {}, "bias": {"align": {"target_name": "weight", "dims": [dim]}}}


def settings_from(values: Mapping[str, object]) -> PruningSettings:
    """Convert checked settings to `PruningSettings`; None and missing get defaults.

    Args:
        values: settings by key, which `check_settings` accepts.

    Returns:
        The settings; keys that are missing or None have their defaults.

    Examples:
        >>> settings_from({"sparse_ratio": 0.5, "granularity": [4, -1]}).granularity
        (4, -1)
    """
    given = {key: value for key, value in values.items() if value is not None}
    if isinstance(given.get("granularity"), Sequence) and not isinstance(given["granularity"], str):
        given["granularity"] = tuple(cast("Sequence[int]", given["granularity"]))
    if "align" in given:
        align = cast("Mapping[str, object]", given["align"])
        given["align"] = Align(
            target_name=cast("str", align["target_name"]),
            dims=tuple(cast("Sequence[int]", align.get("dims", (0,)))),
            module_name=cast("str | None", align.get("module_name")),
        )
    return PruningSettings(**given)  # type: ignore[arg-type]  # check_settings has checked them


def check_settings(values: Mapping[str, object], where: str) -> None:
    """Raise ConfigListError unless all keys are settings and their values are in range.

    Args:
        values: settings by key; None stands for the default.
        where: place of the settings, for errors.

    Raises:
        ConfigListError: a key or value is wrong, or both ratio and threshold are given.
    """
    for key, value in values.items():
        if key not in SETTING_KEYS:
            raise unknown_key(where, key, SETTING_KEYS)
        if value is not None:
            _RULES[key](value, f"{where}.{key}")
    if values.get("sparse_ratio") is not None and values.get("sparse_threshold") is not None:
        raise ConfigListError(
            where, "has both sparse_ratio and sparse_threshold; leave one of them out"
        )


def unknown_key(where: str, key: object, known: Collection[str]) -> ConfigListError:
    """Return the error for a key that is not known, with the nearest known one.

    Args:
        where: place of the mapping that has the key.
        key: the key.
        known: keys that are known there.
    """
    near = difflib.get_close_matches(str(key), known, n=1)
    remedy = f"; did you mean {near[0]!r}?" if near else f"; known keys: {', '.join(sorted(known))}"
    return ConfigListError(where, f"has an unknown key {key!r}{remedy}")


def check_number(value: object, where: str, rule: str, holds: Callable[[float], bool]) -> None:
    """Raise ConfigListError unless a value is a number for which a rule holds.

    Args:
        value: what the user wrote.
        where: its place.
        rule: the rule in words, such as `in [0, 1]`.
        holds: the rule.

    Raises:
        ConfigListError: it is no number, or breaks the rule.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not holds(value):
        raise ConfigListError(where, f"must be a number {rule}, got {value!r}")


def _ratio(value: object, where: str) -> None:
    check_number(value, where, "in [0, 1]", lambda one: 0 <= one <= 1)


def _largest(value: object, where: str) -> None:
    check_number(value, where, "in (0, 1]", lambda one: 0 < one <= 1)


def _smallest(value: object, where: str) -> None:
    check_number(value, where, "in [0, 1)", lambda one: 0 <= one < 1)


def _threshold(value: object, where: str) -> None:
    check_number(value, where, "that is finite", lambda one: abs(one) < float("inf"))


def _group(value: object, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ConfigListError(where, f"must be an int or a str, got {value!r}")


def _blocks(value: object, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigListError(where, f"must be an int >= 1, got {value!r}")


def check_granularity(value: object, where: str) -> None:
    """Raise ConfigListError unless a value is the name of a granularity or a list of block sizes.

    Args:
        value: what the user wrote.
        where: its place.

    Raises:
        ConfigListError: it is something else.
    """
    sizes = isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0
    if isinstance(value, str) and value in _GRANULARITIES:
        return
    if not sizes or not all(_is_block_size(one) for one in cast("Sequence[object]", value)):
        names = ", ".join(_GRANULARITIES)
        raise ConfigListError(
            where, f"must be one of {names}, or a list of block sizes >= 1 or -1, got {value!r}"
        )


def _is_block_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and (value >= 1 or value == -1)


def check_member(members: Sequence[str], value: object, where: str) -> None:
    """Raise ConfigListError unless a value is one of the allowed strings.

    Args:
        members: the words.
        value: what the user wrote.
        where: its place.

    Raises:
        ConfigListError: it is something else.
    """
    if value not in members:
        raise ConfigListError(where, f"must be one of {', '.join(members)}, got {value!r}")


def _align(value: object, where: str) -> None:
    keys = {field.name for field in fields(Align)}
    if not isinstance(value, Mapping) or not isinstance(value.get("target_name"), str):
        raise ConfigListError(where, f"must be a dict with a str target_name, got {value!r}")
    for key in value:
        if key not in keys:
            raise unknown_key(where, key, keys)
    if not isinstance(value.get("module_name"), str | None):
        raise ConfigListError(where, f"must have a str or None as module_name, got {value!r}")
    dims = value.get("dims", [0])
    if not isinstance(dims, Sequence) or not all(isinstance(dim, int) for dim in dims):
        raise ConfigListError(where, f"must have a list of int as dims, got {value!r}")


_RULES: Final[Mapping[str, Callable[[object, str], None]]] = {
    "sparse_ratio": _ratio,
    "sparse_threshold": _threshold,
    "max_sparse_ratio": _largest,
    "min_sparse_ratio": _smallest,
    "global_group_id": _group,
    "dependency_group_id": _group,
    "internal_metric_block": _blocks,
    "granularity": check_granularity,
    "apply_method": partial(check_member, _APPLY_METHODS),
    "align": _align,
}
