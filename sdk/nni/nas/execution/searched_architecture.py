"""Architecture in the result of a trial that is a whole search, in plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nni.mutable import Categorical, CategoricalMultiple, LabeledMutable, Sample
from nni.nas.execution.search_space import readable

ARCHITECTURE: Final = "architecture"
"""Entry of the result: the choices by label, as parameters of other trials show them."""
_DEFAULT: Final = "default"


def architecture_result(metric: object, sample: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a trial's result: its metrics, `default` 0 if missing, and the shown sample.

    Args:
        metric: number, or a dict with `default`; None: 0 stands for it, since a trial with one
            architecture compares it with no other.
        sample: the architecture.

    Examples:
        >>> architecture_result(0.5, {"width": 8})
        {'default': 0.5, 'architecture': {'width': 8}}
    """
    measured = dict(metric) if isinstance(metric, Mapping) else {_DEFAULT: metric}
    if measured.get(_DEFAULT) is None:
        measured[_DEFAULT] = 0.0
    shown = {str(label): readable(value) for label, value in sample.items()}
    return {**measured, ARCHITECTURE: shown}


def architecture_of(result: object, leaves: Mapping[str, LabeledMutable]) -> Sample | None:
    """Convert a result's architecture to a sample of a space; None without one; raise if not in it.

    Args:
        result: what `architecture_result` returned, after a way through JSON.
        leaves: the space, as `simplify` returns it.

    Raises:
        ValueError: the architecture is none of this space.

    Examples:
        >>> leaf = Categorical([(1, 2), (3, 4)], label="a")
        >>> architecture_of({"default": 0.5, "architecture": {"a": [3, 4]}}, {"a": leaf})
        {'a': (3, 4)}
    """
    shown = result.get(ARCHITECTURE) if isinstance(result, Mapping) else None
    if not isinstance(shown, Mapping):
        return None
    unknown = sorted({*shown} ^ {*map(str, leaves)})
    if unknown:
        raise ValueError(
            f"the architecture must have the labels of the space, differs in {unknown[0]!r}"
        )
    return {str(label): _chosen(leaf, shown[str(label)]) for label, leaf in leaves.items()}


def _chosen(leaf: LabeledMutable, shown: Any) -> object:  # noqa: ANN401 - any JSON value
    match leaf:
        case Categorical():
            return _same(leaf, leaf.values, shown)
        case CategoricalMultiple():
            return [_same(leaf, leaf.values, one) for one in shown]
    return shown


def _same(leaf: LabeledMutable, values: Any, shown: object) -> object:  # noqa: ANN401 - of the user
    for value in values:
        if readable(value) == shown:
            return value
    raise ValueError(f"the architecture must choose one of {leaf.label!r}, got {shown!r:.100}")
