"""Plan of a compression: the settings of every pruned target, from a configuration list."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from nni.compression.config.legacy import LEGACY_KEYS, is_legacy, translated
from nni.compression.config.selection import (
    SELECTION_KEYS,
    ModuleInfo,
    check_selection,
    select,
)
from nni.compression.config.settings import (
    SETTING_KEYS,
    ConfigListError,
    GroupId,
    PruningSetting,
    PruningSettings,
    check_settings,
    settings_from,
    unknown_key,
)

_logger = logging.getLogger(__name__)

Entry = Mapping[str, object]
Plan = dict[str, dict[str, PruningSettings]]
"""Settings by module name and target name."""

_KEYS: Final = (*SELECTION_KEYS, "target_names", "target_settings", *SETTING_KEYS)


def pruning_plan(
    config_list: Sequence[Entry],
    modules: Mapping[str, ModuleInfo],
    *,
    per_entry: bool = False,
) -> Plan:
    """Return the settings of every target that a configuration list selects.

    A target is configured by the first entry that selects it. Lists of NNI 2.x are translated.

    Args:
        config_list: entries of NNI 3.0 or 2.x; not changed.
        modules: modules of the model by dotted name, without the root, in the model's order.
        per_entry: the targets of an entry form a global group, unless they name one.

    Returns:
        Settings by module name and target name, in the order of the model; empty, with a warning
        in the log, if nothing is selected.

    Raises:
        ConfigListError: the list breaks a rule.

    Examples:
        >>> linear = ModuleInfo("Linear", frozenset({"weight", "bias"}))
        >>> plan = pruning_plan([{"op_types": ["Linear"], "sparse_ratio": 0.5}], {"fc": linear})
        >>> plan["fc"]["weight"].sparse_ratio, plan["fc"]["bias"].align.target_name
        (0.5, 'weight')
    """
    entries = _entries(config_list, modules)
    found: Plan = {}
    for index, entry in enumerate(entries):
        where = f"config_list[{index}]"
        for name in select(entry, modules, where):
            targets = found.setdefault(name, {})
            for target, settings in _targets(entry, name, modules[name], where):
                one = _with_group(settings, index) if per_entry else settings
                targets.setdefault(target, one)
    if not found:
        _logger.warning("config_list selects no module of the model")
    plan = {name: found[name] for name in modules if name in found}
    _check_groups(plan)
    return plan


def _entries(config_list: Sequence[Entry], modules: Mapping[str, ModuleInfo]) -> Sequence[Entry]:
    """Return checked entries of NNI 3.0."""
    if not isinstance(config_list, list | tuple) or not all(
        isinstance(entry, Mapping) for entry in config_list
    ):
        raise ConfigListError("config_list", f"must be a list of dicts, got {config_list!r}")
    if is_legacy(config_list):
        return translated(config_list, modules)
    for index, entry in enumerate(config_list):
        _check(entry, f"config_list[{index}]")
    return config_list


def _check(entry: Entry, where: str) -> None:
    for key in entry:
        if key not in _KEYS:
            raise unknown_key(where, key, {*_KEYS, *LEGACY_KEYS})
    check_selection(entry, where)
    names = entry.get("target_names")
    if names is not None and not (
        isinstance(names, list | tuple) and names and all(isinstance(one, str) for one in names)
    ):
        raise ConfigListError(f"{where}.target_names", f"must be a list of str, got {names!r}")
    check_settings(_shortcuts(entry), where)
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


def _shortcuts(entry: Entry) -> dict[str, object]:
    """Return the settings that stand in the entry itself, for all of its targets."""
    return {key: value for key, value in entry.items() if key in SETTING_KEYS}


def _targets(
    entry: Entry, name: str, module: ModuleInfo, where: str
) -> Iterator[tuple[str, PruningSettings]]:
    """Yield name and settings of each target of one module."""
    defaults = PruningSetting.of(module.type_name)
    per_target = cast("Mapping[str, Entry]", entry.get("target_settings") or {})
    chosen = cast("Sequence[str]", entry.get("target_names") or (*defaults, *per_target))
    for target in dict.fromkeys(chosen):
        if not _exists(target, name, module, where):
            continue
        own = per_target.get(target, {})
        values = {**defaults.get(target, {}), **_overridden(_shortcuts(entry), own), **own}
        if "align" not in own and _has_own_mask(values, own, chosen):
            values["align"] = None
        settings = settings_from(values)
        if settings.align is None and not _decides(settings):
            raise ConfigListError(
                where, f"sets neither sparse_ratio nor sparse_threshold for {target} of {name}"
            )
        yield target, settings


def _overridden(shortcuts: Entry, own: Entry) -> Entry:
    """Return the shortcuts without the ratio or threshold that a target replaces by the other."""
    pair = {"sparse_ratio", "sparse_threshold"}
    replaced = pair if any(own.get(key) is not None for key in pair) else set()
    return {key: value for key, value in shortcuts.items() if key not in replaced}


def _has_own_mask(values: Entry, own: Entry, chosen: Sequence[str]) -> bool:
    """Return whether a target that is aligned by default has a metric of its own instead."""
    align = cast("Mapping[str, object] | None", values.get("align"))
    if align is None:
        return True
    absent = align.get("module_name") is None and align["target_name"] not in chosen
    return absent or own.get("sparse_ratio") is not None or own.get("sparse_threshold") is not None


def _exists(target: str, name: str, module: ModuleInfo, where: str) -> bool:
    """Return whether a module has a target; raise if it must."""
    if target.startswith(("_input_", "_output_")):
        return True
    if target in module.parameters:
        return True
    if target == "bias":
        return False  # a layer without bias is no mistake of the user
    raise ConfigListError(
        where,
        f"selects {name}, a {module.type_name}, which has no parameter {target!r}; exclude it, or "
        "give target_names that it has",
    )


def _decides(settings: PruningSettings) -> bool:
    return settings.sparse_ratio is not None or settings.sparse_threshold is not None


def _with_group(settings: PruningSettings, index: int) -> PruningSettings:
    if settings.align is not None or settings.global_group_id is not None:
        return settings
    return replace(settings, global_group_id=f"entry {index}")


def _check_groups(plan: Plan) -> None:
    """Raise ConfigListError unless the members of each group share their ratio."""
    for key in ("global_group_id", "dependency_group_id"):
        ratios: dict[GroupId, tuple[str, float | None]] = {}
        for name, targets in plan.items():
            for target, settings in targets.items():
                group = cast("GroupId | None", getattr(settings, key))
                if group is None or settings.align is not None:
                    continue
                first, ratio = ratios.setdefault(group, (f"{name}.{target}", settings.sparse_ratio))
                if ratio != settings.sparse_ratio:
                    raise ConfigListError(
                        f"config_list {key} {group!r}",
                        f"needs one sparse_ratio for all members, got {ratio} for {first} and "
                        f"{settings.sparse_ratio} for {name}.{target}",
                    )
