from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import to_value
from svc_common.errors import FailedPreconditionError
from svc_common.safe_folders import SafeFolder
from svc_common.storage.memory import InMemoryBlobStore
from svc_common.storage.shared_storage import LocalMount, SharedStorage, StorageKind
from svc_manager.blobs.shared_storages import SharedStorages
from svc_manager.blobs.trial_outputs import TrialOutputs
from svc_manager.converters.shared_storage import storage_of


def storage_at(place: Path, mark: str = "") -> SharedStorage:
    return SharedStorage(
        StorageKind.NFS,
        str(place),
        "data",
        LocalMount.USER,
        nfs_server="10.0.0.9",
        exported_directory="/data",
        mark=mark,
    )


def config_for(place: Path) -> config_pb2.ExperimentConfig:
    section = {
        "storageType": "NFS",
        "localMountPoint": str(place),
        "remoteMountPoint": "data",
        "localMounted": "usermount",
        "nfsServer": "10.0.0.9",
        "exportedDirectory": "/data",
    }
    service = config_pb2.TrainingServiceConfig(
        platform="remote", options=to_value({"sharedStorage": section})
    )
    return config_pb2.ExperimentConfig(training_services=[service, service])


@pytest.fixture
def storages(tmp_path: Path) -> SharedStorages:
    return SharedStorages(tmp_path / "own", {})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "storage"
    folder.mkdir()
    return folder


def written(place: Path, trial: str = "t1") -> Path:
    """Write the folder of a trial as its agent does; return it."""
    folder = place / "nni" / "e1" / "trials" / trial
    (folder / "nnioutput" / "tensorboard").mkdir(parents=True)
    (folder / "nnioutput" / "tensorboard" / "events").write_text("curve", "utf-8")
    (folder / "stdout").write_text("said", "utf-8")
    (folder / "code").mkdir()
    (folder / "code" / "trial.py").touch()
    return folder


async def test_mark_is_in_the_storage_and_in_the_options_of_each_platform(
    storages: SharedStorages, place: Path
) -> None:
    config = config_for(place)

    await storages.begin("e1", storage_at(place), config)

    mark = (place / "nni/e1/storage-mark").read_text("ascii")
    found = storage_of(config)
    assert found is not None
    assert found.mark == mark
    assert config.training_services[0].options == config.training_services[1].options


async def test_storage_that_cannot_be_written_names_field_and_remedy(
    storages: SharedStorages, tmp_path: Path
) -> None:
    missing = tmp_path / "missing"

    with pytest.raises(FailedPreconditionError, match=r"localMountPoint: .*\(usermount\)"):
        await storages.begin("e1", storage_at(missing), config_for(missing))


async def test_storage_that_is_not_mounted_any_more_is_refused_before_anything_is_written(
    tmp_path: Path, place: Path
) -> None:
    table = tmp_path / "fstab"
    table.write_text(f"10.0.0.9:/data {place} nfs defaults 0 0\n", "utf-8")
    storages = SharedStorages(tmp_path / "own", {}, mount_table=table)
    below = replace(storage_at(place), local_mount_point=str(place / "tuning"))

    for storage in (storage_at(place), below):
        with pytest.raises(
            FailedPreconditionError, match=f"which is not mounted.* `mount {place}`"
        ):
            await storages.begin("e1", storage, config_for(place))

    assert not list(place.iterdir())


async def test_storage_whose_server_is_away_is_named(tmp_path: Path, place: Path) -> None:
    answered = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        threads.submit(answered.wait)  # an access that the server does not answer
        storages = SharedStorages(tmp_path / "own", {}, threads, timedelta(milliseconds=1))

        try:
            with pytest.raises(FailedPreconditionError, match=r"did not answer within 0\.001 s"):
                await storages.begin("e1", storage_at(place), config_for(place))
            with pytest.raises(FailedPreconditionError, match="did not answer"):
                await storages.remove("e1", storage_at(place, mark="m1"))
        finally:
            answered.set()


async def test_storage_that_is_not_mounted_here_has_no_mark(
    storages: SharedStorages, place: Path
) -> None:
    config = config_for(place)

    await storages.begin("e1", replace(storage_at(place), local_mount=LocalMount.NONE), config)

    assert not list(place.iterdir())


