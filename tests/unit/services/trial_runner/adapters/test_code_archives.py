import io
import tarfile
from pathlib import Path

import pytest

from svc_common.clock import SystemClock
from svc_common.storage.code_archives import CodeArchives
from svc_common.storage.memory import InMemoryBlobStore
from svc_trial_runner.adapters.code_archives import CachedCodeStore
from svc_trial_runner.domain.claims import AttemptKey
from svc_trial_runner.domain.tasks import BlobKey
from svc_trial_runner.ports import LaunchError

ATTEMPT = AttemptKey("e1", "t1", 1)


def store_of(blobs: InMemoryBlobStore, folder: Path) -> CachedCodeStore:
    return CachedCodeStore(CodeArchives(blobs, folder / "cache", SystemClock()))


async def test_missing_archive_is_a_failure_to_launch(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="cannot be had"):
        await store_of(InMemoryBlobStore(), tmp_path).materialise(ATTEMPT, BlobKey("0" * 64, 1))


async def test_each_trial_gets_a_copy_of_its_own(tmp_path: Path) -> None:
    (place := tmp_path / "code" / "a").mkdir(parents=True)
    (place / "b.py").write_bytes(b"pass")
    (place.parent / "c.py").write_bytes(b"pass")
    store = store_of(InMemoryBlobStore(), tmp_path)
    target = tmp_path / "trial"

    await store.copy(place.parent, target)
    (target / "a/b.py").write_bytes(b"changed")
    (target / "left").write_bytes(b"")
    await store.copy(place.parent, target)

    assert (target / "c.py").read_bytes() == b"pass"
    assert (place / "b.py").read_bytes() == b"pass"
    assert not (target / "left").exists()


async def test_copy_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    store = store_of(InMemoryBlobStore(), tmp_path)

    with pytest.raises(LaunchError, match="cannot be copied"):
        await store.copy(tmp_path / "missing", tmp_path / "target")


async def test_archive_is_read_with_the_access_of_its_attempt(tmp_path: Path) -> None:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("a.py"), io.BytesIO())
    own, asked = InMemoryBlobStore(), []
    key = await own.put(content.getvalue())

    def of_attempt(attempt: AttemptKey) -> InMemoryBlobStore:
        asked.append(attempt)
        return own

    archives = CodeArchives(InMemoryBlobStore(), tmp_path / "cache", SystemClock())
    store = CachedCodeStore(archives, of_attempt=of_attempt)
    folder = await store.materialise(ATTEMPT, BlobKey(key.removeprefix("sha256/"), 1))

    assert [path.name for path in folder.iterdir()] == ["a.py"]
    assert asked == [ATTEMPT]


async def test_links_of_the_code_stay_links(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "data").symlink_to("/nowhere")

    await store_of(InMemoryBlobStore(), tmp_path).copy(tmp_path / "code", tmp_path / "trial")

    assert (tmp_path / "trial" / "data").readlink() == Path("/nowhere")
