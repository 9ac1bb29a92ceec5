"""Plan of a quantization: the settings of every quantized target, from a configuration list."""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import cast

from nni.compression.config.entries import check_entry, check_list, shortcuts
from nni.compression.config.quantization_defaults import (
    TENSOR_KINDS,
    TensorKind,
    chosen_default,
)
from nni.compression.config.quantization_legacy import (
    QUANTIZATION_LEGACY_KEYS,
    is_legacy_quantization,
    translated_quantization,
)
from nni.compression.config.quantization_settings import (
    QUANTIZATION_KEYS,
    QuantizationSetting,
    QuantizationSettings,
    canonical_target,
    check_quantization,
    quantization_from,
)
from nni.compression.config.selection import ModuleInfo, select
from nni.compression.config.settings import ConfigListError

_logger = logging.getLogger(__name__)

Entry = Mapping[str, object]
QuantizationPlan = dict[str, dict[str, QuantizationSettings]]
"""Settings by module name and target name."""


def quantization_plan(
    config_list: Sequence[Entry],
    modules: Mapping[str, ModuleInfo],
    kinds: Collection[TensorKind] = TENSOR_KINDS,
) -> QuantizationPlan:
    """Return settings of the selected targets by module; for a target the first entry wins.

    A target is configured by the first entry that selects it. Lists of NNI 2.x are translated.

    Args:
        config_list: entries of NNI 3.0 or 2.x; not changed.
        modules: modules of the model by dotted name, without the root, in the model's order.
        kinds: kinds of tensors that an entry without `target_names` has as targets.

    Returns:
        Settings by module name and target name, in the order of the model; empty, with a warning
        in the log, if nothing is selected. `_input_` and `_output_` are `_input_0` and `_output_0`.

    Raises:
        ConfigListError: the list breaks a rule.

    Examples:
        >>> linear = ModuleInfo("Linear", frozenset({"weight", "bias"}))
        >>> plan = quantization_plan([{"op_names": ["fc"], "quant_dtype": "int4"}], {"fc": linear})
        >>> {target: settings.bits for target, settings in plan["fc"].items()}
        {'_input_0': 4, 'weight': 4, '_output_0': 4}
    """
    entries = _entries(config_list, modules)
    found: QuantizationPlan = {}
    for index, entry in enumerate(entries):
        where = f"config_list[{index}]"
        for name in select(entry, modules, where):
            targets = found.setdefault(name, {})
            for target, settings in _targets(entry, name, modules[name], where, kinds):
                targets.setdefault(target, settings)
    plan = {name: found[name] for name in modules if found.get(name)}
    if not plan:
        _logger.warning("config_list selects no target of the model")
    return plan


def fused_names(
    config_list: Sequence[Entry], modules: Mapping[str, ModuleInfo], plan: QuantizationPlan
) -> dict[str, tuple[str, ...]]:
    """Return by layer the modules that it computes too, from `fuse_names`; raise if one cannot fit.

    Args:
        config_list: entries that `quantization_plan` accepts.
        modules: modules of the model by dotted name.
        plan: what `quantization_plan` returns.

    Returns:
        Names of the following modules by the name of the first one.

    Raises:
        ConfigListError: a name is unknown or used twice, or the first module has no target.

    Examples:
        >>> modules = {"conv": ModuleInfo("Conv2d", frozenset({"weight"})),
        ...            "bn": ModuleInfo("BatchNorm2d", frozenset({"weight", "bias"}))}
        >>> config_list = [{"op_types": ["Conv2d"], "fuse_names": [("conv", "bn")]}]
        >>> fused_names(config_list, modules, quantization_plan(config_list, modules))
        {'conv': ('bn',)}
    """
    found: dict[str, tuple[str, ...]] = {}
    used: set[str] = set()
    for index, entry in enumerate(config_list):
        where = f"config_list[{index}].fuse_names"
        for group in cast("Sequence[Sequence[str]]", entry.get("fuse_names") or ()):
            _check_names(group, modules, plan, used, where)
            used.update(group)
            found[group[0]] = tuple(group[1:])
    return found


