"""Registrations of algorithms by the user, in one file per Python environment.

The file lies in the user's configuration folder, so that it outlives upgrades of the library:
`$XDG_CONFIG_HOME/nni/algorithms-<environment>.json`, `~/.config` where that variable is not set.
"""

import fcntl
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, get_args

from nni.durable_files import write_whole
from nni.hpo.registry.built_in import BUILT_IN
from nni.hpo.registry.class_check import check_class
from nni.hpo.registry.declaration import accept_any_space
from nni.hpo.registry.entries import AlgorithmEntry, Kind, folded_name
from nni.hpo.registry.validation import ClassArgsValidator

_KEYS: Final = frozenset({"algoType", "builtinName", "className", "classArgsValidator"})
_REQUIRED: Final = ("algoType", "builtinName", "className")
_CLASSES: Final = frozenset({"className", "classArgsValidator"})
_NAME_LIMIT: Final = 128
_CLASS_NAME_LIMIT: Final = 500


def registry_file() -> Path:
    """Return the path of this Python environment's registrations; the file need not exist."""
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    environment = hashlib.sha256(os.path.realpath(sys.prefix).encode()).hexdigest()[:8]
    return Path(home).expanduser() / "nni" / f"algorithms-{environment}.json"


def registered() -> tuple[AlgorithmEntry, ...]:
    """Return the entries in the order of registration, without importing the classes.

    Raises:
        ValueError: the file cannot be read; the text names it and what to do.
    """
    return tuple(_entry(meta) for meta in _read(registry_file()))


def register(meta: object) -> AlgorithmEntry:
    """Check an algorithm; add its entry to the registry file, replacing its name's; return it.

    Args:
        meta: content of a meta file: `algoType`, `builtinName`, `className` and perhaps
            `classArgsValidator`.

    Raises:
        ValueError: a key is missing or wrong, the name means one of NNI's, or a class cannot be
            imported or is none of its kind.
    """
    checked = _checked(meta)
    entry = _entry(checked)
    check_class(checked["className"], entry.kind, "className")
    if "classArgsValidator" in checked:
        check_class(checked["classArgsValidator"], "validator", "classArgsValidator")
    with _changing() as known:
        others = [one for one in known if one["builtinName"] != entry.name]
        known[:] = [*others, checked]
    return entry


def unregister(name: str) -> None:
    """Remove a registration of the user; raise ValueError for a built-in or unknown name.

    Raises:
        ValueError: it is one of NNI's, or none is registered under this name.
    """
    if any(entry.name == name for entry in BUILT_IN):
        raise ValueError(f"{name!r} comes with NNI and cannot be unregistered")
    with _changing() as known:
        left = [one for one in known if one["builtinName"] != name]
        if len(left) == len(known):
            names = ", ".join(one["builtinName"] for one in known) or "none"
            raise ValueError(f"no algorithm is registered as {name!r}; registered: {names}")
        known[:] = left


def _checked(meta: object) -> dict[str, str]:
    if not isinstance(meta, dict):
        raise ValueError(f"a meta file must hold keys and values, got {meta!r:.200}")  # noqa: TRY004 - one type for all faults of an input
    unknown = sorted(map(str, meta.keys() - _KEYS))
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r}; known: {', '.join(sorted(_KEYS))}")
    checked = {key: value for key, value in meta.items() if value is not None}
    for key in _REQUIRED:
        if key not in checked:
            raise ValueError(f"{key} must be given")
    for key, value in checked.items():
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"{key} must be a text that is not empty, got {value!r:.200}")
    if checked["algoType"] not in get_args(Kind):
        kinds = ", ".join(get_args(Kind))
        raise ValueError(f"algoType must be one of {kinds}; got {checked['algoType']!r}")
    _check_name(checked["builtinName"], checked["algoType"])
    for key in _CLASSES & checked.keys():
        _check_class_name(checked[key], key)
    return checked


def _check_name(name: str, kind: str) -> None:
    """Raise ValueError for a name that lists, files or terminals cannot show, or that is NNI's."""
    if len(name) > _NAME_LIMIT or not name.isprintable() or set(name) & set("/\\"):
        raise ValueError(
            f"builtinName must be 1 to {_NAME_LIMIT} printable characters without a slash, got "
            f"{name!r:.200}"
        )
    for entry in BUILT_IN:
        same = entry.kind == kind and folded_name(entry.name) == folded_name(name)
        if same or entry.name == name:
            raise ValueError(
                f"builtinName {name!r} means the {entry.kind} {entry.name}, which comes with NNI; "
                "choose another one"
            )


def _check_class_name(name: str, key: str) -> None:
    """Raise ValueError unless a name has the form `module.class`."""
    if "." not in name:
        raise ValueError(f"{key} must name its module, as in my_package.MyClass; got {name!r:.200}")
    parts = name.split(".")
    if len(name) > _CLASS_NAME_LIMIT or not all(part.isidentifier() for part in parts):
        raise ValueError(
            f"{key} must be names of Python with dots between them, as in my_package.MyClass, of "
            f"at most {_CLASS_NAME_LIMIT} characters; got {name!r:.200}"
        )


def _entry(meta: Mapping[str, str]) -> AlgorithmEntry:
    kind: Kind = meta["algoType"]  # type: ignore[assignment] # checked when it was registered
    validator = meta.get("classArgsValidator", "")
    return AlgorithmEntry(
        name=meta["builtinName"],
        kind=kind,
        class_path=_import_path(meta["className"]),
        documented_path=meta["className"],
        validator=_import_path(validator) if validator else _ANYTHING,
        space_check=_NO_CHECK,
        source="user",
    )


def _import_path(class_name: str) -> str:
    module, _, attribute = class_name.rpartition(".")
    return f"{module}:{attribute}"


def _read(path: Path) -> list[dict[str, str]]:
    try:
        content = json.loads(path.read_text("utf-8"))
        return [_written(one) for one in content["algorithms"]]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"the registered algorithms in {path} cannot be read ({error}); mend or delete the file"
        ) from error


def _written(meta: object) -> dict[str, str]:
    """Return an entry of the file; raise ValueError for one that `register` has not written."""
    if not isinstance(meta, dict) or not all(isinstance(text, str) for text in meta.values()):
        raise ValueError(f"{meta!r:.200} is no entry")
    if not meta.keys() >= set(_REQUIRED) or meta["algoType"] not in get_args(Kind):
        raise ValueError(f"{meta!r:.200} is no entry")
    return meta


@contextmanager
def _changing() -> Iterator[list[dict[str, str]]]:
    """Yield the entries to change, and write them back atomically, under a file lock."""
    path = registry_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = _read(path)
        yield known
        write_whole(path, json.dumps({"algorithms": known}, indent=2) + "\n")


_ANYTHING: Final = ClassArgsValidator()
_NO_CHECK: Final = f"{accept_any_space.__module__}:{accept_any_space.__name__}"
