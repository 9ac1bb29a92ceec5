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
from svc_common.storage.memory import InMemoryBlobStore
from svc_trial_runner.adapters.code_archives import CODE_LIMITS, KEPT_S, CachedCodeStore
from svc_trial_runner.domain.tasks import BlobKey
from svc_trial_runner.ports import LaunchError


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
    key = BlobKey(hashlib.sha256(data).hexdigest(), len(data))
    store = CachedCodeStore(blobs, folder / "code", SystemClock(), limits=limits)
    return await store.materialise(key)


async def test_archive_becomes_a_folder(tmp_path: Path) -> None:
    place = await unpacked(tmp_path, archive(file("a/b.py", b"pass"), file("run.sh")))

    assert (place / "a/b.py").read_bytes() == b"pass"
    assert sorted(path.name for path in place.iterdir()) == ["a", "run.sh"]


async def test_folder_of_another_download_may_vanish_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / ".new-gone").symlink_to("gone")  # it is listed, and there is nothing

    place = await unpacked(tmp_path, archive(file("a.py", b"pass")))

    assert (place / "a.py").read_bytes() == b"pass"


async def test_archive_is_unpacked_once(tmp_path: Path) -> None:
    data = archive(file("a.py"))
    blobs = InMemoryBlobStore()
    key = BlobKey((await blobs.put(data)).removeprefix("sha256/"), len(data))
    store = CachedCodeStore(blobs, tmp_path / "code", SystemClock())

    first, second = await asyncio.gather(store.materialise(key), store.materialise(key))
    await blobs.delete(f"sha256/{key.sha256}")
    third = await CachedCodeStore(blobs, tmp_path / "code", SystemClock()).materialise(key)

    assert first == second == third
    assert [path.name for path in (tmp_path / "code").iterdir()] == [key.sha256]


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
    with pytest.raises(LaunchError, match="cannot be unpacked"):
        await unpacked(tmp_path, archive(*members))

    assert list((tmp_path / "code").iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["code"]


async def test_absolute_names_stay_inside(tmp_path: Path) -> None:
    place = await unpacked(tmp_path, archive(file("/abs.py")))

    assert (place / "abs.py").exists()


async def test_devices_are_refused(tmp_path: Path) -> None:
    member = tarfile.TarInfo("pipe")
    member.type = tarfile.FIFOTYPE

    with pytest.raises(LaunchError, match="cannot be unpacked"):
        await unpacked(tmp_path, archive((member, b"")))


async def test_too_many_files_are_refused(tmp_path: Path) -> None:
    limits = replace(CODE_LIMITS, files=2)

    with pytest.raises(LaunchError, match="at most 2 files"):
        await unpacked(tmp_path, archive(file("a"), file("b"), file("c")), limits)


async def test_too_large_archive_is_refused(tmp_path: Path) -> None:
    limits = replace(CODE_LIMITS, size_bytes=100)

    with pytest.raises(LaunchError, match="at most"):
        await unpacked(tmp_path, archive(file("bomb", b"0" * 101)), limits)


@pytest.mark.parametrize(
    "data",
    [b"", b"no archive at all", archive(file("a", b"x" * 9999))[:60]],
    ids=["empty", "other", "torn"],
)
async def test_damaged_archive_is_an_error(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(LaunchError, match="cannot be unpacked"):
        await unpacked(tmp_path, data)


async def test_missing_archive_is_an_error(tmp_path: Path) -> None:
    store = CachedCodeStore(InMemoryBlobStore(), tmp_path / "code", SystemClock())

    with pytest.raises(LaunchError, match="cannot be had"):
        await store.materialise(BlobKey("0" * 64, 1))


async def test_archive_with_another_content_is_refused(tmp_path: Path) -> None:
    blobs = InMemoryBlobStore()
    claimed = "0" * 64
    await blobs.put_named(f"sha256/{claimed}", archive(file("a.py")))

    with pytest.raises(LaunchError, match="damaged"):
        await CachedCodeStore(blobs, tmp_path / "code", SystemClock()).materialise(
            BlobKey(claimed, 1)
        )


async def test_each_trial_gets_a_copy_of_its_own(tmp_path: Path) -> None:
    place = await unpacked(tmp_path, archive(file("a/b.py", b"pass"), file("c.py", b"pass")))
    store = CachedCodeStore(InMemoryBlobStore(), tmp_path / "code", SystemClock())
    target = tmp_path / "trial"

    await store.copy(place, target)
    (target / "a/b.py").write_bytes(b"changed")
    (target / "left").write_bytes(b"")
    await store.copy(place, target)

    assert (target / "c.py").read_bytes() == b"pass"
    assert (place / "a/b.py").read_bytes() == b"pass"
    assert not (target / "left").exists()


async def test_copy_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    store = CachedCodeStore(InMemoryBlobStore(), tmp_path / "code", SystemClock())

    with pytest.raises(LaunchError, match="cannot be copied"):
        await store.copy(tmp_path / "missing", tmp_path / "target")


async def test_code_unused_for_long_is_removed(tmp_path: Path) -> None:
    clock = ManualClock(datetime.now(UTC))
    blobs = InMemoryBlobStore()
    keys = [
        BlobKey((await blobs.put(archive(file(name)))).removeprefix("sha256/"), 0)
        for name in ("old.py", "used.py", "new.py")
    ]
    predecessor = CachedCodeStore(blobs, tmp_path / "code", clock)
    old, used = [await predecessor.materialise(key) for key in keys[:2]]
    clock.advance(2 * KEPT_S)
    store = CachedCodeStore(blobs, tmp_path / "code", clock)
    await store.materialise(keys[1])

    new = await store.materialise(keys[2])

    assert (old.exists(), used.exists(), new.exists()) == (False, True, True)


async def test_code_that_another_agent_used_a_moment_ago_stays(tmp_path: Path) -> None:
    blobs = InMemoryBlobStore()
    first, second = [
        BlobKey((await blobs.put(archive(file(name)))).removeprefix("sha256/"), 0)
        for name in ("a.py", "b.py")
    ]
    clock = ManualClock(datetime.now(UTC))
    place = await CachedCodeStore(blobs, tmp_path / "code", clock).materialise(first)
    clock.advance(KEPT_S / 2)

    await CachedCodeStore(blobs, tmp_path / "code", clock).materialise(second)

    assert place.exists()
