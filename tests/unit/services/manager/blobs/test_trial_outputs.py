from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from svc_common.errors import ServiceError
from svc_common.experiment_files import ExperimentRoots
from svc_common.storage.archives import pack
from svc_common.storage.memory import InMemoryBlobStore
from svc_manager.blobs.trial_outputs import TrialOutputs


async def stored(folder: Path, blobs: InMemoryBlobStore, attempt: int = 1) -> None:
    """Store the output of a trial."""
    source = folder / f"source-{attempt}"
    source.mkdir()
    (source / "model").write_text(f"of attempt {attempt}")
    pack(source, folder / "files.tar")
    prefix = f"output/e1/t1/{attempt}"
    await blobs.put_named(f"{prefix}/stdout", b"said")
    await blobs.put_named_file(f"{prefix}/files.tar", folder / "files.tar")


async def test_folder_of_another_machine_appears_here(tmp_path: Path) -> None:
    blobs = InMemoryBlobStore()
    await stored(tmp_path, blobs)

    await TrialOutputs(blobs).fetch(tmp_path / "e1", "e1", "t1", 1)

    place = tmp_path / "e1" / "trials" / "t1"
    names = sorted(path.name for path in place.iterdir())
    assert names == ["model", "stdout", "trial.log"]
    assert (place / "trial.log").read_bytes() == b"said"


async def test_last_attempt_is_the_one_that_counts(tmp_path: Path) -> None:
    blobs = InMemoryBlobStore()
    for attempt in (1, 2):
        await stored(tmp_path, blobs, attempt)

    await TrialOutputs(blobs).fetch(tmp_path / "e1", "e1", "t1", 2)

    assert (tmp_path / "e1/trials/t1/model").read_text() == "of attempt 2"


async def test_output_that_is_still_coming_is_not_brought(tmp_path: Path) -> None:
    blobs = InMemoryBlobStore()
    await blobs.put_named("output/e1/t1/1/stdout", b"said")

    await TrialOutputs(blobs).fetch(tmp_path / "e1", "e1", "t1", 1)

    assert not (tmp_path / "e1/trials/t1").exists()


async def test_folder_that_is_here_is_left_alone(tmp_path: Path) -> None:
    blobs = InMemoryBlobStore()
    await stored(tmp_path, blobs)
    (tmp_path / "e1/trials/t1").mkdir(parents=True)

    await TrialOutputs(blobs).fetch(tmp_path / "e1", "e1", "t1", 1)

    assert list((tmp_path / "e1/trials/t1").iterdir()) == []


async def test_many_readers_bring_it_once(tmp_path: Path) -> None:
    blobs = InMemoryBlobStore()
    await stored(tmp_path, blobs)
    outputs = TrialOutputs(blobs)

    await asyncio.gather(*(outputs.fetch(tmp_path / "e1", "e1", "t1", 1) for _ in range(5)))

    assert [path.name for path in (tmp_path / "e1/trials").iterdir()] == ["t1"]


async def test_archive_that_is_none_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    blobs = InMemoryBlobStore()
    await blobs.put_named("output/e1/t1/1/files.tar", b"no archive")

    with pytest.raises(ServiceError, match="cannot be unpacked"):
        await TrialOutputs(blobs).fetch(tmp_path / "e1", "e1", "t1", 1)

    assert list((tmp_path / "e1/trials").iterdir()) == []


@pytest.mark.parametrize("name", ["e1", "e1/trials"])
async def test_output_is_not_brought_behind_a_link(tmp_path: Path, name: str) -> None:
    blobs = InMemoryBlobStore()
    await stored(tmp_path, blobs)
    outside = tmp_path / "outside"
    outside.mkdir()
    link = tmp_path / "root" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)

    with pytest.raises(ServiceError):
        await TrialOutputs(blobs, ExperimentRoots([tmp_path / "root"])).fetch(
            tmp_path / "root" / "e1", "e1", "t1", 1
        )

    assert list(outside.iterdir()) == []
