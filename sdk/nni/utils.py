"""The documented home of `merge_parameter`, and of what tuners written for NNI 2.x import.

The name of this module is part of the public API.
"""

from __future__ import annotations

from enum import Enum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Mapping
    from typing import Any, TypeVar

    from nni.hpo.registry.validation import ClassArgsValidator

    Base = TypeVar("Base", bound=Namespace | dict[str, Any])

__all__ = [
    "ClassArgsValidator",
    "OptimizeMode",
    "extract_scalar_history",
    "extract_scalar_reward",
    "merge_parameter",
]


def __getattr__(name: str) -> object:
    """Import `ClassArgsValidator` from its home at first use, which trials do not need."""
    if name != "ClassArgsValidator":
        raise AttributeError(f"module 'nni.utils' has no attribute {name!r}")
    from nni.hpo.registry.validation import ClassArgsValidator

    return ClassArgsValidator


class OptimizeMode(Enum):
    """Direction in which a metric improves; the values of the argument `optimize_mode`."""

    Minimize = "minimize"
    Maximize = "maximize"


def extract_scalar_reward(value: object, scalar_key: str = "default") -> float:
    """Return the number in a result, infinite or NaN too; raise RuntimeError if there is none.

    Args:
        value: a number, or a dict that has one.
        scalar_key: where it is in a dict.

    Returns:
        The number as it was reported, infinite or NaN included.

    Raises:
        RuntimeError: there is none.
    """
    from typing import cast

    from nni.hpo.objectives import is_numeric

    found = value.get(scalar_key) if isinstance(value, dict) else value
    if isinstance(found, dict) or not is_numeric(found):
        raise RuntimeError(
            f"a result must be a number, or a dict with a number at {scalar_key!r}; got {value!r}"
        )
    return cast("float", found)


def extract_scalar_history(
    trial_history: Iterable[object], scalar_key: str = "default"
) -> list[float]:
    """Return the numbers in intermediate results, in their order; see `extract_scalar_reward`."""
    return [extract_scalar_reward(value, scalar_key) for value in trial_history]


def merge_parameter(base_params: Base, override_params: Mapping[str, Any] | None) -> Base:
    """Write overrides into parsed arguments, in place; return these; raise if name or type differ.

    Args:
        base_params: the defaults: a namespace of `argparse`, or a dict.
        override_params: new values, as `nni.get_next_parameter` returns them; None changes
            nothing.

    Returns:
        ``base_params`` itself.

    Raises:
        ValueError: a key that the defaults lack, or a value of another type than the default's.
            An int may stand for a float; anything may stand for None. Nothing is changed then.

    Examples:
        >>> import argparse
        >>> import nni
        >>> parser = argparse.ArgumentParser()
        >>> _ = parser.add_argument("--rate", type=float, default=0.1)
        >>> merge_parameter(parser.parse_args([]), nni.get_next_parameter())
        Namespace(rate=0.1)
        >>> merge_parameter(parser.parse_args([]), {"rate": 0.5})
        Namespace(rate=0.5)
    """
    if override_params is None:
        return base_params
    values = base_params if isinstance(base_params, dict) else vars(base_params)
    merged = {key: _checked(key, values, value) for key, value in override_params.items()}
    values.update(merged)
    return base_params


def _checked(key: str, values: Mapping[str, Any], value: object) -> object:
    if key not in values:
        raise ValueError(
            f"parameter {key!r} must be one of the arguments {sorted(values)}; add it to them or "
            "remove it from the search space"
        )
    default = values[key]
    if default is None or type(value) is type(default):
        return value
    if type(default) is float and type(value) is int:
        return value
    raise ValueError(
        f"parameter {key!r} must be {type(default).__name__} like its default {default!r}, got "
        f"{value!r} of type {type(value).__name__}"
    )
