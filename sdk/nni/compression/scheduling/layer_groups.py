"""Groups of layers whose sparsities a search chooses, while the group keeps its total."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from nni.compression.config.legacy import canonical, is_legacy
from nni.compression.config.selection import SELECTION_KEYS, ModuleInfo, select

Entry = Mapping[str, object]

_LEGACY_KEY: Final = "total_sparsity"


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """Layers that reach one sparsity together, with the limit of each."""

    names: tuple[str, ...]
    """Module names."""
    total: float
    """Sparsity of the layers together, in [0, 1)."""
    limits: tuple[float, ...]
    """Largest sparsity of each layer, in (0, 1]."""
    ratio_key: str
    """Key of a sparsity in an entry: that of NNI 2.x or 3.0."""
    settings: Mapping[str, object]
    """Other settings of an entry for the layers."""

    def entries(self, sparsities: Sequence[float]) -> list[dict[str, object]]:
        """Return an entry for each layer, with its own sparsity and the group's settings.

        Args:
            sparsities: one for each layer.
        """
        return [
            {"op_names": [name], self.ratio_key: sparsity, **self.settings}
            for name, sparsity in zip(self.names, sparsities, strict=True)
        ]

    def shared_entries(
        self, total: float, limits: Sequence[float] | None = None
    ) -> list[dict[str, object]]:
        """Return entries by which the layers reach one sparsity together.

        Args:
            total: sparsity of the layers together.
            limits: largest sparsity of each layer; None for those of the group.
        """
        limits = self.limits if limits is None else limits
        if self.ratio_key == _LEGACY_KEY:
            caps = dict(zip(self.names, limits, strict=True))
            entry = {"op_names": list(self.names), self.ratio_key: total}
            return [{**entry, "max_sparsity_per_layer": caps}]
        shared = {self.ratio_key: total, "global_group_id": f"layers with {self.names[0]}"}
        return [
            {**self.settings, "op_names": [name], **shared, "max_sparse_ratio": limit}
            for name, limit in zip(self.names, limits, strict=True)
        ]


def layer_groups(
    config_list: Sequence[Entry], modules: Mapping[str, ModuleInfo]
) -> list[LayerGroup]:
    """Return the layers that each entry, or global group, selects, with their shared sparsity.

    Layers with `sparsity_per_layer` are groups of one layer; those of entries of NNI 3.0 with
    one `global_group_id` are one group.

    Args:
        config_list: checked entries of NNI 3.0 or 2.x; not changed.
        modules: modules of the model by dotted name.

    Examples:
        >>> linear = ModuleInfo("Linear", frozenset({"weight"}))
        >>> config_list = [{"op_types": ["Linear"], "sparsity": 0.5}]
        >>> layer_groups(config_list, {"a": linear, "b": linear})[0].names
        ('a', 'b')
    """
    if is_legacy(config_list):
        return _legacy_groups(config_list, modules)
    return _current_groups(config_list, modules)


def _legacy_groups(
    config_list: Sequence[Entry], modules: Mapping[str, ModuleInfo]
) -> list[LayerGroup]:
    shared = [_with_total(entry) for entry in config_list]
    found = []
    for entry in canonical(shared, modules):
        names = tuple(cast("Sequence[str]", entry["op_names"]))
        caps = cast("Mapping[str, float]", entry.get("max_sparsity_per_layer") or {})
        limits = tuple(caps.get(name, 1.0) for name in names)
        total = cast("float", entry["total_sparsity"])
        found.append(LayerGroup(names, total, limits, _LEGACY_KEY, {}))
    return found


def _with_total(entry: Entry) -> Entry:
    """Return an entry whose layers share their sparsity, unless it is one of each layer."""
    renamed = {"sparsity": "total_sparsity"} if entry.get("sparsity") is not None else {}
    return {renamed.get(key, key): value for key, value in entry.items()}


def _current_groups(
    config_list: Sequence[Entry], modules: Mapping[str, ModuleInfo]
) -> list[LayerGroup]:
    members: dict[object, list[tuple[str, Entry]]] = {}
    taken: set[str] = set()
    for index, entry in enumerate(config_list):
        where = f"config_list[{index}]"
        key = entry.get("global_group_id", where)
        for name in select(entry, modules, where):
            if name not in taken and entry.get("sparse_ratio") is not None:
                taken.add(name)
                members.setdefault(key, []).append((name, entry))
    return [_current_group(own) for own in members.values()]


def _current_group(members: Sequence[tuple[str, Entry]]) -> LayerGroup:
    _, entry = members[0]
    limits = tuple(cast("float", one.get("max_sparse_ratio") or 1.0) for _, one in members)
    decided = {*SELECTION_KEYS, "sparse_ratio", "global_group_id", "max_sparse_ratio"}
    settings = {key: value for key, value in entry.items() if key not in decided}
    total = cast("float", entry["sparse_ratio"])
    return LayerGroup(tuple(name for name, _ in members), total, limits, "sparse_ratio", settings)
