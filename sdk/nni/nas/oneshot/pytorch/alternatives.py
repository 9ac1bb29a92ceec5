"""Values among which a search decides at one label."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from nni.mutable import Categorical, CategoricalMultiple, LabeledMutable, Sample

COMBINATIONS = 10_000
"""Limit of the combinations of values that one layer or one term may depend on."""


def alternatives(leaf: LabeledMutable) -> list[Any]:
    """Return the values of a leaf that is a choice among values; raise TypeError for others.

    Args:
        leaf: dimension of the space.

    Returns:
        Values of a `Categorical`; candidates of a `CategoricalMultiple`, of which the search may
        take several.

    Raises:
        TypeError: the leaf is of another type.

    Examples:
        >>> from nni.mutable import Categorical
        >>> alternatives(Categorical([3, 5], label="kernel"))
        [3, 5]
    """
    if isinstance(leaf, Categorical | CategoricalMultiple):
        return list(leaf.values)
    raise TypeError(
        f"{leaf.label!r} must be a choice among values for this strategy, got {leaf!r}; replace it "
        "by nni.choice(label, [...])"
    )


def combinations(leaves: Iterable[LabeledMutable]) -> Iterator[Sample]:
    """Yield every sample of some choices, the last one fastest; raise if they are too many.

    Args:
        leaves: choices of one value.

    Yields:
        New samples.

    Raises:
        TypeError: a leaf is no choice among values.
        ValueError: there are more than `COMBINATIONS`.
    """
    values: Mapping[str, list[Any]] = {
        leaf.label: [[one] for one in alternatives(leaf)]
        if isinstance(leaf, CategoricalMultiple)
        else alternatives(leaf)
        for leaf in leaves
    }
    number = 1
    for found in values.values():
        number *= len(found)
    if number > COMBINATIONS:
        raise ValueError(
            f"one layer or term must depend on at most {COMBINATIONS} combinations of values, got "
            f"{number} of {len(values)} labels such as {next(iter(values))!r}; use fewer labels or "
            "fewer values"
        )
    for chosen in itertools.product(*values.values()):
        yield dict(zip(values, chosen, strict=True))
