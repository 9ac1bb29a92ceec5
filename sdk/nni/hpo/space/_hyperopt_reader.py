"""Conversion of hyperopt's expressions, such as `hp.uniform("x", 0, 1)`, to a search space.

Reads the graphs that hyperopt builds; the package itself is not imported.
"""

import math
from collections.abc import Mapping
from typing import Any, Final

from nni.hpo.json_value import JsonValue

_PACKAGE: Final = "hyperopt"
_KINDS: Final = {
    "uniform", "quniform", "loguniform", "qloguniform",
    "normal", "qnormal", "lognormal", "qlognormal", "randint",
}  # fmt: skip
_ORDER: Final = ("low", "high", "upper", "mu", "sigma", "q")
"""Arguments in the order of an entry's values; hyperopt sorts those that are given by name."""


def has_hyperopt(space: Mapping[str, Any]) -> bool:
    """Return whether a value of the space is an expression of hyperopt."""
    return any(_is_expression(value) for value in space.values())


def entry_of_hyperopt(path: str, node: Any) -> JsonValue:  # noqa: ANN401 - ships no types
    """Return the search-space entry of a hyperopt expression or constant; ValueError without one.

    Args:
        path: of the parameter, for errors.
        node: the expression, or a plain value.

    Raises:
        ValueError: it has no equivalent.
    """
    if not _is_expression(node):
        return node if _is_entry(node) else {"_type": "choice", "_value": [node]}
    if node.name == "literal":
        return {"_type": "choice", "_value": [node.obj]}
    if node.name == "switch":
        return {"_type": "choice", "_value": list(_options(path, node))}
    whole = False
    while node.name in {"int", "float"}:
        whole = whole or node.name == "int"
        node = node.pos_args[0]
    if node.name != "hyperopt_param" or node.pos_args[1].name not in _KINDS:
        raise _refusal(path, node.name)
    return _range_entry(path, node.pos_args[1], whole=whole)


def _is_expression(node: object) -> bool:
    return type(node).__module__.partition(".")[0] == _PACKAGE


def _is_entry(value: object) -> bool:
    return isinstance(value, Mapping) and "_type" in value


def _options(path: str, node: Any) -> Any:  # noqa: ANN401 - ships no types
    selector, *options = node.pos_args
    if selector.pos_args[1].name != "randint":
        raise _refusal(path, "pchoice")
    for number, option in enumerate(options):
        if option.name == "dict":
            inner = {
                key: entry_of_hyperopt(f"{path}/{number}/{key}", value)
                for key, value in option.named_args
            }
            yield {"_name": str(number), **inner}
        else:
            yield _constant(path, option)


def _constant(path: str, node: Any) -> JsonValue:  # noqa: ANN401 - ships no types
    """Return the plain value of an option; raise ValueError for one with expressions."""
    if node.name == "literal":
        return node.obj
    if node.name == "pos_args":
        return [_constant(path, one) for one in node.pos_args]
    raise ValueError(
        f"parameter {path!r}: an option with expressions must be a dict, got {node.name!r}"
    )


def _range_entry(path: str, node: Any, *, whole: bool) -> JsonValue:  # noqa: ANN401 - ships no types
    kind = node.name
    for name, _ in node.named_args:
        if name not in _ORDER:
            raise _refusal(path, f"{kind} with an argument {name!r}")
    named = sorted(node.named_args, key=lambda item: _ORDER.index(item[0]))
    values = [_constant(path, one) for one in [*node.pos_args, *(one for _, one in named)]]
    if kind == "randint":
        return {"_type": kind, "_value": values if len(values) > 1 else [0, *values]}
    if kind in {"loguniform", "qloguniform"}:
        values[:2] = [math.exp(values[0]), math.exp(values[1])]
    if whole and kind == "quniform" and values[2] == 1:
        return {"_type": "randint", "_value": [math.ceil(values[0]), math.floor(values[1]) + 1]}
    return {"_type": kind, "_value": values}


def _refusal(path: str, what: str) -> ValueError:
    return ValueError(f"parameter {path!r}: hyperopt's {what} has no equivalent in search spaces")
