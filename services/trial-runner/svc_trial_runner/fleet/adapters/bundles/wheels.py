"""Wheels for a worker's interpreter: from a folder of this machine, else downloaded by pip."""

import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from svc_trial_runner.fleet.adapters.bundles.installed import NeededDistribution
from svc_trial_runner.fleet.domain.distributions import WorkerTarget, parse_wheel_name, runs_on
from svc_trial_runner.fleet.ports import PlatformError

_TIMEOUT_S: Final = 300.0
_DATA: Final = ".data"
_PACKAGES: Final = frozenset({"purelib", "platlib"})
"""Folders below `.data` whose content is installed beside the packages."""


class WheelFolder:
    """Folder of wheels that were downloaded, or provided by an operator.

    Args:
        folder: created when a wheel is downloaded.
        pip_options: further options of `pip download`, e.g. `--no-index`.
    """

    def __init__(self, folder: Path, pip_options: Sequence[str] = ()) -> None:
        self._folder = folder
        self._pip_options = tuple(pip_options)

    def wheel(self, needed: NeededDistribution, target: WorkerTarget) -> Path:
        """Return a distribution's wheel from the folder, else downloaded by pip; raise if it fails.

        Raises:
            PlatformError: it is not in the folder, and pip cannot download it.
        """
        found = self._find(needed, target)
        if found is None:
            self._download(needed, target)
            found = self._find(needed, target)
        if found is None:
            raise self._error(needed, target, "what pip downloaded does not run there")
        return found

    def _find(self, needed: NeededDistribution, target: WorkerTarget) -> Path | None:
        if not self._folder.is_dir():
            return None
        for path in sorted(self._folder.glob("*.whl"), reverse=True):
            wheel = parse_wheel_name(path.name)
            if (
                wheel is not None
                and wheel.name == needed.name
                and wheel.version == (needed.version or wheel.version)
                and runs_on(wheel.tag, target)
            ):
                return path
        return None

    def _download(self, needed: NeededDistribution, target: WorkerTarget) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=self._folder) as draft:
            try:
                done = subprocess.run(
                    [
                        *(sys.executable, "-m", "pip", "--disable-pip-version-check"),
                        *("--no-input", "download", "--quiet", "--no-deps"),
                        "--only-binary=:all:",
                        *("--python-version", f"{target.python[0]}.{target.python[1]}"),
                        *("--implementation", "cp", "--abi", target.python_tag),
                        *("--abi", "abi3", "--abi", "none"),
                        *(f"--platform={tag}" for tag in target.platform_tags),
                        *("--dest", draft, *self._pip_options, needed.requirement),
                    ],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=_TIMEOUT_S,
                )
            except subprocess.TimeoutExpired as error:
                raise self._error(needed, target, f"pip has not ended: {error}") from error
            if done.returncode:
                reason = (done.stderr.strip().splitlines() or ["pip names no reason"])[-1]
                raise self._error(needed, target, reason)
            for path in Path(draft).iterdir():
                path.replace(self._folder / path.name)

    def _error(
        self, needed: NeededDistribution, target: WorkerTarget, reason: str
    ) -> PlatformError:
        version = f"{target.python[0]}.{target.python[1]}"
        return PlatformError(
            f"there is no wheel of {needed.requirement} for Python {version} on"
            f" {target.platform_tag}: {reason}",
            f"put that wheel into {self._folder}, or use Python"
            f" {sys.version_info[0]}.{sys.version_info[1]} on the worker, as here",
        )


def wheel_files(wheel: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name in the bundle and content of each file of a wheel.

    Raises:
        PlatformError: the file is no wheel.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            for entry in sorted(archive.infolist(), key=lambda one: one.filename):
                name = _installed_name(entry.filename)
                if name and not entry.is_dir():
                    yield name, archive.read(entry)
    except (zipfile.BadZipFile, OSError) as error:
        raise PlatformError(
            f"{wheel} is no wheel: {error}", f"remove {wheel} and try again"
        ) from error


def _installed_name(name: str) -> str:
    """Return where a member of a wheel is installed; empty: not beside the packages, or unsafe."""
    parts = name.split("/")
    if name.startswith("/") or ".." in parts:
        return ""
    if not parts[0].endswith(_DATA):
        return name
    return "/".join(parts[2:]) if len(parts) > 2 and parts[1] in _PACKAGES else ""  # noqa: PLR2004
