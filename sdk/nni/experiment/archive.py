"""Archive of an experiment: a ZIP of its log, values, files and code.

`manifest.json` names every other member with its size and SHA-256; nothing else may be in the file.
It is read as if a stranger had made it: no name leads out of its folder, nothing is a link, nothing
is larger than it says.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from nni.experiment.errors import ConfigError, Problem

FORM: Final = 1
"""Version of the layout that this module writes; it reads all up to it."""
MANIFEST: Final = "manifest.json"
CODE: Final = "code/"
"""Members below it are the trials' code; the others go to the services as they are."""
PIECE_BYTES: Final = 256 * 1024
FILE_LIMIT: Final = 202_000
SIZE_LIMIT_BYTES: Final = 16 * 1024**3
MANIFEST_LIMIT_BYTES: Final = 64 * 1024**2
_NAME_LIMIT_CHARACTERS: Final = 1_000
_DIGEST: Final = re.compile(r"[0-9a-f]{64}\Z")
_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}\Z")
_FIELD: Final = "--path"


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """Size, hash and executable bit of one file in an archive."""

    size_bytes: int
    sha256: str
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Manifest:
    """Manifest of an archive: experiment, version, search space, and all files with hashes."""

    experiment_id: str
    nni_version: str
    """Version of NNI that saved the archive."""
    saved_at: str
    """ISO 8601."""
    search_space: Any
    """The one in force; any JSON value."""
    files: Mapping[str, ArchivedFile]

    @property
    def code(self) -> dict[str, ArchivedFile]:
        """The files of the trials' code by their paths in its folder; empty if it was not saved."""
        return {
            name.removeprefix(CODE): member
            for name, member in self.files.items()
            if name.startswith(CODE)
        }


