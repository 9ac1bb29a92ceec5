"""Packing of a code directory into an archive, within limits and without ignored files.

Equal folders give equal archives, whenever and by whomever they are packed, so that an archive is
known by its hash and travels once.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from pathspec import GitIgnoreSpec

from nni.experiment.errors import ConfigError, Problem

FILE_LIMIT: Final = 2000
SIZE_LIMIT_BYTES: Final = 300 * 1024 * 1024
IGNORE_FILE: Final = ".nniignore"
_NEVER_PACKED: Final = ("__pycache__/", ".git/")
"""Left out even without an ignore file; a line such as `!.git/` in it brings them back."""
_COMPRESSION: Final = 6
_FIELD: Final = "trialCodeDirectory"


@dataclass(frozen=True, slots=True)
class CodeFile:
    """File of the code directory to pack: its path, name in the archive, size and mode."""

    path: Path
    name: str
    """Path inside the archive, with `/`."""
    size_bytes: int
    executable: bool


@dataclass(frozen=True, slots=True)
class PackedCode:
    """Hash, size and number of files of a packed code archive."""

    sha256: str
    """Hash of the archive, 64 lower-case hexadecimal digits."""
    size_bytes: int
    """Size of the archive."""
    file_count: int


def code_files(
    directory: Path, *, file_limit: int = FILE_LIMIT, size_limit_bytes: int = SIZE_LIMIT_BYTES
) -> list[CodeFile]:
    """Return the files of a code directory without ignored ones, by name; raise above a limit.

    Links to files are sent as the files; links to folders as the folders, each of them once.

    Args:
        directory: the code directory.
        file_limit: how many files it may have.
        size_limit_bytes: what they may have together.

    Raises:
        ConfigError: there are too many, they are too large, or one cannot be read or named.
    """
    spec = ignore_spec(directory)
    files: list[CodeFile] = []
    total = 0
    for file in _walk(directory, "", spec, frozenset()):
        files.append(file)
        total += file.size_bytes
        if len(files) > file_limit:
            raise _too_much(f"must have at most {file_limit} files", directory)
        if total > size_limit_bytes:
            limit = size_limit_bytes // (1024 * 1024)
            raise _too_much(f"must have at most {limit} MB", directory)
    return sorted(files, key=lambda file: file.name)


def _too_much(rule: str, directory: Path) -> ConfigError:
    remedy = f"name what trials do not need in {directory / IGNORE_FILE}"
    return ConfigError([Problem(_FIELD, rule, str(directory), remedy)])


def ignore_spec(directory: Path) -> GitIgnoreSpec:
    """Return the patterns in `.nniignore`, and those that are never sent to workers."""
    try:
        lines = (directory / IGNORE_FILE).read_text("utf-8").splitlines()
    except FileNotFoundError:
        lines = []
    return GitIgnoreSpec.from_lines([*_NEVER_PACKED, *lines])


def _walk(
    folder: Path, prefix: str, spec: GitIgnoreSpec, above: frozenset[Path]
) -> Iterator[CodeFile]:
    real = folder.resolve()
    if real in above:  # a link to a folder that holds it
        return
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        rule = f"must be readable: {error.strerror}"
        raise ConfigError([Problem(_FIELD, rule, str(folder))]) from error
    for entry in entries:
        name = prefix + entry.name
        _check_name(name)
        if entry.is_dir():
            if not spec.match_file(name + "/"):
                yield from _walk(Path(entry.path), name + "/", spec, above | {real})
        elif entry.is_file() and not spec.match_file(name):
            status = entry.stat()
            executable = bool(status.st_mode & stat.S_IXUSR)
            yield CodeFile(Path(entry.path), name, status.st_size, executable)


def _check_name(name: str) -> None:
    if "\n" in name or not name.isprintable():
        rule = "must have only files whose names are printable text"
        raise ConfigError([Problem(_FIELD, rule, name, "rename the file")])


def pack_code(directory: Path, output: BinaryIO) -> PackedCode:
    """Write a code directory as a reproducible tar.gz archive; return hash, size and count.

    Raises:
        ConfigError: see `code_files`.
    """
    files = code_files(directory)
    counted = _HashingWriter(output)
    with (
        gzip.GzipFile("", "wb", _COMPRESSION, counted, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for file in files:
            try:
                with file.path.open("rb") as content:
                    archive.addfile(_member(file), content)
            except OSError as error:
                rule = f"must be readable: {error.strerror}"
                raise ConfigError([Problem(_FIELD, rule, str(file.path))]) from error
    return PackedCode(counted.sha256(), counted.size_bytes, len(files))


def _member(file: CodeFile) -> tarfile.TarInfo:
    """Return a reproducible tar header of a file: name, size and mode; no times, no owner."""
    member = tarfile.TarInfo(file.name)
    member.size = file.size_bytes
    member.mode = 0o755 if file.executable else 0o644
    return member


class _HashingWriter(io.RawIOBase):
    """Writer that passes bytes on to another one, and keeps their hash and number."""

    def __init__(self, output: BinaryIO) -> None:
        super().__init__()
        self._output = output
        self._hash = hashlib.sha256()
        self.size_bytes = 0

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        chunk = bytes(data)  # type: ignore[call-overload]  # any buffer, as gzip gives it
        self._output.write(chunk)
        self._hash.update(chunk)
        self.size_bytes += len(chunk)
        return len(chunk)

    def sha256(self) -> str:
        return self._hash.hexdigest()
