"""Python interpreters of this machine that NNI supports."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

OLDEST: Final = (3, 11)
_FOLDERS: Final = ("/usr/bin", "/usr/local/bin", "~/.pyenv/versions/*/bin")
"""Where Debian, a build from source and pyenv put interpreters."""
_PROBE: Final = "from sys import *; v = version_info; print(*v[:3], implementation.name, v[3])"


@cache
def supported_pythons() -> dict[str, Path]:
    """Return one interpreter of each minor version from 3.11 on, by its version, oldest first.

    `NNI_PYTHONS` adds interpreters, separated by colons. That of the tests is among them, and goes
    before others of its minor version, as those that are named go before those that are found.
    """
    named = [Path(one) for one in os.environ.get("NNI_PYTHONS", "").split(":") if one]
    own = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    found: dict[tuple[int, ...], tuple[str, Path]] = {}
    for path in [own, *named, *_candidates()]:
        version = _version(path)
        if version >= OLDEST:
            found.setdefault(version[:2], (".".join(map(str, version)), path))
    return dict(found[minor] for minor in sorted(found))


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


def _version(path: Path) -> tuple[int, ...]:
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
