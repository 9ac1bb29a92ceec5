"""Wheels of all distributions of this repository: `python -m tests.support.wheels FOLDER`."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[2]
DISTRIBUTIONS = tuple(
    sorted(
        path.parent.relative_to(ROOT)
        for pattern in ("*/pyproject.toml", "services/*/pyproject.toml")
        for path in ROOT.glob(pattern)
    )
)
CHECKSUMS = "SHA256SUMS"
"""File beside the wheels with their hashes, which `sha256sum --check` takes."""
_BUILD = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
_UMASK = 0o022


def source_files(distribution: Path) -> Iterator[Path]:
    """Yield the files of a distribution that git tracks or would add, relative to its folder."""
    listed = _git(
        "ls-files", "--cached", "--others", "--exclude-standard", "-z", ".", at=distribution
    )
    for name in filter(None, sorted(listed.split("\0"))):
        if (ROOT / distribution / name).exists():
            yield Path(name)


def project_of(distribution: Path) -> dict[str, Any]:
    """Return the table `project` of a distribution."""
    content = tomllib.loads((ROOT / distribution / "pyproject.toml").read_text("utf-8"))
    project: dict[str, Any] = content["project"]
    return project


def build_time() -> str:
    """Return `SOURCE_DATE_EPOCH` of the environment, else the time of the latest commit."""
    return os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct").strip()


def copy_sources(target: Path) -> None:
    """Copy the source files of all distributions to a folder."""
    for distribution in DISTRIBUTIONS:
        for file in source_files(distribution):
            copy = target / distribution / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / distribution / file, copy, follow_symlinks=False)


def build_wheels(target: Path) -> None:
    """Write one wheel of each distribution, and `SHA256SUMS`, to `target`.

    Sources are copied first: setuptools reuses its `build` folder, so that deleted modules would
    reappear in the wheel.
    """
    with TemporaryDirectory() as sources:
        copy_sources(Path(sources))
        build_in(Path(sources), target)


def build_in(sources: Path, target: Path) -> None:
    """Build wheels in a folder of `copy_sources`; the same sources give the same bytes anywhere.

    Times, modes and order of the files in a wheel do not depend on folder, user or checkout.
    """
    target.mkdir(parents=True, exist_ok=True)
    for path in target.glob("*.whl"):
        path.unlink()
    variables = {
        **os.environ,
        "SOURCE_DATE_EPOCH": build_time(),
        "PYTHONHASHSEED": "0",
        "LC_ALL": "C.UTF-8",
    }
    for distribution in DISTRIBUTIONS:
        _set_modes(sources / distribution)
        done = subprocess.run(
            [sys.executable, "-P", "-c", _BUILD, str(target.absolute())],
            cwd=sources / distribution,
            env=variables,
            umask=_UMASK,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{distribution} gives no wheel: {done.stdout}{done.stderr}")
    write_checksums(target)


def write_checksums(target: Path) -> None:
    """Write `SHA256SUMS`, with the hashes of all other files of a folder."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(target.iterdir())
        if path.is_file() and path.name != CHECKSUMS
    ]
    (target / CHECKSUMS).write_text("".join(lines))


@dataclass(frozen=True)
class SharedWheels:
    """Wheels of all distributions that the tests of one run share."""

    folder: Path
    sources: Path
    """What they were built from, unchanged."""


def shared_wheels(folder: Path) -> SharedWheels:
    """Return wheels that the first caller of a test run builds.

    Args:
        folder: base folder of the temporary folders of one worker, or of the run without workers.
    """
    run = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    shared = SharedWheels(run / "shared-wheels", run / "shared-wheel-sources")
    with (run / "shared-wheels.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared.folder / CHECKSUMS).exists():
            copy_sources(shared.sources)
            with TemporaryDirectory() as copy:
                shutil.copytree(shared.sources, copy, symlinks=True, dirs_exist_ok=True)
                build_in(Path(copy), shared.folder)
    return shared


def _set_modes(folder: Path) -> None:
    """Give all files of a folder one of the two modes that git knows."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)


def _git(*arguments: str, at: Path = Path()) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT / at, capture_output=True, text=True, check=True
    ).stdout


def main(target: Path) -> None:
    """Write wheels, bills of materials and hashes."""
    # Not at the top: the tests of wheels need no library for bills of materials.
    from tests.support.sbom import write_bills

    build_wheels(target)
    write_bills(target, int(build_time()))
    write_checksums(target)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