class ArchiveWriter:
    """Writer of an archive, a context manager; the archive is complete after `finish`.

    Args:
        file: open for writing.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self._files: dict[str, ArchivedFile] = {}

    def __enter__(self) -> ArchiveWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    @contextlib.contextmanager
    def member(self, name: str, *, executable: bool = False) -> Iterator[MemberWriter]:
        """Yield a writer of one member; record its size and hash afterwards."""
        with self._zip.open(zipfile.ZipInfo(name), "w", force_zip64=True) as target:
            writer = MemberWriter(target)
            yield writer
        self._files[name] = ArchivedFile(writer.size_bytes, writer.sha256(), executable)

    def finish(
        self, *, experiment_id: str, nni_version: str, saved_at: str, search_space: object
    ) -> None:
        """Write the manifest of all members that were written; none may follow."""
        manifest = {
            "form": FORM,
            "experimentId": experiment_id,
            "nniVersion": nni_version,
            "savedAt": saved_at,
            "searchSpace": search_space,
            "files": {
                name: {
                    "size": member.size_bytes,
                    "sha256": member.sha256,
                    **({"executable": True} if member.executable else {}),
                }
                for name, member in self._files.items()
            },
        }
        self._zip.writestr(MANIFEST, json.dumps(manifest, indent=1))


class MemberWriter:
    """Writer of one member that computes its size and hash."""

    def __init__(self, target: IO[bytes]) -> None:
        self._target = target
        self._hash = hashlib.sha256()
        self.size_bytes = 0

    def write(self, data: bytes) -> None:
        """Append bytes to the member, and add them to its hash and size."""
        self._target.write(data)
        self._hash.update(data)
        self.size_bytes += len(data)

    def sha256(self) -> str:
        """Return the SHA-256 of the bytes written so far, in hexadecimal."""
        return self._hash.hexdigest()


class Archive:
    """Reader of an archive whose manifest and members agree; use it as a context manager.

    Attributes:
        manifest: checked, and in agreement with the members that there are.

    Raises:
        ConfigError: the file cannot be read, is none of ours, or breaks a rule.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with contextlib.ExitStack() as stack:
            try:
                self._zip = stack.enter_context(zipfile.ZipFile(path))
            except (OSError, zipfile.BadZipFile, ValueError) as error:
                raise self._broken(
                    "must be a file that `nnictl experiment save` wrote", error
                ) from error
            self.manifest = self._read_manifest()
            self._check_members()
            self._stack = stack.pop_all()

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def verify(self) -> None:
        """Read all members once; raise if a size or hash differs from the manifest.

        Raises:
            ConfigError: something is not what the manifest says.
        """
        for name in self.manifest.files:
            for _ in self.pieces(name):
                pass

    def pieces(self, name: str) -> Iterator[tuple[bytes, bool]]:
        """Yield pieces of a member, with True at the last; raise before it unless the hash fits.

        Raises:
            ConfigError: it is not what the manifest says.
        """
        member = self.manifest.files[name]
        digest, left = hashlib.sha256(), member.size_bytes
        try:
            with self._zip.open(name) as source:
                while left > PIECE_BYTES:
                    piece = self._read(source, PIECE_BYTES, name)
                    digest.update(piece)
                    left -= len(piece)
                    yield piece, False
                piece = self._read(source, left, name) if left else b""
                digest.update(piece)
                more = source.read(1)
        except (
            zipfile.BadZipFile,
            zlib.error,
            OSError,
            EOFError,
            RuntimeError,
        ) as error:
            raise self._broken(f"is damaged in {name}", error) from error
        if more or digest.hexdigest() != member.sha256:
            raise self._broken(f"is damaged: {name} is not what the manifest says")
        yield piece, True

    def _read(self, source: IO[bytes], count: int, name: str) -> bytes:
        piece = b""
        while len(piece) < count:
            more = source.read(count - len(piece))
            if not more:
                raise self._broken(f"is damaged: {name} is shorter than the manifest says")
            piece += more
        return piece

    def _read_manifest(self) -> Manifest:
        try:
            info = self._zip.getinfo(MANIFEST)
        except KeyError as error:
            rule = "must be a file that `nnictl experiment save` wrote; it has no manifest"
            raise self._broken(rule) from error
        if info.file_size > MANIFEST_LIMIT_BYTES:
            raise self._broken("has a manifest that is too large")
        try:
            with self._zip.open(info) as file:
                text = file.read(MANIFEST_LIMIT_BYTES)
            content = json.loads(text)
            form = int(content["form"])
            if form > FORM:
                raise self._broken(
                    f"was written by a later version of NNI ({content.get('nniVersion')}); "
                    "load it with that one"
                )
            return _manifest(content)
        except (
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            RecursionError,
            zlib.error,
        ) as error:
            if isinstance(error, ConfigError):
                raise
            raise self._broken("has a manifest that cannot be read", error) from error
        except (zipfile.BadZipFile, OSError, EOFError, RuntimeError) as error:
            raise self._broken("is damaged", error) from error

    def _check_members(self) -> None:
        names = [info.filename for info in self._zip.infolist()]
        expected = {*self.manifest.files, MANIFEST}
        if len(names) != len(set(names)) or set(names) != expected:
            odd = sorted(set(names) ^ expected)[:1] or ["a name that comes twice"]
            raise self._broken(f"does not hold what its manifest says: {odd[0][:200]!r}")
        for info in self._zip.infolist():
            mode = info.external_attr >> 16
            if stat.S_ISLNK(mode) or info.is_dir():
                raise self._broken(f"holds a link or a folder: {info.filename[:200]!r}")
        if len(names) > FILE_LIMIT:
            raise self._broken(f"must have at most {FILE_LIMIT:,} files")
        if sum(member.size_bytes for member in self.manifest.files.values()) > SIZE_LIMIT_BYTES:
            raise self._broken(f"must unpack to at most {SIZE_LIMIT_BYTES // 1024**3} GiB")

    def _broken(self, rule: str, error: Exception | None = None) -> ConfigError:
        reason = f": {error}" if error is not None and str(error) else ""
        return ConfigError([Problem(_FIELD, f"{rule}{reason}", str(self._path))])


def _manifest(content: Mapping[str, Any]) -> Manifest:
    """Convert the parsed JSON of a manifest; raise ValueError at a wrong id, name or hash.

    Raises:
        ValueError: it breaks a rule; other errors of its shape pass through.
    """
    experiment_id = content["experimentId"]
    if not _ID.match(experiment_id):
        raise ValueError(f"experimentId must be an id, got {experiment_id!r:.100}")
    files = {}
    for name, item in content["files"].items():
        size, digest = item["size"], item["sha256"]
        if not is_safe(name):
            raise ValueError(f"a name must not lead out of the archive, got {name!r:.200}")
        if type(size) is not int or size < 0 or not _DIGEST.match(digest):
            raise ValueError(f"size and sha256 of {name!r:.200} are malformed")
        files[name] = ArchivedFile(size, digest, bool(item.get("executable")))
    return Manifest(
        experiment_id=experiment_id,
        nni_version=str(content["nniVersion"]),
        saved_at=str(content["savedAt"]),
        search_space=content["searchSpace"],
        files=files,
    )


def is_safe(name: str) -> bool:
    """Return whether a name stays inside the folder that it is unpacked in, on every system."""
    parts = name.split("/")
    return (
        0 < len(name) <= _NAME_LIMIT_CHARACTERS
        and name.isprintable()
        and "\\" not in name
        and ":" not in parts[0]
        and not PurePosixPath(name).is_absolute()
        and all(part not in {"", ".", ".."} for part in parts)
    )
