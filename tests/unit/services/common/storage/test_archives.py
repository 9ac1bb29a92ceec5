from __future__ import annotations

import io
import os
import socket
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc_common.storage.archives import ArchiveError, ArchiveLimits, extract, pack

LIMITS = ArchiveLimits(files=50, size_bytes=1_000_000)


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def archive(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w") as tar:
        for member, data in members:
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member, b""


def test_folder_is_restored_from_its_archive(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "deep" / "empty").mkdir(parents=True)
    (folder / "deep" / "weights").write_bytes(os.urandom(100_000))
    (folder / "latest").symlink_to("deep/weights")
    (folder / "run").write_text("x")
    (folder / "run").chmod(0o755)
    os.utime(folder / "run", (1_000_000, 1_000_000))

    count = pack(folder, tmp_path / "a.tar")
    extract(tmp_path / "a.tar", tmp_path / "out", LIMITS)

    out = tmp_path / "out"
    assert names(out) == names(folder)
    assert count == 5
    assert (out / "latest").read_bytes() == (folder / "deep" / "weights").read_bytes()
    assert (out / "run").stat().st_mode & 0o777 == 0o755
    assert (out / "run").stat().st_mtime == 1_000_000


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.DIRTYPE])
def test_member_in_too_many_folders_is_refused(tmp_path: Path, kind: bytes) -> None:
    limits = ArchiveLimits(files=1_000, size_bytes=1_000)
    for folders in (100, 101):
        member = tarfile.TarInfo("/".join(["a"] * folders + ["b"]))
        member.type = kind
        archive(tmp_path / f"{folders}.tar", (member, b""))

    extract(tmp_path / "100.tar", tmp_path / "out", limits)
    with pytest.raises(ArchiveError, match="it has a member in more than 100 folders: 'a/a/a/"):
        extract(tmp_path / "101.tar", tmp_path / "none", limits)

    assert (tmp_path / "out" / "/".join(["a"] * 100) / "b").exists()
    assert not (tmp_path / "none").exists()


def test_what_lies_in_too_many_folders_is_not_packed(tmp_path: Path) -> None:
    deepest = tmp_path / "in" / "/".join(["a"] * 100)
    (deepest / "a").mkdir(parents=True)
    (deepest / "file").touch()
    (deepest / "a" / "file").touch()

    count = pack(tmp_path / "in", tmp_path / "a.tar")
    extract(tmp_path / "a.tar", tmp_path / "out", ArchiveLimits(files=1_000, size_bytes=1_000))

    assert count == 102, "the folders, one file, and a folder without its content"
    assert names(tmp_path / "out")[-2:] == [f"{'a/' * 100}a", f"{'a/' * 100}file"]


def test_excluded_names_are_not_packed(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "code").mkdir(parents=True)
    (folder / "code" / "x.py").touch()
    (folder / "kept").mkdir()
    (folder / "kept" / "code").touch()

    pack(folder, tmp_path / "a.tar", frozenset({"code"}))
    extract(tmp_path / "a.tar", tmp_path / "out", LIMITS)

    assert names(tmp_path / "out") == ["kept", "kept/code"]


def test_sockets_and_pipes_are_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))

        count = pack(folder, tmp_path / "a.tar")

    assert count == 0


def test_archive_has_no_owners_of_files(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "file").touch()

    pack(tmp_path / "in", tmp_path / "a.tar")

    with tarfile.open(tmp_path / "a.tar") as tar:
        assert {(one.uid, one.gid, one.uname, one.gname) for one in tar} == {(0, 0, "", "")}


@pytest.mark.parametrize(
    "member",
    [
        (tarfile.TarInfo("../outside"), b"x"),
        (tarfile.TarInfo("a/../../outside"), b"x"),
        link("out", "/etc"),
        link("out", "../.."),
        link("hard", "../../etc/passwd", tarfile.LNKTYPE),
        link("device", "", tarfile.CHRTYPE),
        link("pipe", "", tarfile.FIFOTYPE),
    ],
)
def test_archive_with_members_outside_leaves_nothing(
    tmp_path: Path, member: tuple[tarfile.TarInfo, bytes]
) -> None:
    (tmp_path / "work").mkdir()
    packed = archive(tmp_path / "a.tar", (tarfile.TarInfo("fine"), b"y"), member)

    with pytest.raises(ArchiveError, match="cannot be unpacked"):
        extract(packed, tmp_path / "work" / "out", LIMITS)

    assert names(tmp_path) == ["a.tar", "work"]


