"""Translation of configuration lists of NNI 2.x to those of NNI 3.0.

In NNI 2.x the last entry that matches a module decides about it, and an entry with `exclude`
removes modules from earlier ones. The translation lists the modules of each entry by name first, so
that order and exclusions need no rule in the result.
"""

from collections.abc import Mapping, Sequence
from typing import Final, cast

from nni.compression.config.selection import ModuleInfo, check_selection, select
from nni.compression.config.settings import ConfigListError, check_number, unknown_key

LEGACY_KEYS: Final = frozenset(
    {
        "exclude",
        "max_sparsity_per_layer",
        "op_partial_names",
        "sparsity",
        "sparsity_per_layer",
        "total_sparsity",
    }
)
"""Keys of NNI 2.x that NNI 3.0 lacks."""

_KEYS: Final = LEGACY_KEYS | {"op_names", "op_types"}
_RATIOS: Final = ("sparsity", "sparsity_per_layer", "total_sparsity")

Entry = Mapping[str, object]


def is_legacy(config_list: Sequence[Entry]) -> bool:
    """Return whether an entry has a key that only NNI 2.x knows."""
    return any(LEGACY_KEYS & entry.keys() for entry in config_list)


def with_totals(config_list: Sequence[Entry]) -> list[Entry]:
    """Return entries with `total_sparsity` in place of `sparsity` or `sparsity_per_layer`.

    Args:
        config_list: entries of NNI 2.x; not changed.

    Returns:
        Entries with `total_sparsity` in place of `sparsity` and `sparsity_per_layer`.

    Examples:
        >>> with_totals([{"op_types": ["Linear"], "sparsity": 0.5}])
        [{'op_types': ['Linear'], 'total_sparsity': 0.5}]
    """
    return [_with_total(entry) for entry in config_list]


def _with_total(entry: Entry) -> Entry:
    given = [key for key in _RATIOS if entry.get(key) is not None]
    if len(given) != 1:
        return entry  # two of them are refused later
    rest = {key: value for key, value in entry.items() if key not in _RATIOS}
    return {**rest, "total_sparsity": entry[given[0]]}


def canonical(
    config_list: Sequence[Entry], modules: Mapping[str, ModuleInfo]
) -> list[dict[str, object]]:
    """Check a list of NNI 2.x; return entries that name each selected module once, the last wins.

    Entries with a sparsity per layer become one entry per layer; a cap becomes a dict of module
    name to cap; entries with `exclude` vanish. The given list is not changed. The canonical form
    of a canonical list is the list itself.

    Args:
        config_list: entries of NNI 2.x.
        modules: modules of the model by dotted name.

    Returns:
        Entries with `op_names`, `total_sparsity` and maybe `max_sparsity_per_layer`.

    Raises:
        ConfigListError: an entry breaks a rule.

    Examples:
        >>> linear = ModuleInfo("Linear", frozenset({"weight"}))
        >>> canonical([{"op_types": ["Linear"], "sparsity": 0.5}], {"a": linear, "b": linear})
        [{'op_names': ['a'], 'total_sparsity': 0.5}, {'op_names': ['b'], 'total_sparsity': 0.5}]
    """
    for index, entry in enumerate(config_list):
        _check(entry, f"config_list[{index}]")
    return [
        one
        for entry, names in unfolded(config_list, modules)
        for one in _canonical_entries(entry, names)
    ]


def unfolded(
    config_list: Sequence[Entry], modules: Mapping[str, ModuleInfo]
) -> list[tuple[Entry, list[str]]]:
    """Return entries of NNI 2.x with the modules they decide: the last wins, excluded are left out.

    The last entry that matches a module decides. Entries with `exclude` are left out, and so are
    those that decide about no module.

    Args:
        config_list: entries of NNI 2.x, which are checked.
        modules: modules of the model by dotted name.

    Examples:
        >>> linear = ModuleInfo("Linear", frozenset({"weight"}))
        >>> every, no = {"op_types": ["Linear"]}, {"op_names": ["a"], "exclude": True}
        >>> unfolded([every, no], {"a": linear, "b": linear})
        [({'op_types': ['Linear']}, ['b'])]
    """
    decided: set[str] = set()
    found: list[tuple[Entry, list[str]]] = []
    for index, entry in reversed(list(enumerate(config_list))):
        matched = select(entry, modules, f"config_list[{index}]")
        names = [name for name in matched if name not in decided]
        decided.update(matched)
        if names and not entry.get("exclude"):
            found.append((entry, names))
    return found[::-1]


