"""Settings of distilled outputs: their keys, ranges and defaults."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast

from nni.compression.config.settings import (
    ConfigListError,
    check_member,
    check_number,
    unknown_key,
)

DistanceName = Literal["mse", "kl"]

AUTO: Final = "auto"
"""Link to the module of the teacher that has the name of the student's."""
DISTILLATION_KEYS: Final = ("lambda", "link", "apply_method")
"""Keys of settings in an entry."""

_DISTANCES: Final = ("mse", "kl")


@dataclass(frozen=True, slots=True)
class DistillationSettings:
    """Settings of one student output: weight (`lambda`), linked teacher modules, distance."""

    weight: float = 1.0
    """Factor of the distance in the loss, >= 0."""
    link: tuple[str, ...] = (AUTO,)
    """Modules of the teacher whose outputs it is compared with."""
    apply_method: DistanceName = "mse"
    """`mse`: mean squared difference; `kl`: divergence of the softmax over the last dimension."""


def check_distillation_settings(values: Mapping[str, object], where: str) -> None:
    """Raise ConfigListError unless all keys are settings and their values are in range.

    Args:
        values: settings by key; None stands for the default.
        where: place of the settings, for errors.

    Raises:
        ConfigListError: a key or value is wrong.
    """
    for key, value in values.items():
        if key not in DISTILLATION_KEYS:
            raise unknown_key(where, key, DISTILLATION_KEYS)
        if value is None:
            continue
        match key:
            case "lambda":
                check_number(
                    value,
                    f"{where}.lambda",
                    "that is finite and >= 0",
                    lambda one: 0 <= one < math.inf,
                )
            case "link":
                _check_link(value, f"{where}.link")
            case _:
                _check_distance(value, f"{where}.apply_method")


def distillation_settings(values: Mapping[str, object]) -> DistillationSettings:
    """Convert checked settings to a `DistillationSettings`, with defaults.

    Args:
        values: settings by key, which `check_distillation_settings` accepts.

    Returns:
        The settings; keys that are missing or None have their defaults.

    Examples:
        >>> distillation_settings({"lambda": 0.5, "link": "fc"})
        DistillationSettings(weight=0.5, link=('fc',), apply_method='mse')
    """
    default = DistillationSettings()
    given = {key: value for key, value in values.items() if value is not None}
    link = given.get("link", default.link)
    return DistillationSettings(
        weight=float(cast("float", given.get("lambda", default.weight))),
        link=(link,) if isinstance(link, str) else tuple(cast("Sequence[str]", link)),
        apply_method=cast("DistanceName", given.get("apply_method", default.apply_method)),
    )


def _check_link(value: object, where: str) -> None:
    listed = isinstance(value, list | tuple) and value and all(isinstance(v, str) for v in value)
    if not isinstance(value, str) and not listed:
        raise ConfigListError(
            where, f"must be 'auto', a module of the teacher or a list of them, got {value!r}"
        )


def _check_distance(value: object, where: str) -> None:
    check_member(_DISTANCES, value, where)