async def test_output_appears_in_the_folder_of_the_experiment(
    storages: SharedStorages, place: Path, tmp_path: Path
) -> None:
    written(place)
    outputs = TrialOutputs(InMemoryBlobStore(), shared=storages)

    await outputs.fetch(tmp_path / "e1", "e1", "t1", 1, storage_at(place))

    trial = tmp_path / "e1/trials/t1"
    assert (trial / "tensorboard/events").read_text("utf-8") == "curve"
    assert (trial / "trial.log").read_text("utf-8") == "said"
    assert not (trial / "code").exists()
    assert [path.name for path in (tmp_path / "e1/trials").iterdir()] == ["t1"]


async def test_links_of_a_trial_are_left_out(
    storages: SharedStorages, place: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("s3cret", "utf-8")
    folder = written(place)
    (folder / "nnioutput" / "link").symlink_to(tmp_path / "secret")
    target = tmp_path / "target"

    with SafeFolder.open(target, create=True) as opened:
        assert await storages.fetch("e1", "t1", storage_at(place), opened)

    assert not (target / "link").exists()


async def test_link_in_place_of_a_trial_is_not_followed(
    storages: SharedStorages, place: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "secret").touch()
    (place / "nni/e1/trials").mkdir(parents=True)
    (place / "nni/e1/trials/t1").symlink_to(elsewhere)

    with SafeFolder.open(tmp_path / "target", create=True) as opened:
        assert not await storages.fetch("e1", "t1", storage_at(place), opened)


async def test_trial_without_a_folder_leaves_none(
    storages: SharedStorages, place: Path, tmp_path: Path
) -> None:
    outputs = TrialOutputs(InMemoryBlobStore(), shared=storages)

    await outputs.fetch(tmp_path / "e1", "e1", "t1", 1, storage_at(place))

    assert not list((tmp_path / "e1/trials").iterdir())


async def begun(storages: SharedStorages, place: Path) -> SharedStorage:
    """Begin an experiment; return its storage as its log has it."""
    config = config_for(place)
    await storages.begin("e1", storage_at(place), config)
    found = storage_of(config)
    assert found is not None
    return found


async def test_folder_of_a_deleted_experiment_is_deleted(
    storages: SharedStorages, place: Path
) -> None:
    storage = await begun(storages, place)
    written(place)

    await storages.remove("e1", storage)
    await storages.remove("e1", storage)

    assert not list((place / "nni").iterdir())


async def test_folder_with_another_mark_is_kept(storages: SharedStorages, place: Path) -> None:
    storage = await begun(storages, place)
    (place / "nni/e1/storage-mark").write_text("xyz", "ascii")

    await storages.remove("e1", storage)

    assert (place / "nni/e1/storage-mark").exists()


async def test_deletion_of_a_copy_keeps_the_folder_of_the_original(
    storages: SharedStorages, place: Path, tmp_path: Path
) -> None:
    storage = await begun(storages, place)
    written(place)
    elsewhere = SharedStorages(tmp_path / "other-installation", {})

    await elsewhere.remove("e1", storage)

    assert (place / "nni/e1/trials/t1/stdout").exists()
    await storages.remove("e1", storage)
    assert not list((place / "nni").iterdir())


async def test_folder_of_marks_that_cannot_be_used_is_named(
    storages: SharedStorages, place: Path, tmp_path: Path
) -> None:
    storage = await begun(storages, place)
    (tmp_path / "file").write_text("")
    broken = SharedStorages(tmp_path / "broken", {})
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "marks").symlink_to(tmp_path / "file")

    with pytest.raises(FailedPreconditionError, match="marks of the manager cannot be used"):
        await broken.remove("e1", storage)
    with pytest.raises(FailedPreconditionError, match="marks of the manager cannot be used"):
        await begun(broken, place)


async def test_storage_that_was_never_marked_here_is_not_touched(
    storages: SharedStorages, place: Path
) -> None:
    await storages.remove("e1", storage_at(place, "abc"))

    assert not list(place.iterdir())