def translated(
    config_list: Sequence[Entry], modules: Mapping[str, ModuleInfo]
) -> list[dict[str, object]]:
    """Translate a list of NNI 2.x to entries of NNI 3.0, one per module; totals become groups.

    Args:
        config_list: entries of NNI 2.x.
        modules: modules of the model by dotted name.

    Returns:
        Entries with `op_names` and settings; those of one `total_sparsity` share a global group.

    Raises:
        ConfigListError: an entry breaks a rule.

    Examples:
        >>> linear = ModuleInfo("Linear", frozenset({"weight"}))
        >>> translated([{"op_names": ["a"], "sparsity": 0.5}], {"a": linear})
        [{'op_names': ['a'], 'sparse_ratio': 0.5}]
    """
    entries: list[dict[str, object]] = []
    for index, entry in enumerate(canonical(config_list, modules)):
        names = cast("list[str]", entry["op_names"])
        caps = cast("Mapping[str, float]", entry.get("max_sparsity_per_layer") or {})
        shared: dict[str, object] = {"sparse_ratio": entry["total_sparsity"]}
        if len(names) > 1:
            shared["global_group_id"] = f"total_sparsity of entry {index}"
        for name in names:
            cap = {"max_sparse_ratio": caps[name]} if name in caps else {}
            entries.append({"op_names": [name], **shared, **cap})
    return entries


def _check(entry: Entry, where: str) -> None:
    for key in entry:
        if key not in _KEYS:
            raise unknown_key(where, key, _KEYS)
    check_selection(entry, where)
    check_exclude(entry, where)
    given = [key for key in _RATIOS if entry.get(key) is not None]
    if len(given) > 1:
        raise ConfigListError(where, f"has both {given[0]} and {given[1]}; leave one of them out")
    if not given and not entry.get("exclude"):
        raise ConfigListError(where, "needs sparsity, total_sparsity or exclude: True")
    for key in given:
        check_number(entry[key], f"{where}.{key}", "in [0, 1)", lambda one: 0 <= one < 1)
    _check_cap(entry, where)


def check_exclude(entry: Entry, where: str) -> None:
    """Raise ConfigListError unless `exclude` is a truth value or missing."""
    if not isinstance(entry.get("exclude", False), bool):
        raise ConfigListError(
            f"{where}.exclude", f"must be True or False, got {entry['exclude']!r}"
        )


def _check_cap(entry: Entry, where: str) -> None:
    cap = entry.get("max_sparsity_per_layer")
    if cap is None:
        return
    if entry.get("total_sparsity") is None:
        raise ConfigListError(
            f"{where}.max_sparsity_per_layer", "needs total_sparsity; leave it out otherwise"
        )
    for one in cap.values() if isinstance(cap, Mapping) else (cap,):
        check_number(
            one, f"{where}.max_sparsity_per_layer", "in (0, 1]", lambda value: 0 < value <= 1
        )


def _canonical_entries(entry: Entry, names: list[str]) -> list[dict[str, object]]:
    if entry.get("total_sparsity") is None:
        ratio = entry.get("sparsity", entry.get("sparsity_per_layer"))
        return [{"op_names": [name], "total_sparsity": ratio} for name in names]
    result: dict[str, object] = {"op_names": names, "total_sparsity": entry["total_sparsity"]}
    cap = entry.get("max_sparsity_per_layer")
    if isinstance(cap, Mapping):
        result["max_sparsity_per_layer"] = {name: cap[name] for name in names if name in cap}
    elif cap is not None:
        result["max_sparsity_per_layer"] = dict.fromkeys(names, cap)
    return [result]
