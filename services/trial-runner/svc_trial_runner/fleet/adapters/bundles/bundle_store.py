"""Store of bundles in a folder of this machine: packed once for each kind of worker."""

import asyncio
import gzip
import hashlib
import io
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from svc_common.durable_files import replace_durably
from svc_common.logs import get_logger
from svc_common.storage.atomic_files import TEMPORARY, storage_error
from svc_trial_runner.fleet.adapters.bundles import bundle_main
from svc_trial_runner.fleet.adapters.bundles.installed import (
    AGENT,
    NeededDistribution,
    can_be_copied,
    fingerprint,
    installed_files,
    needed_distributions,
)
from svc_trial_runner.fleet.adapters.bundles.wheels import WheelFolder, wheel_files
from svc_trial_runner.fleet.adapters.bundles.worker_bundles import REQUIREMENTS, SITE
from svc_trial_runner.fleet.adapters.bundles.worker_commands import bundle_digest
from svc_trial_runner.fleet.adapters.bundles.worker_machine import wheel_platform
from svc_trial_runner.fleet.domain.distributions import WorkerTarget
from svc_trial_runner.fleet.ports import PlatformError

_FORMAT: Final = "1"
"""Changes with the layout of bundles."""
_SUFFIX: Final = ".tar.gz"
_LEVEL: Final = 6
_KEPT: Final = 8
"""Bundles that stay; there is one for each kind of worker and each state of the packages here."""
_ABANDONED_S: Final = 3600.0
_KEY_CHARACTERS: Final = 12

Content = Path | bytes
"""Content of a member: a file here, or bytes."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """Files of a bundle, and whether they are complete without pip on the worker."""

    files: Mapping[str, Content]
    is_complete: bool
    """False if the worker has to install something by pip."""


class DirectoryBundleStore:
    """Store of bundles (packed agents) in a folder: packs one per kind of worker, keeps the last 8.

    Two processes that pack the same bundle at once write the same bytes, each into a file of its
    own that is then renamed; a process that is killed leaves a file that a later one removes.

    Args:
        folder: of bundles.
        wheels: folder of wheels for interpreters other than this one.
        pip_options: further options of `pip download`.
        root: distribution that is packed with all that it requires.
    """

    def __init__(
        self,
        folder: Path,
        wheels: Path,
        pip_options: Sequence[str] = (),
        root: str = AGENT,
    ) -> None:
        self._folder = folder
        self._wheels = WheelFolder(wheels, pip_options)
        self._root = root
        self._here = WorkerTarget(sys.version_info[:2], wheel_platform())
        self._lock = asyncio.Lock()
        self._verified: set[Path] = set()

    async def bundle(self, python: tuple[int, int], platform_tag: str) -> Path:
        """Return the path of a bundle for a worker's Python: cached, else packed in a thread."""
        target = WorkerTarget(python, platform_tag)
        async with self._lock:  # one at a time: the next caller finds it
            try:
                return await asyncio.to_thread(self._bundle, target)
            except OSError as error:
                raise PlatformError(
                    f"the bundle of agents cannot be packed: {storage_error(error).message}",
                    f"free space for {self._folder}, and let this user write there",
                ) from error

    def _bundle(self, target: WorkerTarget) -> Path:
        distributions = needed_distributions(target, self._root)
        key = _key(target, distributions)
        prefix = f"nni-agent-{target.python_tag}-{target.platform_tag}-{key}-"
        known = self._known(prefix)
        if known is not None:
            return known
        plan = self._plan(distributions, target)
        self._folder.mkdir(parents=True, exist_ok=True)
        if not plan.is_complete:
            prefix = prefix.replace(key, "partial")  # a later one may be complete
        return self._write(plan, prefix)

    def _known(self, prefix: str) -> Path | None:
        for path in sorted(self._folder.glob(f"{prefix}*{_SUFFIX}")):
            if path not in self._verified:
                with path.open("rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
                if digest != bundle_digest(path):
                    get_logger().warning("damaged bundle removed", path=str(path))
                    path.unlink(missing_ok=True)
                    continue
                self._verified.add(path)
            path.touch()
            return path
        return None

    def _plan(self, distributions: Sequence[NeededDistribution], target: WorkerTarget) -> _Plan:
        files: dict[str, Content] = {"run.py": Path(bundle_main.__file__)}
        left: list[str] = []
        for needed in distributions:
            found: Mapping[str, Content]
            if needed.is_own or can_be_copied(needed, target, self._here):
                found = dict(installed_files(needed))
            else:
                try:
                    found = dict(wheel_files(self._wheels.wheel(needed, target)))
                except PlatformError as error:
                    get_logger().warning(
                        "left to pip on the worker",
                        distribution=needed.requirement,
                        reason=error.message,
                        remedy=error.remedy,
                    )
                    left.append(needed.requirement)
                    continue
            files.update({f"{SITE}/{name}": content for name, content in found.items()})
        if left:
            files[REQUIREMENTS] = "".join(f"{line}\n" for line in left).encode()
        return _Plan(files, is_complete=not left)

    def _write(self, plan: _Plan, prefix: str) -> Path:
        """Pack the files, remove old bundles; return the path, named by the hash of the content."""
        descriptor, name = tempfile.mkstemp(prefix=TEMPORARY, dir=self._folder)
        draft = Path(name)
        try:
            with open(descriptor, "w+b") as file:  # noqa: PTH123 - a descriptor
                pack_files(plan.files, file)
                file.seek(0)
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            place = self._folder / f"{prefix}{digest}{_SUFFIX}"
            replace_durably(draft, place)
        finally:
            draft.unlink(missing_ok=True)
        self._verified.add(place)
        self._remove_old()
        return place

    def _remove_old(self) -> None:
        """Remove all but the last 8 used bundles, and drafts older than an hour."""
        aged: list[tuple[float, Path]] = []
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):  # another process removes, too
                aged.append((path.stat().st_mtime, path))
        bundles = sorted(one for one in aged if one[1].name.endswith(_SUFFIX))
        oldest = time.time() - _ABANDONED_S
        drafts = [one for one in aged if one[1].name.startswith(TEMPORARY) and one[0] < oldest]
        for _, path in bundles[:-_KEPT] + drafts:
            path.unlink(missing_ok=True)


def pack_files(files: Mapping[str, Content], target: BinaryIO) -> None:
    """Write files as a compressed tar that is reproducible: equal files give equal bytes.

    Args:
        files: name to content.
        target: file that is written.

    Raises:
        OSError: a file cannot be read or written.
    """
    with (
        gzip.GzipFile(
            filename="", fileobj=target, mode="wb", compresslevel=_LEVEL, mtime=0
        ) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in sorted(files):
            content = files[name]
            data = content if isinstance(content, bytes) else content.read_bytes()
            member = tarfile.TarInfo(name)
            member.size = len(data)
            member.mode = 0o644
            archive.addfile(member, io.BytesIO(data))


def _key(target: WorkerTarget, distributions: Sequence[NeededDistribution]) -> str:
    """Return a hash of a bundle's target and inputs, from metadata instead of all content."""
    parts = [
        _FORMAT,
        target.python_tag,
        target.platform_tag,
        Path(bundle_main.__file__).read_text(),
    ]
    parts += map(fingerprint, distributions)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_KEY_CHARACTERS]
