"""Checks of configuration lists that all kinds of compression share."""

from collections.abc import Callable, Collection, Iterable, Mapping

from nni.compression.config.selection import SELECTION_KEYS, check_selection
from nni.compression.config.settings import ConfigListError, unknown_key

Entry = Mapping[str, object]

_TARGET_KEYS = ("target_names", "target_settings")


def check_list(config_list: object) -> None:
    """Raise ConfigListError unless a configuration list is a list of dicts.

    Args:
        config_list: what the user wrote.

    Raises:
        ConfigListError: it is something else.
    """
    if not isinstance(config_list, list | tuple) or not all(
        isinstance(entry, Mapping) for entry in config_list
    ):
        raise ConfigListError("config_list", f"must be a list of dicts, got {config_list!r}")


def check_entry(
    entry: Entry,
    where: str,
    setting_keys: Collection[str],
    check_settings: Callable[[Entry, str], None],
    other_keys: Iterable[str] = (),
) -> None:
    """Raise ConfigListError unless selection, targets and settings of an entry are right.

    Args:
        entry: entry of NNI 3.0.
        where: its place.
        setting_keys: keys of settings, which may stand in the entry or below `target_settings`.
        check_settings: raises ConfigListError for wrong settings at a place.
        other_keys: keys that the error for an unknown key may propose as well.

    Raises:
        ConfigListError: a key or value is wrong.
    """
    keys = {*SELECTION_KEYS, *_TARGET_KEYS, *setting_keys}
    for key in entry:
        if key not in keys:
            raise unknown_key(where, key, {*keys, *other_keys})
    check_selection(entry, where)
    _check_target_names(entry.get("target_names"), where)
    check_settings(shortcuts(entry, setting_keys), where)
    per_target = entry.get("target_settings") or {}
    if not isinstance(per_target, Mapping):
        raise ConfigListError(
            f"{where}.target_settings", f"must be a dict of dicts, got {per_target!r}"
        )
    for target, values in per_target.items():
        if not isinstance(values, Mapping):
            raise ConfigListError(
                f"{where}.target_settings.{target}", f"must be a dict, got {values!r}"
            )
        check_settings(values, f"{where}.target_settings.{target}")


def shortcuts(entry: Entry, setting_keys: Collection[str]) -> dict[str, object]:
    """Return the settings that stand in an entry itself, for all of its targets.

    Args:
        entry: entry of NNI 3.0.
        setting_keys: keys of settings.

    Examples:
        >>> shortcuts({"op_types": ["Linear"], "sparse_ratio": 0.5}, ["sparse_ratio"])
        {'sparse_ratio': 0.5}
    """
    return {key: value for key, value in entry.items() if key in setting_keys}


def _check_target_names(names: object, where: str) -> None:
    if names is not None and not (
        isinstance(names, list | tuple) and names and all(isinstance(one, str) for one in names)
    ):
        raise ConfigListError(f"{where}.target_names", f"must be a list of str, got {names!r}")
