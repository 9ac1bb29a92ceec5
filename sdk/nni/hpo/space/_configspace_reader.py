"""Conversion of a `ConfigSpace.ConfigurationSpace` to a search space."""

import math
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any, Final

from nni.hpo.json_value import JsonValue
from nni.hpo.space.constraints import FORBID_KEY
from nni.hpo.space.domains import CONSTRAINTS_KEY
from nni.hpo.space.parser import parse_space

META_KEY: Final = "nni"
"""Key in `meta` of a hyperparameter's original entry."""
_LOGARITHMS: Final = ("lognormal", "qlognormal")
"""Types of entries whose values are logarithms in ConfigSpace."""
_FORBIDDEN: Final = {
    "ForbiddenLessThanClause": "<",
    "ForbiddenLessThanEqualsClause": "<=",
    "ForbiddenGreaterThanClause": ">",
    "ForbiddenGreaterThanEqualsClause": ">=",
    "ForbiddenLessThanRelation": "<",
    "ForbiddenLessThanEqualsRelation": "<=",
    "ForbiddenEqualsRelation": "==",
    "ForbiddenGreaterThanRelation": ">",
    "ForbiddenGreaterThanEqualsRelation": ">=",
}


def from_configspace(space: Any) -> dict[str, JsonValue]:  # noqa: ANN401 - ships no types
    """Convert a ConfigSpace to a search space in JSON; ValueError where it has no equivalent.

    A hyperparameter that depends on a categorical one becomes part of the branches in which it is
    active.

    Args:
        space: a `ConfigSpace.ConfigurationSpace`.

    Returns:
        The search space in JSON.

    Raises:
        ValueError: a hyperparameter, condition or clause has no equivalent; the message names it.

    Examples:
        >>> from ConfigSpace import ConfigurationSpace
        >>> from nni.hpo.space.configspace import from_configspace
        >>> from_configspace(ConfigurationSpace({"rate": (0.1, 1.0)}))
        {'rate': {'_type': 'uniform', '_value': [0.1, 1.0]}}
    """
    reader = _Reader(space)
    entries = reader.level(reader.roots())
    constraints = list(reader.constraints())
    if constraints:
        entries[CONSTRAINTS_KEY] = constraints
    parse_space(entries)
    return entries


