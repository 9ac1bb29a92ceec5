"""Reader of tar archives of any origin: ustar, GNU long names, PAX; plain, gzip or xz.

It reads forward only, keeps no list of members, follows nothing and writes nothing; everything that
a header claims has a limit. Sparse files, links and devices are reported, never interpreted.
"""

import enum
import gzip
import lzma
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final, Protocol

_BLOCK: Final = 512
_CHUNK_BYTES: Final = 1024 * 1024
_NAME_LIMIT_BYTES: Final = 4096
_EXTENSION_LIMIT_BYTES: Final = 1024 * 1024
"""Maximum size of a PAX header, or of a long name."""
_XZ_MEMORY_LIMIT_BYTES: Final = 128 * 1024 * 1024
"""Memory for a decompressor: an xz file of the highest preset needs 65 MB."""
_CHECKSUM: Final = slice(148, 156)
_DESCRIPTIONS: Final = {
    b"1": "the hard link",
    b"2": "the symbolic link",
    b"3": "the device",
    b"4": "the device",
    b"6": "the pipe",
    b"S": "the sparse file",
}
_REGULAR: Final = frozenset({b"0", b"\0", b"7"})
_FOLDER: Final = b"5"
_WITHOUT_CONTENT: Final = frozenset({b"1", b"2", b"3", b"4", b"6"})
"""Kinds whose size may describe something else."""


class TarError(Exception):
    """Error of a damaged tar archive, or of other data; derived from `Exception` directly."""


class Kind(enum.Enum):
    """Kind of a tar member: regular file, folder, or any other."""

    FILE = enum.auto()
    FOLDER = enum.auto()
    OTHER = enum.auto()
    """Link, device, sparse file or anything else."""


@dataclass(frozen=True, slots=True)
class Member:
    """Member of a tar archive: name, kind, size, executable bit, time, kind in words."""

    name: str
    """As written in the archive; bytes that are not UTF-8 are surrogates."""
    kind: Kind
    size_bytes: int
    """Size of its content in the archive."""
    executable: bool
    time_ns: int | None
    """Time of the last change; None: out of range."""
    description: str
    """Kind in words, of OTHER."""


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


class TarReader:
    """Forward-only reader of a seekable tar file (plain, gzip, xz); callers check names and kinds.

    Names, extended headers and memory of decompressors have limits.

    Args:
        file: open at its beginning.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._stream = _decompressed(file)
        self._left = 0
        """Unread bytes of the content of the last member."""
        self._padding = 0

    def __iter__(self) -> Iterator[Member]:
        """Yield the archive's members in order, with GNU and PAX names and sizes applied.

        Raises:
            TarError: the archive is damaged.
        """
        attributes: dict[str, bytes] = {}
        extended_bytes = 0
        empty = True
        while (header := self._header(empty=empty)) is not None:
            empty = False
            kind, size = header[156:157], _number(header[124:136])
            if kind in {b"x", b"g", b"L", b"K"}:
                # With its block: a few compressed bytes hold many headers without content.
                extended_bytes += _BLOCK + size
                content = self._extension(size, extended_bytes)
                if kind == b"x":
                    attributes |= _pax(content)
                elif kind == b"g":
                    _pax(content)  # comments of `git archive`; names and sizes are of one member
                else:
                    attributes["path" if kind == b"L" else "linkpath"] = content.rstrip(b"\0")
                continue
            member = _member(header, attributes, size)
            attributes, extended_bytes = {}, 0
            self._left = member.size_bytes
            self._padding = -self._left % _BLOCK
            yield member

    def copy_content(self, target: BinaryIO) -> None:
        """Write the content of the member yielded last to a file; raise if the archive ends early.

        Raises:
            TarError: the archive ends early.
        """
        while self._left:
            target.write(self._read(min(self._left, _CHUNK_BYTES), content=True))

    def _header(self, *, empty: bool) -> bytes | None:
        """Skip to the next header block; return it, verified; None at the end; raise if damaged."""
        while self._left:
            self._read(min(self._left, _CHUNK_BYTES), content=True)
        if self._padding:
            self._read(self._padding)
            self._padding = 0
        header = self._piece(_BLOCK)
        if not header and not empty:
            return None  # some programs write no end
        if len(header) < _BLOCK:
            raise TarError("it is no tar archive" if empty else "it ends in a header")
        if not any(header):
            return None
        claimed = _number(header[_CHECKSUM])
        blank = header[: _CHECKSUM.start] + b" " * 8 + header[_CHECKSUM.stop :]
        signed = sum(byte - 256 if byte > 127 else byte for byte in blank)  # noqa: PLR2004 - sign
        if claimed not in {sum(blank), signed}:
            raise TarError("it is no tar archive" if empty else "a header is damaged")
        return header

    def _extension(self, size: int, total: int) -> bytes:
        """Read and return an extended header; raise if a member's headers exceed the limit."""
        if total > _EXTENSION_LIMIT_BYTES:
            raise TarError(f"extended headers must have at most {_EXTENSION_LIMIT_BYTES} bytes")
        content = self._read(size)
        self._read(-size % _BLOCK)
        return content

    def _read(self, count: int, *, content: bool = False) -> bytes:
        data = self._piece(count)
        if len(data) < count:
            raise TarError("it ends early")
        if content:
            self._left -= count
        return data

    def _piece(self, count: int) -> bytes:
        try:
            data = self._stream.read(count)
            while len(data) < count and (more := self._stream.read(count - len(data))):
                data += more
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            raise TarError(f"it is damaged: {error}") from error
        return data


