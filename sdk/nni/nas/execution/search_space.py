"""Search space of a model space in the JSON form of experiments, for the page and the REST API."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from nni.mutable import (
    Categorical,
    CategoricalMultiple,
    LabeledMutable,
    Mutable,
    MutableAnnotation,
    Numerical,
)

_logger = logging.getLogger(__name__)

LABELS_LIMIT: Final = 2_000
"""Number of dimensions that are described; a space of more is cut off."""
VALUES_LIMIT: Final = 200
"""Number of values of one dimension that are described."""
_TEXT_LIMIT: Final = 80
"""Length of the text of one value, or of one candidate."""


def search_space_of(
    model_space: object, leaves: Mapping[str, LabeledMutable] | None = None
) -> dict[str, Any]:
    """Return a model space's dimensions by label, for display, at most 2,000 with short texts.

    Each label has an entry with `_type` and `_value`, as in the spaces of hyperparameter tuning.
    `kind` tells what is chosen: `layer`, `inputs`, `depth`, `value`, `number` or `other`. A layer
    has `candidates` with a text for each value. A dimension inside a candidate of one layer choice
    has `inside`: the label of the choice, and its value. A dimension with too many values has their
    number as `size`. Constraints have no value, and no entry.

    Args:
        model_space: network with its choices.
        leaves: its dimensions, as `simplify` returns them, with those of an evaluator; None for
            those of the space alone.

    Returns:
        Entries by label, at most 2,000, each with at most 200 values of at most 80 characters.

    Examples:
        >>> from nni.mutable import Categorical, MutableDict
        >>> search_space_of(MutableDict({"width": Categorical([8, 16], label="width")}))
        {'width': {'_type': 'choice', '_value': [8, 16], 'kind': 'value'}}
    """
    if leaves is None:
        leaves = model_space.simplify() if isinstance(model_space, Mutable) else {}
    shown = {
        str(label): leaf
        for label, leaf in leaves.items()
        if not isinstance(leaf, MutableAnnotation)
    }
    if len(shown) > LABELS_LIMIT:
        _logger.warning(
            "the page shows %d of the %d dimensions of the model space", LABELS_LIMIT, len(shown)
        )
    layers = _Layers()
    for module in _children(model_space):
        layers.visit(module, None)
    return {
        label: _entry(leaf) | layers.details(label)
        for label, leaf in list(shown.items())[:LABELS_LIMIT]
    }


def readable(value: object) -> object:
    """Return a choice for the page: plain values, lists of them, else its text; long ones are cut.

    Args:
        value: of a sample.

    Returns:
        A JSON value: numbers are finite, texts have at most 80 characters, lists 200 values.
    """
    if isinstance(value, list | tuple):
        return [readable(one) for one in value[:VALUES_LIMIT]]
    if isinstance(value, bool | int | type(None)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    text = value if isinstance(value, str) else repr(value)
    return cut_text(text)


def cut_text(text: str) -> str:
    """Return a text of at most 80 characters: a longer one is cut."""
    return text if len(text) <= _TEXT_LIMIT else f"{text[: _TEXT_LIMIT - 1]}…"


def _entry(leaf: LabeledMutable) -> dict[str, Any]:
    match leaf:
        case Categorical():
            return {"_type": "choice", **_values(leaf.values), "kind": "value"}
        case CategoricalMultiple():
            chosen = {} if leaf.n_chosen is None else {"chosen": leaf.n_chosen}
            return {"_type": "subset", **_values(leaf.values), "kind": "inputs", **chosen}
        case Numerical():
            return {**_number(leaf), "kind": "number"}
    return {"_type": "other", "_value": [one_line(leaf)], "kind": "other"}


def _values(values: list[Any]) -> dict[str, Any]:
    found = {"_value": [readable(value) for value in values[:VALUES_LIMIT]]}
    return found if len(values) <= VALUES_LIMIT else {**found, "size": len(values)}


def _number(leaf: Numerical) -> dict[str, Any]:
    step = [] if leaf.quantize is None else [leaf.quantize]
    log = "log" if leaf.log_distributed else ""
    name = f"q{log}" if step else log
    if leaf.distribution is None and leaf.mu is None:
        return {"_type": f"{name}uniform", "_value": [leaf.low, leaf.high, *step]}
    if leaf.distribution is None and not math.isfinite(leaf.low) and not math.isfinite(leaf.high):
        return {"_type": f"{name}normal", "_value": [leaf.mu, leaf.sigma, *step]}
    return {"_type": "distribution", "_value": [one_line(leaf)]}


@dataclass(frozen=True, slots=True)
class _Place:
    """Candidate of a layer choice: label of the choice, and name of the candidate."""

    label: str
    value: object


class _Layers:
    """Layer choices of a network, and the dimensions inside their candidates."""

    def __init__(self) -> None:
        self._details: dict[str, dict[str, Any]] = {}
        self._places: dict[str, set[_Place | None]] = {}

    def details(self, label: str) -> dict[str, Any]:
        """Return a dimension's details, with the candidate layer that it is in if just one."""
        found = dict(self._details.get(label, {}))
        places = self._places.get(label, set())
        if len(places) == 1 and None not in places:
            (place,) = places
            assert place is not None
            found["inside"] = {"label": place.label, "value": place.value}
        return found

    def visit(self, module: Any, place: _Place | None) -> None:  # noqa: ANN401 - a module of torch
        """Record the choices of a module and of those inside, with the candidate they are in."""
        from nni.nas.nn.pytorch import LayerChoice, Repeat  # here: this module has no need of torch

        if isinstance(module, LayerChoice):
            self._add(module.label, place, _layer(module))
            for name in module.names[:VALUES_LIMIT]:
                self.visit(module[name], _Place(str(module.label), name))
            return
        if isinstance(module, Repeat) and isinstance(module.depth_choice, Categorical):
            self._add(module.depth_choice.label, place, {"kind": "depth"})
        elif isinstance(module, Mutable):
            for mutable in getattr(module, "mutables", ()):
                for label in mutable.simplify():
                    self._add(label, place, {})
        for child in _children(module):
            self.visit(child, place)

    def _add(self, label: str, place: _Place | None, details: dict[str, Any]) -> None:
        self._details.setdefault(str(label), {}).update(details)
        self._places.setdefault(str(label), set()).add(place)


def _layer(choice: Any) -> dict[str, Any]:  # noqa: ANN401 - a LayerChoice
    texts = [one_line(choice[name]) for name in choice.names[:VALUES_LIMIT]]
    return {"kind": "layer", "candidates": texts}


def _children(module: Any) -> Iterator[Any]:  # noqa: ANN401 - anything
    """Yield the child modules of a torch module; nothing for any other object."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(module, torch.nn.Module):
        yield from module.children()


def one_line(value: object) -> str:
    """Return an object's one-line repr; if that is long its class, with its children's if short."""
    text = repr(value)
    if "\n" not in text and len(text) <= _TEXT_LIMIT:
        return text
    name = type(value).__name__
    inside = ", ".join(type(child).__name__ for child in _children(value))
    return f"{name}({inside})" if 0 < len(inside) <= _TEXT_LIMIT - len(name) - 2 else name
