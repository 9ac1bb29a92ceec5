"""The type of what a user's JSON holds."""

from random import Random
from typing import Any, TypeAlias

JsonValue: TypeAlias = Any
"""None, bool, int, float, str, or a list or dict of these.

Left open to the type checker so that an algorithm may declare the narrower form it works with;
whoever receives one narrows it in the same function.
"""


def random_state(rng: Random) -> list[JsonValue]:
    """Return what `restore_random` needs to make another generator go on alike, as JSON."""
    version, internal, gauss = rng.getstate()
    return [version, list(internal), gauss]


def restore_random(rng: Random, state: list[JsonValue]) -> None:
    """Make `rng` go on where the generator of `random_state` stood."""
    version, internal, gauss = state
    rng.setstate((version, tuple(internal), gauss))


def plain_value(value: Any) -> Any:  # noqa: ANN401 - hook of json.dumps
    """Return the JSON-like value of a numpy scalar or array; for `json.dumps(default=...)`.

    Raises:
        TypeError: it is something else.
    """
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"parameters must be JSON-like, got {type(value).__name__}: {value!r:.80}")
