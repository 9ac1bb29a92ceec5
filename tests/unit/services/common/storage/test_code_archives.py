import asyncio
import hashlib
import io
import tarfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from svc_common.clock import ManualClock, SystemClock
from svc_common.storage.archives import ArchiveLimits
from svc_common.storage.code_archives import CODE_LIMITS, KEPT_S, CodeArchives, CodeError
from svc_common.storage.memory import InMemoryBlobStore


def archive(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for member, data in members:
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def file(name: str, data: bytes = b"x") -> tuple[tarfile.TarInfo, bytes]:
    return tarfile.TarInfo(name), data


def link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type = tarfile.SYMTYPE
    member.linkname = target
    return member, b""


async def unpacked(folder: Path, data: bytes, limits: ArchiveLimits = CODE_LIMITS) -> Path:
    blobs = InMemoryBlobStore()
    await blobs.put(data)
    archives = CodeArchives(blobs, folder / "code", SystemClock(), limits=limits)
    return await archives.unpacked(hashlib.sha256(data).hexdigest())


async def test_archive_becomes_a_folder(tmp_path: Path) -> None:
    place = await unpacked(tmp_path, archive(file("a/b.py", b"pass"), file("run.sh")))

    assert (place / "a/b.py").read_bytes() == b"pass"
    assert sorted(path.name for path in place.iterdir()) == ["a", "run.sh"]


async def test_archive_may_come_from_a_source_of_its_own(tmp_path: Path) -> None:
    data, source = archive(file("a.py", b"pass")), InMemoryBlobStore()
    key = (await source.put(data)).removeprefix("sha256/")
    archives = CodeArchives(InMemoryBlobStore(), tmp_path / "code", SystemClock())

    place = await archives.unpacked(key, source)

    assert (place / "a.py").read_bytes() == b"pass"


async def test_folder_of_another_download_may_vanish_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / ".new-gone").symlink_to("gone")  # it is listed, and there is nothing

    place = await unpacked(tmp_path, archive(file("a.py", b"pass")))

    assert (place / "a.py").read_bytes() == b"pass"


async def test_archive_is_unpacked_once(tmp_path: Path) -> None:
    data = archive(file("a.py"))
    blobs = InMemoryBlobStore()
    key = (await blobs.put(data)).removeprefix("sha256/")
    archives = CodeArchives(blobs, tmp_path / "code", SystemClock())

    first, second = await asyncio.gather(archives.unpacked(key), archives.unpacked(key))
    await blobs.delete(f"sha256/{key}")
    third = await CodeArchives(blobs, tmp_path / "code", SystemClock()).unpacked(key)

    assert first == second == third
    assert [path.name for path in (tmp_path / "code").iterdir()] == [key]


@pytest.mark.parametrize(
    "members",
    [
        [file("../outside.py")],
        [file("a/../../outside.py")],
        [link("out", "/etc"), file("out/passwd")],
        [link("out", "../..")],
    ],
)
async def test_nothing_leaves_the_folder(
    tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    with pytest.raises(CodeError, match="cannot be unpacked"):
        await unpacked(tmp_path, archive(*members))

    assert list((tmp_path / "code").iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["code"]


async def test_absolute_names_stay_inside(tmp_path: Path) -> None:
    place = await unpacked(tmp_path, archive(file("/abs.py")))

    assert (place / "abs.py").exists()


async def test_devices_are_refused(tmp_path: Path) -> None:
    member = tarfile.TarInfo("pipe")
    member.type = tarfile.FIFOTYPE

    with pytest.raises(CodeError, match="cannot be unpacked"):
        await unpacked(tmp_path, archive((member, b"")))


async def test_too_many_files_are_refused(tmp_path: Path) -> None:
    limits = replace(CODE_LIMITS, files=2)

    with pytest.raises(CodeError, match="at most 2 files"):
        await unpacked(tmp_path, archive(file("a"), file("b"), file("c")), limits)


async def test_too_large_archive_is_refused(tmp_path: Path) -> None:
    limits = replace(CODE_LIMITS, size_bytes=100)

    with pytest.raises(CodeError, match="at most"):
        await unpacked(tmp_path, archive(file("bomb", b"0" * 101)), limits)


@pytest.mark.parametrize(
    "data",
    [b"", b"no archive at all", archive(file("a", b"x" * 9999))[:60]],
    ids=["empty", "other", "torn"],
)
async def test_damaged_archive_is_an_error(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(CodeError, match="cannot be unpacked"):
        await unpacked(tmp_path, data)


async def test_missing_archive_is_an_error(tmp_path: Path) -> None:
    archives = CodeArchives(InMemoryBlobStore(), tmp_path / "code", SystemClock())

    with pytest.raises(CodeError, match="cannot be had"):
        await archives.unpacked("0" * 64)


async def test_archive_with_another_content_is_refused(tmp_path: Path) -> None:
    blobs = InMemoryBlobStore()
    claimed = "0" * 64
    await blobs.put_named(f"sha256/{claimed}", archive(file("a.py")))

    with pytest.raises(CodeError, match="damaged"):
        await CodeArchives(blobs, tmp_path / "code", SystemClock()).unpacked(claimed)


async def test_code_unused_for_long_is_removed(tmp_path: Path) -> None:
    clock = ManualClock(datetime.now(UTC))
    blobs = InMemoryBlobStore()
    keys = [
        (await blobs.put(archive(file(name)))).removeprefix("sha256/")
        for name in ("old.py", "used.py", "new.py")
    ]
    predecessor = CodeArchives(blobs, tmp_path / "code", clock)
    old, used = [await predecessor.unpacked(key) for key in keys[:2]]
    clock.advance(2 * KEPT_S)
    archives = CodeArchives(blobs, tmp_path / "code", clock)
    await archives.unpacked(keys[1])

    new = await archives.unpacked(keys[2])

    assert (old.exists(), used.exists(), new.exists()) == (False, True, True)


async def test_code_that_another_process_used_a_moment_ago_stays(tmp_path: Path) -> None:
    blobs = InMemoryBlobStore()
    first, second = [
        (await blobs.put(archive(file(name)))).removeprefix("sha256/") for name in ("a.py", "b.py")
    ]
    clock = ManualClock(datetime.now(UTC))
    place = await CodeArchives(blobs, tmp_path / "code", clock).unpacked(first)
    clock.advance(KEPT_S / 2)

    await CodeArchives(blobs, tmp_path / "code", clock).unpacked(second)

    assert place.exists()