def test_archive_above_a_limit_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    many = archive(tmp_path / "many.tar", *((tarfile.TarInfo(str(n)), b"") for n in range(51)))
    large = archive(tmp_path / "large.tar", (tarfile.TarInfo("large"), b"0" * 1_000_001))

    for packed in (many, large):
        with pytest.raises(ArchiveError, match="at most 50 files and 0 MB"):
            extract(packed, tmp_path / "out", LIMITS)
        assert not (tmp_path / "out").exists()


def pax(name: str, **headers: str) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.pax_headers = headers
    return member, b"x"


def folder(name: str) -> tuple[tarfile.TarInfo, bytes]:
    return link(name, "", tarfile.DIRTYPE)


LONG = "d" * 247
HOSTILE = {
    "parent by a PAX header": [pax("fine", path="../outside")],
    "file through a link": [link("a", ".."), (tarfile.TarInfo("a/outside"), b"x")],
    "file through a link of a PAX header": [
        link("a", "b"),
        pax("a", linkpath=".."),
        (tarfile.TarInfo("a/outside"), b"x"),
    ],
    "file over a link": [link("a", "../outside"), (tarfile.TarInfo("a"), b"x")],
    "folder over a link": [link("a", ".."), folder("a"), (tarfile.TarInfo("a/outside"), b"x")],
    "hard link to a link": [
        link("a", "../outside"),
        link("b", "a", tarfile.LNKTYPE),
        (tarfile.TarInfo("b"), b"x"),
    ],
    # Realpath gives up on a path that is too long, and the checks of several versions of Python
    # trust its answer: CVE-2025-4517.
    "realpath that overflows": [
        *(folder("/".join([LONG] * depth)) for depth in range(1, 17)),
        link("/".join(letter for letter in "abcdefghijklmnop"), "../" * 16),
        link("escape", "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/" + "../" * 8),
        (tarfile.TarInfo("escape/outside"), b"x"),
    ],
    "hard link to a file outside": [link("a", "/etc/passwd", tarfile.LNKTYPE)],
    "block device": [link("a", "", tarfile.BLKTYPE)],
    "sparse file": [link("a", "", tarfile.GNUTYPE_SPARSE)],
    "sparse file of PAX": [pax("a", **{"GNU.sparse.name": "../outside", "GNU.sparse.size": "1"})],
    "two files of one name": [(tarfile.TarInfo("a"), b"x"), (tarfile.TarInfo("./a"), b"y")],
    "file over a folder": [folder("a"), (tarfile.TarInfo("a"), b"x")],
    "folder over a file": [(tarfile.TarInfo("a"), b"x"), (tarfile.TarInfo("a/b"), b"x")],
    "name that is too long": [(tarfile.TarInfo("n" * 300), b"x")],
    "no name": [(tarfile.TarInfo("./"), b"x")],
}


