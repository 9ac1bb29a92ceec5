"""Configuration lists of the iterations of a pruning, whose ratios grow towards the final ones."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from nni.compression.config.legacy import canonical, is_legacy
from nni.compression.config.selection import SELECTION_KEYS, ModuleInfo, select
from nni.compression.scheduling.growth import ratio_of_rest

Entry = Mapping[str, object]

_RATIOS: Final = ("sparse_ratio", "min_sparse_ratio", "max_sparse_ratio")
_SMALLEST_CAP: Final = 1e-9
"""Largest ratio of a layer that has lost what it may lose: above zero, but no channel."""


class Growth(ABC):
    """Rule for one iteration: ratio by the final one, and the part of final thresholds."""

    @abstractmethod
    def ratio(self, final: float) -> float:
        """Return the ratio in this iteration, relative to the original model.

        Args:
            final: ratio after the last iteration.
        """

    @abstractmethod
    def part(self) -> float:
        """Return the part of final thresholds in this iteration, in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Number of weight elements by module name, in the original model and in the current one."""

    original: Mapping[str, int]
    """Of the model that the configuration was written for."""
    current: Mapping[str, int]
    """Of the model now, smaller after speedups."""

    def removed(self, names: Sequence[str]) -> float:
        """Return the part of the weights of some modules that is gone, in [0, 1].

        Args:
            names: module names.

        Examples:
            >>> Sizes({"a": 10, "b": 30}, {"a": 5, "b": 15}).removed(["a", "b"])
            0.5
        """
        before = sum(self.original.get(name, 0) for name in names)
        after = sum(self.current.get(name, 0) for name in names)
        return 1 - after / before if before else 0.0


def grown_config_list(
    config_list: Sequence[Entry],
    modules: Mapping[str, ModuleInfo],
    growth: Growth,
    sizes: Sizes,
    *,
    shared_entries: bool = False,
) -> list[dict[str, object]]:
    """Return new entries for one iteration, with ratios of what is left of the weights.

    Ratios are relative to what is left: of a group of weights that lost a part c by speedups, and
    that reaches t of the original in this iteration, (t - c) / (1 - c) is masked.

    Args:
        config_list: entries of NNI 3.0 or 2.x with the final ratios; not changed.
        modules: modules of the model by dotted name.
        growth: growth of the ratios.
        sizes: sizes of the weights.
        shared_entries: the targets of an entry of NNI 3.0 share its ratio.

    Returns:
        Canonical entries of NNI 2.x, or entries of NNI 3.0 with `op_names`, as the list was.

    Raises:
        ConfigListError: an entry of NNI 2.x breaks a rule.

    Examples:
        >>> class Half(Growth):
        ...     def ratio(self, final):
        ...         return final / 2
        ...     def part(self):
        ...         return 0.5
        >>> linear = ModuleInfo("Linear", frozenset({"weight"}))
        >>> sizes = Sizes({"a": 10}, {"a": 10})
        >>> config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.8}]
        >>> grown_config_list(config_list, {"a": linear}, Half(), sizes)
        [{'op_names': ['a'], 'sparse_ratio': 0.4}]
    """
    if is_legacy(config_list):
        return [
            _legacy_entry(entry, growth, sizes)
            for entry in canonical(config_list, modules)
            if sizes.removed(_names(entry)) < 1
        ]
    found: list[dict[str, object]] = []
    groups = _groups(config_list, modules)
    for index, entry in enumerate(config_list):
        names = select(entry, modules, f"config_list[{index}]")
        group = entry.get("global_group_id")
        if group is not None or shared_entries:
            parts = {sizes.removed(names if group is None else groups[group]): names}
        else:
            parts = {}
            for name in names:
                parts.setdefault(sizes.removed([name]), []).append(name)
        found += [_entry(entry, own, growth, part) for part, own in parts.items() if part < 1]
    return found


def _legacy_entry(entry: Entry, growth: Growth, sizes: Sizes) -> dict[str, object]:
    names = _names(entry)
    target = growth.ratio(cast("float", entry["total_sparsity"]))
    grown: dict[str, object] = {
        "op_names": names,
        "total_sparsity": ratio_of_rest(target, sizes.removed(names)),
    }
    caps = cast("Mapping[str, float] | None", entry.get("max_sparsity_per_layer"))
    if caps is not None:
        grown["max_sparsity_per_layer"] = {
            name: max(ratio_of_rest(cap, sizes.removed([name])), _SMALLEST_CAP)
            for name, cap in caps.items()
        }
    return grown


def _entry(entry: Entry, names: list[str], growth: Growth, removed: float) -> dict[str, object]:
    rest = {key: value for key, value in entry.items() if key not in SELECTION_KEYS}
    grown = {"op_names": names, **_settings(rest, growth, removed)}
    own = cast("Mapping[str, Entry] | None", entry.get("target_settings"))
    if own:
        grown["target_settings"] = {
            target: _settings(values, growth, removed) for target, values in own.items()
        }
    return grown


def _settings(values: Entry, growth: Growth, removed: float) -> dict[str, object]:
    """Return settings with this iteration's thresholds, and its ratios of what is not removed."""
    grown = dict(values)
    for key in _RATIOS:
        if grown.get(key) is not None:
            final = cast("float", grown[key])
            # A cap holds in every iteration.
            target = final if key == "max_sparse_ratio" else growth.ratio(final)
            grown[key] = ratio_of_rest(target, removed)
    if grown.get("max_sparse_ratio") is not None:
        grown["max_sparse_ratio"] = max(cast("float", grown["max_sparse_ratio"]), _SMALLEST_CAP)
    if grown.get("sparse_threshold") is not None:
        grown["sparse_threshold"] = cast("float", grown["sparse_threshold"]) * growth.part()
    return grown


def _groups(
    config_list: Sequence[Entry], modules: Mapping[str, ModuleInfo]
) -> dict[object, list[str]]:
    """Return the names of the modules of each global group, by its id."""
    found: dict[object, list[str]] = {}
    for index, entry in enumerate(config_list):
        group = entry.get("global_group_id")
        if group is not None:
            names = select(entry, modules, f"config_list[{index}]")
            found.setdefault(group, []).extend(names)
    return found


def _names(entry: Entry) -> list[str]:
    return list(cast("Sequence[str]", entry["op_names"]))
