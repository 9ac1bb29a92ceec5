"""Settings of quantized targets: their keys, ranges and defaults.

A setting is written in an entry of `config_list`, for all targets of the entry or, below
`target_settings`, for one of them. Every error names the entry, the key, the rule and the value.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from types import MappingProxyType
from typing import ClassVar, Final, Literal, cast

from nni.compression.config.settings import (
    ConfigListError,
    Granularity,
    check_granularity,
    check_member,
    unknown_key,
)

QuantScheme = Literal["affine", "symmetric"]
QuantApplyMethod = Literal["bypass", "clamp_round", "qat_clamp_round"]

FIRST_INPUT: Final = "_input_0"
"""Target of the first argument of a module."""
FIRST_OUTPUT: Final = "_output_0"
"""Target of the output of a module, or of its first part."""

_SCHEMES: Final = ("affine", "symmetric")
_APPLY_METHODS: Final = ("bypass", "clamp_round", "qat_clamp_round")
_DTYPE: Final = re.compile(r"(u?)int([1-9][0-9]?)")
_MOST_BITS: Final = 32


@dataclass(frozen=True, slots=True)
class QuantizationSettings:
    """Settings of a quantized target: integer type, scheme, granularity, method, first step."""

    quant_dtype: str = "int8"
    """Integer type: `int` or `uint` and the number of bits, from 1 to 32."""
    quant_scheme: QuantScheme = "symmetric"
    """`symmetric`: the range of values is widened to be symmetric around 0; `affine`: it is not."""
    granularity: Granularity = "default"
    """What shares a scale. `default`: the whole tensor; a parameter: `out_channel`, `in_channel`;
    an input or output: `per_channel`, which is dimension 1; or block sizes."""
    apply_method: QuantApplyMethod | None = None
    """`clamp_round`: the gradient passes everywhere; `qat_clamp_round`: not where a value is out of
    range; `bypass`: the range is observed, the target is left as it is; None: the algorithm's."""
    quant_start_step: int | None = None
    """Optimizer step from which on the target is quantized, >= 0; None: that of the quantizer."""

    @property
    def bits(self) -> int:
        """Return the number of bits.

        Examples:
            >>> QuantizationSettings(quant_dtype="uint4").bits
            4
        """
        return int(self.quant_dtype.lstrip("uint"))

    @property
    def signed(self) -> bool:
        """Return whether the integers have a sign."""
        return not self.quant_dtype.startswith("u")


QUANTIZATION_KEYS: Final = tuple(field.name for field in fields(QuantizationSettings))
"""Keys of settings in an entry."""


class QuantizationSetting:
    """Registry of a module type's default targets, with the defaults of their settings.

    Examples:
        >>> QuantizationSetting.register("RMSNorm", {"_output_0": {"quant_scheme": "affine"}})
        >>> list(QuantizationSetting.of("RMSNorm", {"weight"}))
        ['_output_0']
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
            >>> QuantizationSetting.register("MyLinear", {"weight": {"quant_dtype": "int4"}})
        """
        for target, values in setting.items():
            check_quantization(values, f"QuantizationSetting {name!r} target {target!r}")
        targets = {canonical_target(target): dict(values) for target, values in setting.items()}
        cls._registered[name] = MappingProxyType(targets)

    @classmethod
    def of(cls, name: str, parameters: Collection[str]) -> Mapping[str, Mapping[str, object]]:
        """Return a module type's registered default targets; else those that fit its parameters.

        Args:
            name: class name of the module type.
            parameters: names of the parameters of the module.

        Returns:
            Settings by target name. If none are registered: input, weight and output of a module
            with a weight, without the input if it is an embedding; the output of any other module.

        Examples:
            >>> list(QuantizationSetting.of("Conv2d", {"weight", "bias"}))
            ['_input_0', 'weight', '_output_0']
            >>> list(QuantizationSetting.of("ReLU", ()))
            ['_output_0']
        """
        if name in cls._registered:
            return cls._registered[name]
        if "weight" not in parameters:
            return {FIRST_OUTPUT: {}}
        if name in {"Embedding", "EmbeddingBag"}:
            return {"weight": {}, FIRST_OUTPUT: {}}
        return {FIRST_INPUT: {}, "weight": {}, FIRST_OUTPUT: {}}


def canonical_target(target: str) -> str:
    """Return the name of a target with the position that `_input_` and `_output_` represent.

    Examples:
        >>> canonical_target("_input_")
        '_input_0'
    """
    return f"{target}0" if target in {"_input_", "_output_"} else target


def quantization_from(values: Mapping[str, object]) -> QuantizationSettings:
    """Convert checked settings to `QuantizationSettings`; None and missing get defaults.

    Args:
        values: settings by key, which `check_quantization` accepts.

    Returns:
        The settings; keys that are missing or None have their defaults.

    Examples:
        >>> quantization_from({"quant_dtype": "int4", "granularity": [4, -1]}).granularity
        (4, -1)
    """
    given = {key: value for key, value in values.items() if value is not None}
    sizes = given.get("granularity")
    if isinstance(sizes, Sequence) and not isinstance(sizes, str):
        given["granularity"] = tuple(cast("Sequence[int]", sizes))
    return QuantizationSettings(**given)  # type: ignore[arg-type]  # they have been checked


def check_quantization(values: Mapping[str, object], where: str) -> None:
    """Raise ConfigListError unless all keys are settings and their values are in range.

    Args:
        values: settings by key; None stands for the default.
        where: place of the settings, for errors.

    Raises:
        ConfigListError: a key or value is wrong.
    """
    for key, value in values.items():
        if key not in QUANTIZATION_KEYS:
            raise unknown_key(where, key, QUANTIZATION_KEYS)
        if value is not None:
            _RULES[key](value, f"{where}.{key}")


def _dtype(value: object, where: str) -> None:
    match = _DTYPE.fullmatch(value) if isinstance(value, str) else None
    if match is None or int(match[2]) > _MOST_BITS:
        raise ConfigListError(
            where,
            f"must be int or uint and a number of bits up to {_MOST_BITS}, such as 'int8' or "
            f"'uint4', got {value!r}",
        )


def check_start_step(value: object, where: str) -> None:
    """Raise ConfigListError unless a value is an int >= 0 and no bool.

    Args:
        value: what the user wrote.
        where: its place.

    Raises:
        ConfigListError: it is no int >= 0.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ConfigListError(where, f"must be an int >= 0, got {value!r}")


_RULES: Final[Mapping[str, Callable[[object, str], None]]] = {
    "quant_dtype": _dtype,
    "quant_scheme": partial(check_member, _SCHEMES),
    "granularity": check_granularity,
    "apply_method": partial(check_member, _APPLY_METHODS),
    "quant_start_step": check_start_step,
}
