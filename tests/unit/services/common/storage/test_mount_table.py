from __future__ import annotations

from pathlib import Path

import pytest

from svc_common.storage.mount_table import declared_mount_point, unmounted_point

TABLE = r"""
# /mnt/old nfs defaults
UUID=1 / ext4 defaults 0 1
UUID=2 none swap sw 0 0
nas:/data /mnt/data nfs defaults 0 0
nas:/deep /mnt/data/deep nfs noauto
nas:/b /mnt/two\040words nfs
damaged
"""


@pytest.mark.parametrize(
    ("place", "point"),
    [
        ("/mnt/data", "/mnt/data"),
        ("/mnt/data/tuning/a", "/mnt/data"),
        ("/mnt/data/deep/a", "/mnt/data/deep"),
        ("/mnt/two words/a", "/mnt/two words"),
        ("/mnt/database", None),
        ("/mnt/old", None),
        ("/home/ann", None),
        ("/", None),
    ],
)
def test_nearest_mount_point_at_or_above_a_folder_is_found(place: str, point: str | None) -> None:
    assert declared_mount_point(Path(place), TABLE) == (None if point is None else Path(point))


def test_storage_of_the_table_that_is_not_mounted_is_found(tmp_path: Path) -> None:
    table = tmp_path / "fstab"
    table.write_text(f"nas:/data {tmp_path}/data nfs\nproc /proc proc\n", "utf-8")

    assert unmounted_point(tmp_path / "data" / "tuning", table) == tmp_path / "data"
    assert unmounted_point(tmp_path / "other", table) is None
    assert unmounted_point(Path("/proc/self"), table) is None


def test_machine_without_a_table_has_no_unmounted_storage(tmp_path: Path) -> None:
    assert unmounted_point(tmp_path, tmp_path / "fstab") is None
