"""Names of hyperparameters that hold the place of a setting in a `config_list`."""

from collections.abc import Mapping
from typing import Any, Final

PRUNER_NAMES: Final = (
    "level",
    "slim",
    "l1",
    "l2",
    "fpgm",
    "taylorfo",
    "apoz",
    "mean_activation",
    "admm",
)
"""Pruners by the names that NNI 2.x gives them."""
QUANTIZER_NAMES: Final = ("naive", "qat", "dorefa", "bnn", "lsq")
"""Quantizers by the names that NNI 2.x gives them."""

_CONFIG: Final = "config_list"
_PARAMETER: Final = "parameter"
_BETWEEN: Final = "::"
_LISTED: Final = ":"
_SELECTION: Final = ("op_types", "op_names")
_QUANTIZER_SELECTION: Final = ("quant_types", *_SELECTION)


def selection_keys(algorithm: str) -> tuple[str, ...]:
    """Return the keys of an entry that are part of the names of its hyperparameters.

    Args:
        algorithm: name of a pruner or quantizer.
    """
    return _QUANTIZER_SELECTION if algorithm in QUANTIZER_NAMES else _SELECTION


def entry_prefix(algorithm: str, entry: Mapping[str, Any]) -> str:
    """Return the common prefix of the names of all hyperparameters of an entry.

    Args:
        algorithm: name of a pruner or quantizer.
        entry: entry of a `config_list`.

    Examples:
        >>> entry_prefix("level", {"op_types": ["default"], "sparsity": 0.5})
        'config_list::default::::'
    """
    parts = [_LISTED.join(entry.get(key) or ()) for key in selection_keys(algorithm)]
    return _BETWEEN.join([_CONFIG, *parts, ""])


def argument_name(name: str) -> str:
    """Return the name of the hyperparameter of an argument of the algorithm.

    Args:
        name: name of the argument.

    Examples:
        >>> argument_name("scale")
        'parameter::scale'
    """
    return f"{_PARAMETER}{_BETWEEN}{name}"


def parsed(
    algorithm: str, values: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return `config_list` and arguments from flat hyperparameters; raise for other names.

    Args:
        algorithm: name of a pruner or quantizer.
        values: values by the names of the hyperparameters.

    Returns:
        The entries, in the order in which they were given, and the arguments by name. Selections
        that are empty are left out.

    Raises:
        ValueError: a name has another form.

    Examples:
        >>> parsed("level", {"config_list::default::::sparsity": 0.5, "parameter::scale": 1})
        ([{'op_types': ['default'], 'sparsity': 0.5}], {'scale': 1})
    """
    keys = selection_keys(algorithm)
    entries: dict[tuple[str, ...], dict[str, Any]] = {}
    arguments = {}
    for name, value in values.items():
        kind, *parts = name.split(_BETWEEN)
        if kind == _PARAMETER and len(parts) == 1:
            arguments[parts[0]] = _plain(value)
        elif kind == _CONFIG and len(parts) == len(keys) + 1:
            selection = tuple(parts[:-1])
            entry = entries.setdefault(selection, _selected(keys, selection))
            entry[parts[-1]] = _plain(value)
        else:
            raise ValueError(f"{name!r} is no hyperparameter of {algorithm}")
    return list(entries.values()), arguments


def _selected(keys: tuple[str, ...], parts: tuple[str, ...]) -> dict[str, Any]:
    # Dropped, not split: ''.split(':') is [''], which selects nothing.
    return {key: part.split(_LISTED) for key, part in zip(keys, parts, strict=True) if part}


def _plain(value: Any) -> Any:  # noqa: ANN401 - a JSON value
    """Return a value without the `_name` entries of nested branches."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items() if key != "_name"}
    return value
