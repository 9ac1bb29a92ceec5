"""The documented home of `merge_parameter`; the name of this module is part of the public API."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping
    from typing import Any, TypeVar

    Base = TypeVar("Base", bound=Namespace | dict[str, Any])

__all__ = ["merge_parameter"]


def merge_parameter(base_params: Base, override_params: Mapping[str, Any] | None) -> Base:
    """Write overrides into parsed arguments, in place.

    Args:
        base_params: the defaults: a namespace of `argparse`, or a dict.
        override_params: new values, as `nni.get_next_parameter` returns them; None changes
            nothing.

    Returns:
        ``base_params`` itself.

    Raises:
        ValueError: a key that the defaults lack, or a value of another type than the default's.
            An int may stand for a float; anything may stand for None. Nothing is changed then.

    Example:
        ```python
        params = merge_parameter(parser.parse_args(), nni.get_next_parameter())
        ```
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
