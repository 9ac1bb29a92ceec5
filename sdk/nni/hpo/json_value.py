"""JSON values: their type, and JSON forms of numpy scalars and random generators.

Shared by all families of algorithms; imports nothing of the package.
"""

from random import Random
from typing import Any, TypeAlias

JsonValue: TypeAlias = Any
"""None, bool, int, float, str, or a list or dict of these.

`Any` for the type checker, so that an algorithm may declare the narrower form that it works with;
the receiving function narrows it.
"""


def random_state(rng: Random) -> list[JsonValue]:
    """Return the state of a generator as JSON, for `restore_random`."""
    version, internal, gauss = rng.getstate()
    return [version, list(internal), gauss]


def restore_random(rng: Random, state: list[JsonValue]) -> None:
    """Set the state of `rng` to one that `random_state` returned."""
    version, internal, gauss = state
    rng.setstate((version, tuple(internal), gauss))


def plain_value(value: Any) -> Any:  # noqa: ANN401 - hook of json.dumps
    """Return a numpy scalar or array as plain Python, for `json.dumps(default=...)`; or TypeError.

    Raises:
        TypeError: the value is neither.
    """
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"parameters must be JSON-like, got {type(value).__name__}: {value!r:.80}")
