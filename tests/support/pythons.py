"""Python interpreters of this machine that NNI supports."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

Version: TypeAlias = tuple[int, ...]

OLDEST: Final = (3, 11)
_FOLDERS: Final = ("/usr/bin", "/usr/local/bin", "~/.pyenv/versions/*/bin")
"""Where Debian, a build from source and pyenv put interpreters."""
_PROBE: Final = "from sys import *; v = version_info; print(*v[:3], implementation.name, v[3])"


@cache
def supported_pythons() -> dict[str, Path]:
    """Return one interpreter of each minor version from 3.11 on, by its version, oldest first.

    Of 3.11 it is the oldest and the newest patch that the machine has: Debian's lacks what others
    have. `NNI_PYTHONS` adds interpreters, separated by colons. That of the tests is among them, and
    goes before others of its minor version, as those that are named go before those that are found.
    """
    named = [Path(one) for one in os.environ.get("NNI_PYTHONS", "").split(":") if one]
    own = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    found: dict[Version, Path] = {}
    for path in [own, *named, *_candidates()]:
        found.setdefault(_version(path), path)
    return {".".join(map(str, one)): found[one] for one in versions_to_try(found)}


def oldest_and_newest() -> dict[str, Path]:
    """Return the interpreters of the oldest and the newest supported version; perhaps the same."""
    found = supported_pythons()
    return {version: found[version] for version in (next(iter(found)), list(found)[-1])}


def versions_to_try(found: Iterable[Version]) -> list[Version]:
    """Return the versions that tests run on, ascending, of those found in order of preference."""
    by_minor: dict[Version, list[Version]] = {}
    for version in found:
        if version >= OLDEST:
            by_minor.setdefault(version[:2], []).append(version)
    chosen = {versions[0] for versions in by_minor.values()}
    if oldest := by_minor.get(OLDEST):
        chosen |= {min(oldest), max(oldest)}
    return sorted(chosen)


def own_version() -> str:
    """Return the version of the interpreter that runs the tests, e.g. `3.11.7`."""
    return ".".join(map(str, sys.version_info[:3]))


def other_pythons() -> dict[str, Path]:
    """Return the interpreters beside the one that runs the tests, by version."""
    own = own_version()
    return {version: path for version, path in supported_pythons().items() if version != own}


def _candidates() -> list[Path]:
    folders = [*_FOLDERS, *os.environ.get("PATH", "").split(":")]
    found: list[Path] = []
    for folder in folders:
        root = Path(folder).expanduser()
        anchor = Path(root.anchor or ".")
        found += sorted(anchor.glob(f"{root.relative_to(anchor).as_posix()}/python3.[0-9]*"))
    return [
        path
        for path in dict.fromkeys(found)
        if path.name.removeprefix("python3.").isdecimal() and not _is_script(path)
    ]


def _is_script(path: Path) -> bool:
    """Return whether this is a shim of pyenv: a slow script of an interpreter found anyway."""
    try:
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return True


def _version(path: Path) -> Version:
    """Return the version of a released CPython; empty: it is none."""
    try:
        done = subprocess.run(
            [path, "-I", "-c", _PROBE], capture_output=True, text=True, timeout=20, check=False
        )
    except OSError:
        return ()
    words = done.stdout.split()
    if done.returncode != 0 or words[3:] != ["cpython", "final"]:
        return ()
    return tuple(map(int, words[:3]))


if __name__ == "__main__":
    for one in other_pythons().values():
        print(one)