@pytest.mark.parametrize("members", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_archive_is_refused_and_leaves_nothing(
    tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    (tmp_path / "work").mkdir()
    packed = archive(tmp_path / "a.tar", (tarfile.TarInfo("fine"), b"y"), *members)

    with pytest.raises(ArchiveError, match="cannot be unpacked"):
        extract(packed, tmp_path / "work" / "out", LIMITS)

    assert names(tmp_path) == ["a.tar", "work"]


@pytest.mark.parametrize("member", [(tarfile.TarInfo("//abs/a"), b"x"), pax("b", path="/abs/a")])
def test_absolute_name_stays_inside(tmp_path: Path, member: tuple[tarfile.TarInfo, bytes]) -> None:
    extract(archive(tmp_path / "a.tar", member), tmp_path / "out", LIMITS)

    assert names(tmp_path / "out") == ["abs", "abs/a"]


def test_error_names_what_else_an_archive_holds(tmp_path: Path) -> None:
    members = [link("a", "b"), link("c", "d", tarfile.LNKTYPE), link("e", "", tarfile.FIFOTYPE)]
    packed = archive(tmp_path / "a.tar", *members, link("g", "", tarfile.CHRTYPE))

    with pytest.raises(ArchiveError) as raised:
        extract(packed, tmp_path / "out", LIMITS)

    assert "the symbolic link 'a', the hard link 'c', the pipe 'e' and 1 more" in str(raised.value)


def test_folders_that_no_member_names_count(tmp_path: Path) -> None:
    packed = archive(tmp_path / "a.tar", (tarfile.TarInfo("a/" * 50 + "file"), b""))

    with pytest.raises(ArchiveError, match="at most 50 files"):
        extract(packed, tmp_path / "out", LIMITS)


def test_modes_that_give_rights_away_are_not_restored(tmp_path: Path) -> None:
    member = tarfile.TarInfo("a")
    member.mode = 0o6777
    packed = archive(tmp_path / "a.tar", (member, b""))

    extract(packed, tmp_path / "out", LIMITS)

    assert (tmp_path / "out" / "a").stat().st_mode & 0o7777 == 0o755


def test_name_that_is_not_utf_8_is_kept(tmp_path: Path) -> None:
    packed = archive(tmp_path / "a.tar", (tarfile.TarInfo("caf\udce9"), b"x"))

    extract(packed, tmp_path / "out", LIMITS)

    assert [os.fsencode(path.name) for path in (tmp_path / "out").iterdir()] == [b"caf\xe9"]


@pytest.mark.parametrize("target", ["../secret", "/etc/passwd", "loop", "missing", ".."])
def test_link_out_of_the_folder_is_not_packed(tmp_path: Path, target: str) -> None:
    (tmp_path / "secret").write_text("the agent's")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "loop").symlink_to(target)

    assert pack(tmp_path / "in", tmp_path / "a.tar") == 0


def test_second_name_of_a_file_is_packed_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text("x")
    os.link(tmp_path / "in" / "a", tmp_path / "in" / "b")

    pack(tmp_path / "in", tmp_path / "a.tar")
    extract(tmp_path / "a.tar", tmp_path / "out", LIMITS)

    assert [(tmp_path / "out" / name).read_text() for name in "ab"] == ["x", "x"]


PARTS = st.sampled_from(["a", "b", "..", ".", "", "/", "link", "n" * 90, "\udcff"])
MEMBERS = st.tuples(
    st.lists(PARTS, min_size=1, max_size=6).map("/".join),
    st.sampled_from(
        [tarfile.REGTYPE, tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE]
    ),
    st.lists(PARTS, min_size=1, max_size=6).map("/".join),
)


@settings(deadline=None)  # a busy machine may stop the test at any place
@given(members=st.lists(MEMBERS, max_size=6))
def test_no_archive_writes_outside(
    tmp_path_factory: pytest.TempPathFactory, members: list[tuple[str, bytes, str]]
) -> None:
    above = tmp_path_factory.mktemp("hostile")
    packed = archive(above / "a.tar", *(link(name, to, kind) for name, kind, to in members))

    try:
        extract(packed, above / "out", LIMITS)
    except ArchiveError:
        assert names(above) == ["a.tar"]
    else:
        assert {path.parts[0] for path in map(Path, names(above))} == {"a.tar", "out"}
        assert not any(path.is_symlink() for path in above.rglob("*"))


@settings(deadline=None)  # a busy machine may stop the test at any place
@given(data=st.binary(max_size=2000))
def test_malformed_lines_are_refused_or_empty(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    folder = tmp_path_factory.mktemp("nonsense")
    (folder / "a.tar").write_bytes(data)

    try:
        extract(folder / "a.tar", folder / "out", LIMITS)
    except ArchiveError:
        assert not (folder / "out").exists()
    else:
        assert names(folder / "out") == []