def _entries(config_list: Sequence[Entry], modules: Mapping[str, ModuleInfo]) -> Sequence[Entry]:
    """Check a configuration list; return it, or its translation if it is of NNI 2.x."""
    check_list(config_list)
    if is_legacy_quantization(config_list):
        return translated_quantization(config_list, modules)
    for index, entry in enumerate(config_list):
        where = f"config_list[{index}]"
        settings = {key: value for key, value in entry.items() if key != "fuse_names"}
        others = {*QUANTIZATION_LEGACY_KEYS, "fuse_names"}
        check_entry(settings, where, QUANTIZATION_KEYS, check_quantization, others)
        _check_groups(entry.get("fuse_names"), where)
    return config_list


def _check_groups(groups: object, where: str) -> None:
    if groups is not None and not (
        isinstance(groups, list | tuple) and all(_is_group(one) for one in groups)
    ):
        raise ConfigListError(
            f"{where}.fuse_names",
            f"must be a list of tuples of two names or more, got {groups!r}",
        )


def _is_group(value: object) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) > 1
        and all(isinstance(one, str) for one in value)
    )


def _targets(
    entry: Entry, name: str, module: ModuleInfo, where: str, kinds: Collection[TensorKind]
) -> Iterator[tuple[str, QuantizationSettings]]:
    """Yield name and settings, defaults included, of each existing target of one module."""
    defaults = QuantizationSetting.of(module.type_name, module.parameters)
    given = cast("Mapping[str, Entry]", entry.get("target_settings") or {})
    per_target = {canonical_target(target): values for target, values in given.items()}
    usual = (target for target in defaults if kind_of(target) in kinds)
    names = cast("Sequence[str]", entry.get("target_names") or (*usual, *per_target))
    for target in dict.fromkeys(map(canonical_target, names)):
        if not _exists(target, name, module, where):
            continue
        values = {
            **_chosen_settings(target),
            **defaults.get(target, {}),
            **shortcuts(entry, QUANTIZATION_KEYS),
            **per_target.get(target, {}),
        }
        settings = quantization_from(values)
        _check_granularity(settings, target, name, where)
        yield target, settings


def _chosen_settings(target: str) -> dict[str, object]:
    """Return the settings made by `set_quant_scheme_dtype` for a target's kind; {} for a bias."""
    chosen = chosen_default(kind_of(target)) if target != "bias" else None
    if chosen is None:
        return {}
    return {
        "quant_dtype": "int8" if chosen.signed else "uint8",
        "quant_scheme": chosen.scheme,
        "granularity": chosen.granularity,
    }


def kind_of(target: str) -> TensorKind:
    """Return a target's kind by its prefix: input or output, otherwise weight (any parameter)."""
    if target.startswith("_input_"):
        return "input"
    return "output" if target.startswith("_output_") else "weight"


def _exists(target: str, name: str, module: ModuleInfo, where: str) -> bool:
    """Return whether a module has a target; raise if it lacks a parameter other than the bias."""
    if target.startswith(("_input_", "_output_")) or target in module.parameters:
        return True
    if target == "bias":
        return False  # a layer without bias is no mistake of the user
    raise ConfigListError(
        where,
        f"selects {name}, a {module.type_name}, which has no parameter {target!r}; exclude it, or "
        "give target_names that it has",
    )


def _check_granularity(settings: QuantizationSettings, target: str, name: str, where: str) -> None:
    """Raise ConfigListError unless the granularity is one of this kind of target."""
    kind = kind_of(target)
    if kind == "weight" and settings.granularity == "per_channel":
        raise ConfigListError(
            where,
            f"has granularity 'per_channel' for {target} of {name}, which is for inputs and "
            "outputs; write 'out_channel'",
        )
    if kind != "weight" and settings.granularity in {"in_channel", "out_channel"}:
        raise ConfigListError(
            where,
            f"has granularity {settings.granularity!r} for {target} of {name}, which is for "
            "parameters; write 'per_channel'",
        )


def _check_names(
    group: Sequence[str],
    modules: Mapping[str, ModuleInfo],
    plan: QuantizationPlan,
    used: set[str],
    where: str,
) -> None:
    unknown = [name for name in group if name not in modules]
    if unknown:
        raise ConfigListError(where, f"has {unknown[0]!r}, which the model lacks")
    twice = [name for name in group if name in used]
    if twice:
        raise ConfigListError(where, f"has {twice[0]!r} twice; a module is in one tuple only")
    if group[0] not in plan:
        raise ConfigListError(
            where, f"begins with {group[0]!r}, which no entry selects; select it, or leave it out"
        )
