"""Plan of a compression: the settings of every pruned target, from a configuration list."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from nni.compression.config.entries import check_entry, check_list, shortcuts
from nni.compression.config.legacy import LEGACY_KEYS, is_legacy, translated, with_totals
from nni.compression.config.selection import ModuleInfo, select
from nni.compression.config.settings import (
    SETTING_KEYS,
    ConfigListError,
    GroupId,
    PruningSetting,
    PruningSettings,
    check_settings,
    settings_from,
)

_logger = logging.getLogger(__name__)

Entry = Mapping[str, object]
Plan = dict[str, dict[str, PruningSettings]]
"""Settings by module name and target name."""


def pruning_plan(
    config_list: Sequence[Entry],
    modules: Mapping[str, ModuleInfo],
    *,
    per_entry: bool = False,
) -> Plan:
    """Return settings of the selected targets by module; for a target the first entry wins.

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
    entries = _entries(config_list, modules, per_entry=per_entry)
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


def _entries(
    config_list: Sequence[Entry], modules: Mapping[str, ModuleInfo], *, per_entry: bool
) -> Sequence[Entry]:
    """Check a configuration list; return it, or its translation if it is of NNI 2.x."""
    check_list(config_list)
    if is_legacy(config_list):
        return translated(with_totals(config_list) if per_entry else config_list, modules)
    for index, entry in enumerate(config_list):
        check_entry(entry, f"config_list[{index}]", SETTING_KEYS, check_settings, LEGACY_KEYS)
    return config_list


def _targets(
    entry: Entry, name: str, module: ModuleInfo, where: str
) -> Iterator[tuple[str, PruningSettings]]:
    """Yield name and settings, defaults included, of each existing target of one module."""
    defaults = PruningSetting.of(module.type_name)
    per_target = cast("Mapping[str, Entry]", entry.get("target_settings") or {})
    chosen = cast("Sequence[str]", entry.get("target_names") or (*defaults, *per_target))
    for target in dict.fromkeys(chosen):
        if not _exists(target, name, module, where):
            continue
        own = per_target.get(target, {})
        values = {
            **defaults.get(target, {}),
            **_overridden(shortcuts(entry, SETTING_KEYS), own),
            **own,
        }
        if "align" not in own and _has_own_mask(values, own, chosen):
            values["align"] = None
        settings = settings_from(values)
        if settings.align is None and not _decides(settings):
            raise ConfigListError(
                where, f"sets neither sparse_ratio nor sparse_threshold for {target} of {name}"
            )
        yield target, settings


def _overridden(shortcuts: Entry, own: Entry) -> Entry:
    """Return the shortcuts, without ratio and threshold if a target has one of them itself."""
    pair = {"sparse_ratio", "sparse_threshold"}
    replaced = pair if any(own.get(key) is not None for key in pair) else set()
    return {key: value for key, value in shortcuts.items() if key not in replaced}


def _has_own_mask(values: Entry, own: Entry, chosen: Sequence[str]) -> bool:
    """Return whether a target is not aligned: by setting, without a source, or by an own ratio."""
    align = cast("Mapping[str, object] | None", values.get("align"))
    if align is None:
        return True
    absent = align.get("module_name") is None and align["target_name"] not in chosen
    return absent or own.get("sparse_ratio") is not None or own.get("sparse_threshold") is not None


def _exists(target: str, name: str, module: ModuleInfo, where: str) -> bool:
    """Return whether a module has a target; raise if it lacks a parameter other than the bias."""
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
