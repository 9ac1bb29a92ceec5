"""Unpacking of bundles on a worker: checked by hash, put into place by a rename.

Standard library only. Two processes that unpack one bundle at once, on one machine or two that
share a home, both succeed: the first rename counts, and the second folder is removed.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from nni_wire.tar_reader import Kind, Member, TarError, TarReader
from svc_trial_runner.fleet.adapters.bundles.worker_folders import (
    DRAFT,
    PREPARATION,
    PROCESS,
    WorkerError,
    WorkerFolders,
    file_errors,
    read_fields,
    remove_folder,
)
from svc_trial_runner.fleet.adapters.bundles.worker_machine import unpacked_bundles

KEPT: Final = 2
"""Bundles that stay although no agent uses them."""
REQUIREMENTS: Final = "requirements.txt"
"""File of a bundle with the distributions that have to be installed by pip on the worker."""
SITE: Final = "site"
"""Folder of a bundle with the packages of the agent."""
_ABANDONED_S: Final = 3600.0
"""Age at which an unfinished folder belongs to no process any more."""
_CHUNK_BYTES: Final = 1024 * 1024
_PIP_TIMEOUT_S: Final = 600.0


def unpack(folders: WorkerFolders, digest: str, source: BinaryIO) -> bool:
    """Unpack a bundle from a stream; return False if it was unpacked already.

    Args:
        folders: of NNI.
        digest: SHA-256 of the stream, in hexadecimal; the name of the folder.
        source: the bundle, a gzip-compressed tar; read to its end.

    Raises:
        WorkerError: the stream was cut or changed, or the disk refuses.
    """
    place = folders.bundle(digest)
    folders.open()
    with file_errors(folders.base):
        if place.is_dir():
            os.utime(place)
            return False
        draft = Path(tempfile.mkdtemp(prefix=DRAFT, dir=folders.bundles))
        try:
            archive = draft / "bundle"
            _receive(source, archive, digest)
            content = draft / "content"
            content.mkdir()
            _unpack_members(archive, content)
            _install_missing(content)
            os.utime(content)
            try:
                content.rename(place)
            except OSError:
                if not place.is_dir():
                    raise
                return False
        finally:
            remove_folder(draft)
        remove_unused(folders)
    return True


def _receive(source: BinaryIO, archive: Path, digest: str) -> None:
    hashed = hashlib.sha256()
    size = 0
    with archive.open("xb") as file:
        while chunk := source.read(_CHUNK_BYTES):
            hashed.update(chunk)
            file.write(chunk)
            size += len(chunk)
    if hashed.hexdigest() != digest:
        raise WorkerError(
            "bundle_damaged",
            f"the bundle arrived cut or changed: {size} bytes are not those of {digest[:12]}",
            permanent=False,
        )


def _unpack_members(archive: Path, folder: Path) -> None:
    """Write the regular files and folders of an archive; refuse all else.

    Raises:
        WorkerError: the archive has another member, or a name that leads out of the folder.
        OSError: a file cannot be written.
    """
    made = {folder}
    try:
        with archive.open("rb") as file:
            reader = TarReader(file)
            for member in reader:
                path = folder.joinpath(*_parts(member))
                above = path if member.kind is Kind.FOLDER else path.parent
                if above not in made:
                    above.mkdir(parents=True, exist_ok=True)
                    made.add(above)
                if member.kind is Kind.FILE:
                    with path.open("xb") as target:
                        reader.copy_content(target)
                    path.chmod(0o700 if member.executable else 0o600)
    except (TarError, FileExistsError) as error:
        raise WorkerError("bundle_damaged", f"the bundle cannot be unpacked: {error}") from error


def _parts(member: Member) -> list[str]:
    """Return the parts of a member's name; raise TarError unless it may be written."""
    parts = member.name.rstrip("/").split("/")
    if member.kind is Kind.OTHER or not all(parts) or {".", ".."} & {*parts}:
        raise TarError(f"{member.name[:200]!r} is refused")
    return parts


def _install_missing(content: Path) -> None:
    """Install by pip the distributions that the bundle lacks, if it names any.

    Raises:
        WorkerError: there is no pip, or it fails.
    """
    wanted = content / REQUIREMENTS
    if not wanted.is_file():
        return
    names = " ".join(wanted.read_text("utf-8").split())
    try:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"),
                *("install", "--quiet", "--no-deps", "--only-binary=:all:", "--no-compile"),
                *("--target", str(content / SITE), "--requirement", str(wanted)),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PIP_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise WorkerError("pip_failed", f"pip has not ended: {error}", permanent=False) from error
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["it names no reason"])[-1]
        raise WorkerError(
            "distribution_missing",
            f"{names} could be had neither by the fleet nor by pip on {os.uname().nodename}:"
            f" {reason}",
            f"put wheels of {names} for Python {sys.version_info[0]}.{sys.version_info[1]}"
            " into fleet/wheels below NNI_HOME of the installation",
        )


def remove_unused(folders: WorkerFolders, kept: int = KEPT) -> list[str]:
    """Remove unused bundles but the `kept` last used, and abandoned drafts; return their hashes."""
    used = {
        read_fields(folders.agent(name) / file).get("bundle")
        for name in folders.names()
        for file in (PREPARATION, PROCESS)
    }
    removed = []
    for digest in unpacked_bundles(folders)[kept:]:
        if digest not in used:
            with suppress(OSError):
                # Renamed first, so that no agent starts from half of a bundle.
                gone = folders.bundles / f"{DRAFT}{digest}"
                folders.bundle(digest).rename(gone)
                removed.append(digest)
                remove_folder(gone)
    _remove_abandoned(folders)
    return removed


def _remove_abandoned(folders: WorkerFolders) -> None:
    oldest = time.time() - _ABANDONED_S
    for entry in os.scandir(folders.bundles):
        with suppress(OSError):
            if entry.name.startswith(DRAFT) and entry.stat().st_mtime < oldest:
                remove_folder(Path(entry.path))