class _Reader:
    """Converter of a ConfigSpace to JSON: hyperparameters, conditions and forbidden clauses."""

    def __init__(self, space: Any) -> None:  # noqa: ANN401 - ships no types
        self._space = space
        self._activation: dict[str, tuple[str, tuple[JsonValue, ...]]] = {}
        for condition in space.conditions:
            self._read_condition(condition)

    def _read_condition(self, condition: Any) -> None:  # noqa: ANN401 - ships no types
        kind = type(condition).__name__
        if kind == "EqualsCondition":
            values = (_plain(condition.value),)
        elif kind == "InCondition":
            values = tuple(map(_plain, condition.values))
        else:
            raise ValueError(
                f"condition {condition} has no form in a search space: it must ask for values of "
                "one categorical hyperparameter"
            )
        child, parent = condition.child.name, condition.parent
        if type(parent).__name__ != "CategoricalHyperparameter" or child in self._activation:
            raise ValueError(
                f"condition {condition} has no form in a search space: a hyperparameter may "
                "depend on one categorical hyperparameter"
            )
        self._activation[child] = (parent.name, values)

    def roots(self) -> list[str]:
        """Return the names of the hyperparameters without a condition."""
        return [name for name in self._space if name not in self._activation]

    def level(self, names: Iterable[str]) -> dict[str, JsonValue]:
        """Return search-space entries by key; hyperparameters that depend on them are nested."""
        return {self._key(name): self._entry(name) for name in names}

    def _key(self, name: str) -> str:
        meta = self._space[name].meta or {}
        return str(meta[META_KEY]["key"]) if META_KEY in meta else name

    def _entry(self, name: str) -> JsonValue:
        hyperparameter = self._space[name]
        meta = hyperparameter.meta or {}
        if META_KEY in meta:
            return meta[META_KEY]["entry"]
        kind = type(hyperparameter).__name__
        if kind == "CategoricalHyperparameter":
            options = [self._option(name, _plain(value)) for value in hyperparameter.choices]
            return {"_type": "choice", "_value": options}
        if kind == "OrdinalHyperparameter":
            return {"_type": "choice", "_value": list(map(_plain, hyperparameter.sequence))}
        if kind == "Constant":
            return {"_type": "choice", "_value": [_plain(hyperparameter.value)]}
        return _numbers(hyperparameter, kind)

    def _option(self, name: str, value: JsonValue) -> JsonValue:
        children = [
            child
            for child, (parent, values) in self._activation.items()
            if parent == name and value in values
        ]
        return {"_name": str(value), **self.level(children)} if children else value

    def constraints(self) -> Iterator[JsonValue]:
        """Yield forbidden clauses as constraints: combinations of equal values, or expressions."""
        for clause in self._space.forbidden_clauses:
            kind = type(clause).__name__
            parts = list(clause.components) if kind == "ForbiddenAndConjunction" else [clause]
            equal = [self._values_of(part) for part in parts]
            if all(values is not None for values in equal):
                for values in product(*(values for values in equal if values is not None)):
                    yield {FORBID_KEY: dict(values)}
            else:
                yield f"not ({' and '.join(self._text(part) for part in parts)})"

    def _values_of(self, clause: Any) -> list[tuple[str, JsonValue]] | None:  # noqa: ANN401 - ships no types
        """Return the names and values of an equality clause; None for other clauses."""
        kind = type(clause).__name__
        if kind == "ForbiddenEqualsClause":
            name = self._reference(clause.hyperparameter.name)
            return [(name, _original(clause.hyperparameter, clause.value))]
        if kind == "ForbiddenInClause":
            name = self._reference(clause.hyperparameter.name)
            return [(name, _original(clause.hyperparameter, value)) for value in clause.values]
        return None

    def _text(self, clause: Any) -> str:  # noqa: ANN401 - ships no types
        kind = type(clause).__name__
        values = self._values_of(clause)
        if values is not None:
            listed = ", ".join(_literal(value) for _, value in values)
            return f"`{values[0][0]}` in [{listed}]"
        if kind not in _FORBIDDEN:
            raise ValueError(f"forbidden clause {clause} has no form in a search space")
        if kind.endswith("Relation"):
            left, right = (
                self._reference(clause.left.name),
                f"`{self._reference(clause.right.name)}`",
            )
        else:
            left, right = (
                self._reference(clause.hyperparameter.name),
                _literal(_original(clause.hyperparameter, clause.value)),
            )
        return f"`{left}` {_FORBIDDEN[kind]} {right}"

    def _reference(self, name: str) -> str:
        """Return the path by which constraints refer to a hyperparameter."""
        if META_KEY in (self._space[name].meta or {}):
            return name
        parent = self._activation.get(name)
        return name if parent is None else f"{self._reference(parent[0])}/{name}"


def _numbers(hyperparameter: Any, kind: str) -> JsonValue:  # noqa: ANN401 - ships no types
    low, high = _plain(hyperparameter.lower), _plain(hyperparameter.upper)
    if kind == "UniformFloatHyperparameter":
        return {"_type": "loguniform" if hyperparameter.log else "uniform", "_value": [low, high]}
    if kind == "UniformIntegerHyperparameter":
        if hyperparameter.log:
            return {"_type": "qloguniform", "_value": [low, high, 1]}
        return {"_type": "randint", "_value": [low, high + 1]}
    if kind == "NormalFloatHyperparameter" and not hyperparameter.log:
        return {
            "_type": "normal",
            "_value": [_plain(hyperparameter.mu), _plain(hyperparameter.sigma)],
        }
    raise ValueError(
        f"hyperparameter {hyperparameter.name!r}: {kind} has no form in a search space"
    )


def _original(hyperparameter: Any, value: Any) -> JsonValue:  # noqa: ANN401 - ships no types
    """Return a clause's value in the scale of the hyperparameter's original entry."""
    entry = (hyperparameter.meta or {}).get(META_KEY, {}).get("entry", {})
    if entry.get("_type") not in _LOGARITHMS:
        return _plain(value)
    if value <= hyperparameter.lower:  # stands for 0
        return 0.0
    return float(f"{math.exp(value):.15g}")  # the digits that survive the logarithm


def _plain(value: Any) -> JsonValue:  # noqa: ANN401 - numpy's numbers and strings too
    return value.item() if hasattr(value, "item") else value


def _literal(value: JsonValue) -> str:
    return f"'{value}'" if isinstance(value, str) else repr(value).lower()
