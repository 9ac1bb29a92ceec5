"""Features that can be generated from the columns of a table, and the space to search them in.

A specification names the columns that each operation takes: one list for an operation on one
column, two lists, of which all pairs are formed, for an operation on two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, get_args

from nni.feature_engineering._operations import Operation, Statistic

__all__ = ["GeneratedFeature", "candidate_features", "candidate_space", "chosen_features"]

OPERATIONS: Final[Mapping[str, int]] = {
    "count": 1,
    "target": 1,
    "crosscount": 2,
    "aggregate": 2,
    "nunique": 2,
    "histstat": 1,
}
"""Operations, and the number of columns that each takes."""
WITH_STATISTIC: Final = ("aggregate", "histstat")
STATISTICS: Final[tuple[Statistic, ...]] = get_args(Statistic)


@dataclass(frozen=True, slots=True)
class GeneratedFeature:
    """Specification of a column computed from others: operation, columns, statistic.

    Raises:
        ValueError: the operation does not take these columns, or this statistic.

    Examples:
        >>> GeneratedFeature("aggregate", ("I1", "C1"), "mean").name
        'aggregate_mean_I1_C1'
    """

    operation: Operation
    """count: frequency of a category. target: mean target of a category. crosscount: frequency of
    the values of two columns together. aggregate: statistic of a number within each category.
    nunique: distinct values of the first column for each value of the second. histstat: statistic
    of the numbers in a value's bucket."""
    columns: tuple[str, ...]
    """Columns it is computed from: the number before the category, in `aggregate`."""
    statistic: Statistic | None = None
    """Statistic, in `aggregate` and `histstat` only."""

    def __post_init__(self) -> None:
        """Raise ValueError unless the operation takes these columns and this statistic."""
        if self.operation not in OPERATIONS:
            known = ", ".join(OPERATIONS)
            raise ValueError(f"operation must be one of {known}, got {self.operation!r}")
        if len(self.columns) != OPERATIONS[self.operation]:
            raise ValueError(
                f"{self.operation} takes {OPERATIONS[self.operation]} columns, got {self.columns}"
            )
        if self.operation in WITH_STATISTIC:
            if self.statistic not in STATISTICS:
                known = ", ".join(STATISTICS)
                raise ValueError(f"statistic must be one of {known}, got {self.statistic!r}")
        elif self.statistic is not None:
            raise ValueError(f"{self.operation} has no statistic, got {self.statistic!r}")

    @property
    def name(self) -> str:
        """Name of the generated column: operation, statistic if any, columns, joined by `_`."""
        statistic = (self.statistic,) if self.statistic else ()
        return "_".join((self.operation, *statistic, *self.columns))


def candidate_features(specification: Mapping[str, Sequence[object]]) -> list[GeneratedFeature]:
    """Return the distinct features that a specification of columns by operation describes.

    Args:
        specification: columns by operation. `count`, `target` and `histstat` take a list of
            columns; `crosscount`, `aggregate` and `nunique` take two lists, of which all pairs of
            different columns are formed, and of `crosscount` each pair once.

    Returns:
        Features in the order of the specification; `aggregate` and `histstat` have one for each of
        min, max, mean, var and median.

    Raises:
        ValueError: an operation is not known, or has no such lists.

    Examples:
        >>> columns = ["C1", "C2"]
        >>> found = candidate_features({"count": ["C1"], "crosscount": [columns, columns]})
        >>> [feature.name for feature in found]
        ['count_C1', 'crosscount_C1_C2']
    """
    found: dict[str, GeneratedFeature] = {}
    for operation, columns in specification.items():
        for feature in _features(operation, columns):
            found.setdefault(feature.name, feature)
    return list(found.values())


def candidate_space(specification: Mapping[str, Sequence[object]]) -> dict[str, dict[str, object]]:
    """Return a search space with a choice of False or True for each candidate feature.

    Args:
        specification: columns by operation, as for `candidate_features`.

    Returns:
        Search space of an experiment, by the names of the features.

    Examples:
        >>> candidate_space({"count": ["C1"]})
        {'count_C1': {'_type': 'choice', '_value': [False, True]}}
    """
    return {
        feature.name: {"_type": "choice", "_value": [False, True]}
        for feature in candidate_features(specification)
    }


def chosen_features(
    specification: Mapping[str, Sequence[object]], parameters: Mapping[str, object]
) -> list[GeneratedFeature]:
    """Return the features that a trial's parameters choose.

    Args:
        specification: columns by operation, that of `candidate_space`.
        parameters: parameters of the trial; others than candidates are ignored.

    Returns:
        Candidates whose parameter is true.

    Examples:
        >>> chosen = chosen_features({"count": ["C1", "C2"]}, {"count_C2": True, "depth": 3})
        >>> [feature.name for feature in chosen]
        ['count_C2']
    """
    return [one for one in candidate_features(specification) if parameters.get(one.name)]


def _features(operation: str, columns: Sequence[object]) -> Iterator[GeneratedFeature]:
    """Yield an operation's features: each combination of columns with each statistic."""
    known: dict[str, Operation] = {name: name for name in get_args(Operation)}
    if operation not in known:
        raise ValueError(f"operation must be one of {', '.join(known)}, got {operation!r}")
    statistics = STATISTICS if operation in WITH_STATISTIC else (None,)
    for names in _combinations(operation, columns):
        for statistic in statistics:
            yield GeneratedFeature(known[operation], names, statistic)


def _combinations(operation: str, columns: Sequence[object]) -> Iterator[tuple[str, ...]]:
    """Yield the columns of an operation's features: single columns, or pairs of different ones."""
    if OPERATIONS[operation] == 1:
        for name in _names(operation, columns):
            yield (name,)
        return
    if len(columns) != OPERATIONS[operation]:
        raise ValueError(f"{operation} takes two lists of columns, got {columns!r}")
    first, second = (_names(operation, one) for one in columns)
    seen: set[frozenset[str]] = set()
    for one in first:
        for other in second:
            pair = frozenset((one, other))
            if one == other or (operation == "crosscount" and pair in seen):
                continue
            seen.add(pair)
            yield (one, other)


def _names(operation: str, names: object) -> list[str]:
    """Return names of columns as a list; raise ValueError unless they are a sequence of strings.

    Raises:
        ValueError: it is something else.
    """
    if isinstance(names, Sequence) and not isinstance(names, str):
        found = [name for name in names if isinstance(name, str)]
        if len(found) == len(names):
            return found
    raise ValueError(f"{operation} takes a list of names of columns, got {names!r}")
