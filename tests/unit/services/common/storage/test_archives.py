from __future__ import annotations

import io
import os
import socket
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
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
