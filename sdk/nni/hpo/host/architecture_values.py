"""Choices of model spaces as hyperparameters, so that their importance can be measured.

The search space of an architecture search has a `kind` in each entry, and its trials have the
choices of a model under `sample`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

_SAMPLE: Final = "sample"
_NUMBERS: Final = ("uniform", "normal")
"""Ends of the types of numbers that tuners know, too."""


def is_architecture_space(search_space: object) -> bool:
    """Return whether any entry of a mapping has `kind`, as in spaces of architecture search."""
    return isinstance(search_space, Mapping) and any(
        isinstance(entry, Mapping) and "kind" in entry for entry in search_space.values()
    )


def as_hyperparameters(
    search_space: Mapping[str, Any], trials: Sequence[tuple[Any, Any]]
) -> tuple[dict[str, Any], list[tuple[dict[str, Any], Any]]]:
    """Return an architecture search's space and trials as a tuner's; unknown ones are left out.

    A candidate is named by its JSON text. A choice of several inputs is one of yes and no for each.
    Dimensions of other kinds, and trials whose model is not known, are left out.

    Args:
        search_space: entries with `kind`, by label.
        trials: pairs of parameters and metric.
    """
    space: dict[str, Any] = {}
    for label, entry in search_space.items():
        values, kind = entry["_value"], str(entry["_type"])
        if kind == "choice":
            space[label] = {"_type": "choice", "_value": [json.dumps(one) for one in values]}
        elif kind == "subset":
            for value in values:
                space[f"{label}/{value}"] = {"_type": "choice", "_value": ["no", "yes"]}
        elif kind.endswith(_NUMBERS):
            space[label] = {"_type": kind, "_value": values}
    found = []
    for parameters, metric in trials:
        sample = parameters.get(_SAMPLE) if isinstance(parameters, Mapping) else None
        if isinstance(sample, Mapping) and sample.keys() >= search_space.keys():
            found.append((_hyperparameters(search_space, sample), metric))
    return space, found


def _hyperparameters(search_space: Mapping[str, Any], sample: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for label, entry in search_space.items():
        kind = str(entry["_type"])
        if kind == "choice":
            made[label] = json.dumps(sample[label])
        elif kind == "subset":
            for value in entry["_value"]:
                made[f"{label}/{value}"] = "yes" if value in sample[label] else "no"
        elif kind.endswith(_NUMBERS):
            made[label] = sample[label]
    return made
