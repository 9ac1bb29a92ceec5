"""Registrations of algorithms by the user, in one file per Python environment.

The file lies in the user's configuration folder, so that it outlives upgrades of the library:
`$XDG_CONFIG_HOME/nni/algorithms-<environment>.json`, `~/.config` where that variable is not set.
"""

import fcntl
import hashlib
import importlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, get_args

from nni.durable_files import write_whole
from nni.hpo.registry.built_in import BUILT_IN
from nni.hpo.registry.declaration import BASES, accept_any_space
from nni.hpo.registry.entries import AlgorithmEntry, Kind
from nni.hpo.registry.validation import ClassArgsValidator

_KEYS: Final = frozenset({"algoType", "builtinName", "className", "classArgsValidator"})
_REQUIRED: Final = ("algoType", "builtinName", "className")


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
        ValueError: a key is missing or wrong, the name is one of NNI's, or a class cannot be
            imported or is none of its kind.
    """
    checked = _checked(meta)
    entry = _entry(checked)
    _check_class(checked["className"], BASES[entry.kind], "className")
    if "classArgsValidator" in checked:
        _check_class(checked["classArgsValidator"], ClassArgsValidator, "classArgsValidator")
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
    if any(entry.name == checked["builtinName"] for entry in BUILT_IN):
        raise ValueError(
            f"builtinName {checked['builtinName']!r} is the name of an algorithm that comes with "
            "NNI; choose another one"
        )
    return checked


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


def _check_class(class_name: str, base: type, key: str) -> None:
    module, _, attribute = class_name.rpartition(".")
    if not module:
        raise ValueError(
            f"{key} must name its module, as in my_package.MyClass; got {class_name!r}"
        )
    try:
        found = getattr(importlib.import_module(module), attribute)
    except ImportError as error:
        raise ValueError(
            f"{key}: {module!r} cannot be imported ({error}); install its package into "
            f"{sys.prefix} first"
        ) from error
    except AttributeError:
        raise ValueError(f"{key}: module {module!r} has no {attribute!r}") from None
    if not isinstance(found, type) or not issubclass(found, base):
        raise ValueError(  # noqa: TRY004 - one type for all faults of an input
            f"{key}: {class_name} must be a subclass of {base.__qualname__}"
        )


def _read(path: Path) -> list[dict[str, str]]:
    try:
        content = json.loads(path.read_text("utf-8"))
        return [dict(one) for one in content["algorithms"]]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"the registered algorithms in {path} cannot be read ({error}); mend or delete the file"
        ) from error


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