def _decompressed(file: BinaryIO) -> _Stream:
    magic = file.read(6)
    file.seek(0)
    if magic.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file, mode="rb")
    if magic == b"\xfd7zXZ\0":
        return _XzStream(file)
    return file


class _XzStream:
    """Reader that decompresses one xz stream with a limit of memory; what follows it is ignored."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._xz = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY_LIMIT_BYTES)

    def read(self, size: int, /) -> bytes:
        """Return up to ``size`` decompressed bytes, empty at the end; EOFError if cut off early."""
        data = b""
        while not data and not self._xz.eof:
            given = self._file.read(_CHUNK_BYTES) if self._xz.needs_input else b""
            if self._xz.needs_input and not given:
                raise EOFError("the compressed data ends early")
            data = self._xz.decompress(given, size)
        return data


def _member(header: bytes, attributes: dict[str, bytes], size: int) -> Member:
    kind = header[156:157]
    raw = attributes.get("path")
    if raw is None:
        raw = _text(header[:100])
        if header[257:263] == b"ustar\0" and header[345]:
            raw = _text(header[345:500]) + b"/" + raw
    if not raw or len(raw) > _NAME_LIMIT_BYTES or b"\0" in raw:
        raise TarError(f"a name must have 1 to {_NAME_LIMIT_BYTES} bytes, none of them zero")
    if "size" in attributes:
        size = _decimal(attributes["size"], "size")
    sparse = any(key.startswith("GNU.sparse.") for key in attributes)
    if sparse:
        kind = b"S"
    # Before POSIX a folder was a file whose name ends with a slash.
    is_folder = kind == _FOLDER or (kind in {b"0", b"\0"} and raw.endswith(b"/"))
    has_content = not is_folder and kind not in _WITHOUT_CONTENT
    return Member(
        os.fsdecode(raw),
        Kind.FOLDER if is_folder else Kind.FILE if kind in _REGULAR else Kind.OTHER,
        size if has_content else 0,
        bool(_number(header[100:108]) & 0o100),
        _time_ns(attributes.get("mtime"), header),
        _DESCRIPTIONS.get(kind, f"the member of type {kind!r}"),
    )


def _pax(content: bytes) -> dict[str, bytes]:
    """Parse PAX records `<length> <key>=<value>` to a dict of text to bytes; raise if damaged."""
    records: dict[str, bytes] = {}
    place = 0
    while place < len(content):
        space = content.find(b" ", place, place + 20)
        length = _decimal(content[place:space], "length") if space > place else 0
        record = content[space + 1 : place + length]
        key, equals, value = record.partition(b"=")
        if place + length > len(content) or not equals or not value.endswith(b"\n"):
            raise TarError("an extended header is damaged")
        records[key.decode("utf-8", "replace")] = value[:-1]
        place += length
    return records


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _decimal(digits: bytes, what: str) -> int:
    if not digits.isdigit() or len(digits) > 19:  # noqa: PLR2004 - digits of 64 bits
        raise TarError(f"a {what} in an extended header is damaged")
    return int(digits)


def _number(field: bytes) -> int:
    """Parse a tar header's number: octal, blank as 0, or big-endian after 0x80; raise if bad."""
    if field[0] == 0x80:  # noqa: PLR2004 - the mark of GNU tar
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b"\0 ")
    if not all(48 <= digit <= 55 for digit in digits):  # noqa: PLR2004 - 0 to 7
        raise TarError("a number in a header is damaged")
    return int(digits or b"0", 8)


def _time_ns(written: bytes | None, header: bytes) -> int | None:
    try:
        if written is None:
            time_ns = _number(header[136:148]) * 10**9
        else:
            seconds, _, fraction = written.decode("ascii").partition(".")
            time_ns = int(seconds) * 10**9 + int(fraction[:9].ljust(9, "0") or "0")
    except (TarError, ValueError):
        return None  # times before 1970 of GNU tar, or damaged
    return time_ns if 0 <= time_ns < 2**62 else None
