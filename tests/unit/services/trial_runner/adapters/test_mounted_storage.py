from pathlib import Path

import pytest

from svc_common.errors import InvalidArgumentError
from svc_common.storage.shared_storage import LocalMount, SharedStorage, StorageKind
from svc_trial_runner.adapters.mounted_storage import MountedStorage
from svc_trial_runner.ports import LaunchError


def storage_at(place: str, mark: str = "abc") -> SharedStorage:
    return SharedStorage(StorageKind.NFS, "/here", place, LocalMount.USER, "s", "/d", mark=mark)


def opened(tmp_path: Path, place: Path, pool: str = "exp-e1") -> MountedStorage:
    folder = tmp_path / "agent"
    folder.mkdir()
    return MountedStorage(storage_at(str(place)), pool, folder, {"PATH": str(tmp_path)})


async def test_storage_that_the_manager_sees_needs_no_mount(tmp_path: Path) -> None:
    place = tmp_path / "storage"
    (place / "nni/e1").mkdir(parents=True)
    (place / "nni/e1/storage-mark").write_text("abc", "ascii")
    storage = opened(tmp_path, place)

    await storage.ensure()
    await storage.aclose()

    assert storage.root == place / "nni"


async def test_failed_mount_is_a_failed_launch(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="is not installed on this machine"):
        await opened(tmp_path, tmp_path / "storage").ensure()


def test_relative_mount_point_is_below_the_home_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "ann"))

    assert opened(tmp_path, Path("data")).root == tmp_path / "ann/data/nni"


def test_mount_below_the_agents_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="remoteMountPoint must be a folder outside"):
        opened(tmp_path, tmp_path / "agent" / "data")


def test_pool_of_several_experiments_has_no_storage(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="sharedStorage must be of an experiment"):
        opened(tmp_path, tmp_path / "data", pool="gpus")


async def test_storage_that_was_mounted_is_unmounted_at_the_end(tmp_path: Path) -> None:
    """The commands are scripts that make and remove what a mount shows."""
    place = tmp_path / "storage"
    for name, script in {
        "sudo": 'shift; exec "$@"',
        "mount": f"/bin/mkdir -p {place}/nni/e1; printf abc > {place}/nni/e1/storage-mark",
        "umount": 'exec /bin/rm -r "$1/nni"',
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o700)
    storage = opened(tmp_path, place)

    await storage.ensure()
    mounted = storage.root.is_dir()
    await storage.aclose()

    assert (mounted, storage.root.exists()) == (True, False)
