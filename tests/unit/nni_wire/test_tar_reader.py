"""Archives that `tarfile` writes, and damaged or hostile headers."""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nni_wire.tar_reader import Kind, Member, TarError, TarReader

LIMIT = 1024 * 1024


def packed(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as tar:
        for member, data in members:
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return file.getvalue()


def entry(name: str, kind: bytes = tarfile.REGTYPE, **fields: object) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = kind
    for field, value in fields.items():
        setattr(member, field, value)
    return member


def read(data: bytes) -> list[tuple[Member, bytes]]:
    reader = TarReader(io.BytesIO(data))
    found = []
    for member in reader:
        content = io.BytesIO()
        reader.copy_content(content)
        found.append((member, content.getvalue()))
    return found


def header(kind: bytes, name: bytes = b"x", size: bytes = b"00000000000\0") -> bytes:
    block = name.ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + size
    block += b"00000000000\0" + b" " * 8 + kind
    block = block.ljust(512, b"\0")
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def extension(kind: bytes, content: bytes) -> bytes:
    size = b"%011o\0" % len(content)
    return header(kind, b"extension", size) + content + b"\0" * (-len(content) % 512)


def pax(**records: str) -> bytes:
    content = b""
    for key, value in records.items():
        rest = f" {key.replace('__', '.')}={value}\n".encode()
        length = len(rest) + 1
        length = len(rest) + len(str(length + len(str(length)) - 1))
        content += str(length).encode() + rest
    return extension(b"x", content)


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress])
def test_files_of_all_forms_are_read(form: int, compress: Callable[[bytes], bytes]) -> None:
    name = "/".join(["folder"] * 20) + "/" + "n" * 60
    data = packed(
        (entry("a", mode=0o755, mtime=1_000_000), b"content"),
        (entry("empty", tarfile.DIRTYPE), b""),
        (entry(name), b"0" * 1000),
        form=form,
    )

    first, folder, long = read(compress(data))

    assert first == (Member("a", Kind.FILE, 7, True, 10**15, first[0].description), b"content")
    assert (folder[0].name.rstrip("/"), folder[0].kind) == ("empty", Kind.FOLDER)
    assert (long[0].name, long[1]) == (name, b"0" * 1000)


@pytest.mark.parametrize("kind", [b"x", b"g", b"L", b"K"])
def test_extended_headers_without_content_are_limited(kind: bytes) -> None:
    data = header(kind) * (LIMIT // 512 + 1) + packed((entry("a"), b""))

    with pytest.raises(TarError, match="extended headers must have at most"):
        read(data)


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_names_that_are_long_or_not_utf_8_are_kept(form: int) -> None:
    names = ["n" * 250, "caf\udce9", "größe", "x/" * 200 + "end"]
    data = packed(*((entry(name), b"") for name in names), form=form)

    assert [member.name for member, _ in read(data)] == names


def test_content_that_was_not_read_is_skipped() -> None:
    data = packed((entry("a"), b"1" * 700), (entry("b"), b"2"))

    assert [member.name for member in TarReader(io.BytesIO(data))] == ["a", "b"]


def test_fractions_of_seconds_are_kept() -> None:
    data = packed((entry("a", mtime=12.5), b""))

    assert [member.time_ns for member, _ in read(data)] == [12_500_000_000]


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (tarfile.SYMTYPE, "symbolic link"),
        (tarfile.LNKTYPE, "hard link"),
        (tarfile.CHRTYPE, "device"),
        (tarfile.BLKTYPE, "device"),
        (tarfile.FIFOTYPE, "pipe"),
        (tarfile.GNUTYPE_SPARSE, "sparse"),
        (b"V", "type b'V'"),
    ],
)
def test_other_members_are_named_by_their_kind(kind: bytes, word: str) -> None:
    members = read(header(kind) + header(b"0", b"after"))

    assert [member.kind for member, _ in members] == [Kind.OTHER, Kind.FILE]
    assert word in members[0][0].description


def test_sparse_file_of_a_pax_header_is_no_plain_file() -> None:
    data = pax(GNU__sparse__name="/etc/passwd", GNU__sparse__size="1") + header(b"0")

    assert [member.kind for member, _ in read(data)] == [Kind.OTHER]


def test_pax_header_is_of_one_member_and_a_global_one_of_none() -> None:
    one = pax(path="first")
    all_ = extension(b"g", b"14 path=other\n")
    data = all_ + one + header(b"0", b"a") + header(b"0", b"b")

    assert [member.name for member, _ in read(data)] == ["first", "b"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x" * 512,
        header(b"0")[:300],
        header(b"0", size=b"00000000001\0"),
        header(b"0", size=b"\xff" * 12),  # a negative size: an endless loop elsewhere
        header(b"0", size=b"-0000000001\0"),
        header(b"0", size=b"\x80" + b"\xff" * 11),
        header(b"0", name=b""),
        header(b"x", size=b"77777777777\0"),
        header(b"L", size=b"77777777777\0"),
        extension(b"x", b"0 a=b\n"),
        extension(b"x", b"-9 a=b\n"),
        extension(b"x", b"99 a=b\n"),
        extension(b"x", b"6 path"),
        extension(b"x", b" " * 1000),
        pax(size="-512") + header(b"0"),
        pax(size="9" * 30) + header(b"0"),
        pax(path="n" * 5000) + header(b"0"),
        pax(path="a\0b") + header(b"0"),
        b"".join(pax(comment=str(n) * 90_000) for n in range(10, 30)) + header(b"0"),
        gzip.compress(header(b"0") * 3, mtime=0)[:-20],
        b"\x1f\x8b" + b"nonsense" * 10,
        lzma.compress(header(b"0") * 3)[:-30],
        b"\xfd7zXZ\0" + b"nonsense" * 10,
    ],
)
def test_damaged_archive_is_refused(data: bytes) -> None:
    with pytest.raises(TarError):
        read(data)


def kinds(data: bytes) -> set[Kind]:
    """Return the kinds of the members before the first damage."""
    found: set[Kind] = set()
    try:
        for member in TarReader(io.BytesIO(data)):
            found.add(member.kind)
    except TarError:
        return found
    return found


@settings(deadline=None)  # a busy machine may stop the test at any place
@given(data=st.binary(max_size=3000))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    assert kinds(data) == set()


@settings(deadline=None)  # a busy machine may stop the test at any place
@given(place=st.integers(0, 2047), byte=st.integers(0, 255))
def test_one_changed_byte_raises_nothing_else(place: int, byte: int) -> None:
    data = bytearray(packed((entry("n" * 150, mtime=1.5), b"x" * 10), (entry("b"), b"y")))
    data[place] = byte

    assert kinds(bytes(data)) <= {Kind.FILE}
