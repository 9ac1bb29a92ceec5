"""Translation of configuration lists of quantizers of NNI 2.x to those of NNI 3.0."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from nni.compression.config.legacy import check_exclude, unfolded
from nni.compression.config.quantization_defaults import (
    SCHEMES,
    SIGNS,
    TENSOR_KINDS,
    SchemeAndSign,
    TensorKind,
    chosen_default,
    scheme_and_sign,
)
from nni.compression.config.quantization_settings import (
    FIRST_INPUT,
    FIRST_OUTPUT,
    check_start_step,
)
from nni.compression.config.selection import ModuleInfo, check_selection
from nni.compression.config.settings import ConfigListError, unknown_key

QUANTIZATION_LEGACY_KEYS: Final = frozenset(
    {"exclude", "op_partial_names", "quant_bits", "quant_types"}
)
"""Keys of NNI 2.x that NNI 3.0 lacks."""

_KEYS: Final = QUANTIZATION_LEGACY_KEYS | {
    *("op_names", "op_types", "quant_dtype", "quant_scheme", "quant_start_step")
}
_TARGETS: Final[Mapping[TensorKind, str]] = {
    "weight": "weight",
    "input": FIRST_INPUT,
    "output": FIRST_OUTPUT,
}
_MOST_BITS: Final = 32

Entry = Mapping[str, object]


def is_legacy_quantization(config_list: Sequence[Entry]) -> bool:
    """Return whether an entry has a key that only NNI 2.x knows."""
    return any(QUANTIZATION_LEGACY_KEYS & entry.keys() for entry in config_list)


def translated_quantization(
    config_list: Sequence[Entry], modules: Mapping[str, ModuleInfo]
) -> list[dict[str, object]]:
    """Check a list of NNI 2.x; return NNI 3.0 entries, each selected module once; last wins.

    The last entry that matches a module decides about it. Types without `quant_dtype` and
    `quant_scheme` are `uint` and `per_tensor_affine`, unless `set_quant_scheme_dtype` has chosen
    others.

    Args:
        config_list: entries of NNI 2.x; not changed.
        modules: modules of the model by dotted name.

    Returns:
        Entries with `op_names`, `target_names` and `target_settings`.

    Raises:
        ConfigListError: an entry breaks a rule.

    Examples:
        >>> linear = ModuleInfo("Linear", frozenset({"weight"}))
        >>> entry = {"op_names": ["a"], "quant_types": ["weight"], "quant_bits": 4}
        >>> translated_quantization([entry], {"a": linear})[0]["target_settings"]["weight"]
        {'quant_dtype': 'uint4', 'quant_scheme': 'affine', 'granularity': 'default'}
    """
    for index, entry in enumerate(config_list):
        _check(entry, f"config_list[{index}]")
    return [_translated(entry, names) for entry, names in unfolded(config_list, modules)]


def _translated(entry: Entry, names: list[str]) -> dict[str, object]:
    kinds = cast("Sequence[TensorKind]", entry["quant_types"])
    per_target = {_TARGETS[kind]: _settings(entry, kind) for kind in kinds}
    return {"op_names": names, "target_names": [*per_target], "target_settings": per_target}


def _settings(entry: Entry, kind: TensorKind) -> dict[str, object]:
    chosen = _scheme_and_sign(entry, kind)
    bits = _of_kind(entry["quant_bits"], kind)
    values: dict[str, object] = {
        "quant_dtype": f"{'int' if chosen.signed else 'uint'}{bits}",
        "quant_scheme": chosen.scheme,
        "granularity": chosen.granularity,
    }
    start = entry.get("quant_start_step")
    return values if start is None else {**values, "quant_start_step": start}


def _scheme_and_sign(entry: Entry, kind: TensorKind) -> SchemeAndSign:
    default = chosen_default(kind) or scheme_and_sign(kind, "per_tensor_affine", "uint")
    scheme = _of_kind(entry.get("quant_scheme"), kind)
    dtype = _of_kind(entry.get("quant_dtype"), kind)
    given = scheme_and_sign(kind, str(scheme), str(dtype))
    return SchemeAndSign(
        scheme=default.scheme if scheme is None else given.scheme,
        granularity=default.granularity if scheme is None else given.granularity,
        signed=default.signed if dtype is None else given.signed,
    )


def _of_kind(value: object, kind: TensorKind) -> object:
    """Return the value for a kind of tensor; None if it is not given."""
    return value.get(kind) if isinstance(value, Mapping) else value


def _check(entry: Entry, where: str) -> None:
    for key in entry:
        if key not in _KEYS:
            raise unknown_key(where, key, _KEYS)
    check_selection(entry, where)
    check_exclude(entry, where)
    if entry.get("exclude"):
        return
    for key in ("quant_types", "quant_bits"):
        if entry.get(key) is None:
            raise ConfigListError(where, f"needs {key}, or exclude: True")
    kinds = _checked_kinds(entry["quant_types"], f"{where}.quant_types")
    bits = entry["quant_bits"]
    missing = [kind for kind in kinds if isinstance(bits, Mapping) and kind not in bits]
    if missing:
        raise ConfigListError(
            f"{where}.quant_bits", f"lacks {missing[0]!r}, which quant_types lists; add it"
        )
    _check_values(bits, f"{where}.quant_bits", _check_bits)
    _check_values(entry.get("quant_scheme"), f"{where}.quant_scheme", _one_of(SCHEMES))
    _check_values(entry.get("quant_dtype"), f"{where}.quant_dtype", _one_of(SIGNS))
    if entry.get("quant_start_step") is not None:
        check_start_step(entry["quant_start_step"], f"{where}.quant_start_step")


def _checked_kinds(kinds: object, where: str) -> Sequence[str]:
    listed = isinstance(kinds, list | tuple) and kinds
    if not listed or not all(kind in TENSOR_KINDS for kind in cast("Sequence[object]", kinds)):
        raise ConfigListError(where, f"must be a list of {', '.join(TENSOR_KINDS)}, got {kinds!r}")
    return cast("Sequence[str]", kinds)


def _check_values(value: object, where: str, check: Callable[[object, str], None]) -> None:
    """Apply a check to one value for all kinds of tensors, or to each value of a dict by kind."""
    if not isinstance(value, Mapping):
        if value is not None:
            check(value, where)
        return
    for kind, one in value.items():
        if kind not in TENSOR_KINDS:
            raise unknown_key(where, kind, TENSOR_KINDS)
        check(one, f"{where}.{kind}")


def _check_bits(value: object, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_BITS:
        raise ConfigListError(where, f"must be an int from 1 to {_MOST_BITS}, got {value!r}")


def _one_of(known: Sequence[str]) -> Callable[[object, str], None]:
    def check(value: object, where: str) -> None:
        if value not in known:
            raise ConfigListError(where, f"must be one of {', '.join(known)}, got {value!r}")

    return check
