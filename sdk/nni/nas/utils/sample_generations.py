"""Translation of samples between the formats of NNI 2.x and of today: `convert_sample`.

NNI 2.x joined the labels of cells by `__`, counted their nodes from 0, named listed candidates by
strings and wrote one chosen input as a number.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from nni.mutable import Categorical, CategoricalMultiple, LabeledMutable

__all__ = ["convert_sample"]

Generation = Literal["gen2", "gen3"]

_CELL: Final = re.compile(r"(?P<cell>.+)/(?P<kind>op|input)_(?P<node>\d+)_(?P<operator>\d+)")
_EDGE: Final = re.compile(r"(?P<cell>.+)/(?P<at>\d+)_(?P<to>\d+)")
_ACTIVATION: Final = re.compile(r"(?P<cell>.+)/(?P<function>(unary|binary)_\d+)")


class SampledSpace(Protocol):
    """Interface of spaces whose samples are translated: a `ModelSpace`, for example."""

    def simplify(self) -> Mapping[str, LabeledMutable]:
        """Return the leaves by label."""
        ...


@dataclass(frozen=True, slots=True)
class Translation:
    """Label and values of one leaf in the format of NNI 2.x."""

    label: str
    """Label in NNI 2.x."""
    old_values: Mapping[int, Any] | None = None
    """Value in NNI 2.x by the position of the present one; None: both are the same."""
    is_single: bool = False
    """Whether a list of one value is the value alone in NNI 2.x."""

    def to_old(self, value: Any, leaf: LabeledMutable) -> Any:  # noqa: ANN401 - any value
        """Return a present value in the format of NNI 2.x."""
        if self.is_single:
            return value[0] if isinstance(value, list) and len(value) == 1 else value
        if self.old_values is None:
            return value
        assert isinstance(leaf, Categorical)
        return self.old_values[list(leaf.values).index(value)]

    def to_new(self, value: Any, leaf: LabeledMutable) -> Any:  # noqa: ANN401 - any value
        """Return a value of NNI 2.x in the current format; an integer is a position, too."""
        if self.is_single:
            return value if isinstance(value, list) else [value]
        if self.old_values is None:
            return value
        assert isinstance(leaf, Categorical)
        positions = {str(old): position for position, old in self.old_values.items()}
        return list(leaf.values)[positions[str(value)]] if str(value) in positions else value


def convert_sample(
    sample: Mapping[str, Any],
    space: SampledSpace,
    to: Generation,
) -> dict[str, Any]:
    """Return a sample in the format of another generation of NNI.

    Args:
        sample: value of each label; labels that the space does not have stay as they are.
        space: the space, with the labels of today.
        to: `gen2` for the format of NNI 2.x, `gen3` for that of today and NNI 3.0.

    Returns:
        A new dict.

    Raises:
        ValueError: `to` is neither.

    Examples:
        >>> from torch import nn
        >>> from nni.nas.nn.pytorch import InputChoice, LayerChoice, ModelSpace
        >>> class Net(ModelSpace):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = LayerChoice([nn.ReLU(), nn.Tanh()], label="layer")
        ...         self.skip = InputChoice(2, label="skip")
        >>> old = convert_sample({"layer": 1, "skip": [0]}, Net(), "gen2")
        >>> old
        {'layer': '1', 'skip': 0}
        >>> convert_sample(old, Net(), "gen3")
        {'layer': 1, 'skip': [0]}
    """
    if to not in {"gen2", "gen3"}:
        raise ValueError(f"to must be 'gen2' or 'gen3', got {to!r}")
    leaves = {str(label): leaf for label, leaf in space.simplify().items()}
    known = translations(space, leaves)
    if to == "gen2":
        return {
            known[label].label if label in known else label: (
                known[label].to_old(value, leaves[label]) if label in known else value
            )
            for label, value in ((str(key), value) for key, value in sample.items())
        }
    present = {one.label: label for label, one in known.items()}
    return {
        present.get(label, label): (
            known[present[label]].to_new(value, leaves[present[label]])
            if label in present
            else value
        )
        for label, value in ((str(key), value) for key, value in sample.items())
    }


def translations(
    space: SampledSpace, leaves: Mapping[str, LabeledMutable]
) -> dict[str, Translation]:
    """Return the translation of each leaf of a space to the format of NNI 2.x, by label.

    Args:
        space: the space.
        leaves: its leaves by label.

    Returns:
        Translations by the label of today.
    """
    firsts = _first_nodes(leaves)
    listed = set(_listed_choices(space))
    return {label: _translation(label, leaf, firsts, listed) for label, leaf in leaves.items()}


def _translation(
    label: str, leaf: LabeledMutable, firsts: Mapping[str, int], listed: set[str]
) -> Translation:
    is_single = isinstance(leaf, CategoricalMultiple) and leaf.n_chosen == 1
    old_values = None
    if isinstance(leaf, Categorical) and label in listed:
        old_values = {position: str(position) for position in range(len(leaf.values))}
    if found := _CELL.fullmatch(label):
        node = int(found["node"]) - firsts[found["cell"]]
        old = f"{found['cell']}__{found['kind']}_{node}_{found['operator']}"
        return Translation(old, old_values, is_single)
    if found := _EDGE.fullmatch(label):
        return Translation(f"{found['cell']}__{found['at']}_{found['to']}", old_values)
    if (found := _ACTIVATION.fullmatch(label)) and isinstance(leaf, Categorical):
        positions = {position: str(position) for position in range(len(leaf.values))}
        return Translation(f"{found['cell']}__{found['function']}", positions)
    return Translation(label, old_values, is_single)


def _first_nodes(leaves: Iterable[str]) -> dict[str, int]:
    """Return the least index of a node by cell: nodes are counted from the predecessors."""
    firsts: dict[str, int] = {}
    for found in filter(None, map(_CELL.fullmatch, leaves)):
        cell, node = found["cell"], int(found["node"])
        firsts[cell] = min(node, firsts.get(cell, node))
    return firsts


def _listed_choices(space: SampledSpace) -> Iterable[str]:
    """Yield the labels of layer choices whose candidates were given as a list."""
    modules: Callable[[], Iterable[Any]] = getattr(space, "modules", list)
    for module in modules():
        if hasattr(module, "names") and isinstance(getattr(module, "candidates", None), list):
            yield str(module.label)
