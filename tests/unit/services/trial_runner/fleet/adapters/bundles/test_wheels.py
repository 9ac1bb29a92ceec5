"""Wheels for a worker's interpreter, without a network."""

import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.bundles.installed import NeededDistribution
from svc_trial_runner.fleet.adapters.bundles.wheels import WheelFolder, wheel_files
from svc_trial_runner.fleet.domain.distributions import WorkerTarget
from svc_trial_runner.fleet.ports import PlatformError

TARGET = WorkerTarget((3, 12), "manylinux_2_36_x86_64")
NEEDED = NeededDistribution("fast-thing", "1.5")
NAME = "fast_thing-1.5-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"


def write_wheel(folder: Path, name: str = NAME) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("fast_thing/__init__.py", "x = 1")
        archive.writestr("fast_thing-1.5.dist-info/METADATA", "Name: fast-thing\nVersion: 1.5\n")
        archive.writestr("fast_thing-1.5.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        archive.writestr("fast_thing-1.5.dist-info/RECORD", "")
        archive.writestr("fast_thing-1.5.data/purelib/extra.py", "y = 2")
        archive.writestr("fast_thing-1.5.data/scripts/fast", "#!python")
        archive.writestr("fast_thing-1.5.data/platlib/more/native.so", "z")
        archive.writestr("fast_thing-1.5.data/purelib", "outside")
        archive.writestr("../outside.py", "")
        archive.writestr("/outside.py", "")
    return path


def no_network(folder: Path, index: Path) -> WheelFolder:
    return WheelFolder(folder, ("--no-index", "--find-links", str(index)))


def test_wheel_that_a_person_has_put_there_is_found(tmp_path: Path) -> None:
    path = write_wheel(tmp_path / "wheels")
    write_wheel(tmp_path / "wheels", "fast_thing-1.5-cp311-cp311-manylinux2014_x86_64.whl")
    write_wheel(tmp_path / "wheels", "fast_thing-1.4-cp312-cp312-manylinux2014_x86_64.whl")

    assert no_network(tmp_path / "wheels", tmp_path / "none").wheel(NEEDED, TARGET) == path


def test_wheel_is_downloaded_once_for_the_tags_of_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pip")
    # The draft is beside the wheels: from another file system none could be renamed.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    index = tmp_path / "index"
    write_wheel(index, "fast_thing-1.5-cp313-cp313-manylinux2014_x86_64.whl")
    original = write_wheel(index)
    folder = no_network(tmp_path / "wheels", index)

    found = folder.wheel(NEEDED, TARGET)

    assert found == tmp_path / "wheels" / NAME
    assert [path.name for path in found.parent.iterdir()] == [NAME]
    original.unlink()
    assert folder.wheel(NEEDED, TARGET) == found


def test_latest_wheel_is_taken_where_any_version_will_do(tmp_path: Path) -> None:
    write_wheel(tmp_path / "wheels", "fast_thing-1.4-cp312-cp312-manylinux2014_x86_64.whl")
    path = write_wheel(tmp_path / "wheels")
    write_wheel(tmp_path / "wheels", "slow_thing-1.6-cp312-cp312-manylinux2014_x86_64.whl")
    (tmp_path / "wheels" / "no-wheel.whl").touch()
    needed = NeededDistribution("fast-thing", "")

    assert no_network(tmp_path / "wheels", tmp_path / "none").wheel(needed, TARGET) == path


def test_missing_wheel_is_named_with_the_folder_to_put_it_into(tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()

    with pytest.raises(
        PlatformError, match=r"no wheel of fast-thing==1\.5 for Python 3\.12"
    ) as caught:
        no_network(tmp_path / "wheels", tmp_path / "index").wheel(NEEDED, TARGET)

    assert "on manylinux_2_36_x86_64: " in caught.value.message
    assert str(tmp_path / "wheels") in caught.value.remedy
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert caught.value.remedy.endswith(f"or use Python {here} on the worker, as here")
    assert list((tmp_path / "wheels").iterdir()) == []


def test_files_of_a_wheel_are_where_they_would_be_installed(tmp_path: Path) -> None:
    files = dict(wheel_files(write_wheel(tmp_path)))

    assert files["fast_thing/__init__.py"] == b"x = 1"
    assert files["extra.py"] == b"y = 2"
    assert files["more/native.so"] == b"z"
    assert b"outside" not in files.values()
    assert not any("outside" in name or "scripts" in name for name in files)


def test_file_that_is_no_wheel_is_refused(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"no archive")

    with pytest.raises(PlatformError, match="is no wheel"):
        list(wheel_files(tmp_path / NAME))


def test_folders_in_a_wheel_are_no_files(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / NAME, "w") as archive:
        archive.writestr("z.py", "z")
        archive.mkdir("package")
        archive.writestr("a.py", "a")

    assert list(wheel_files(tmp_path / NAME)) == [("a.py", b"a"), ("z.py", b"z")]


def test_wheel_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="is no wheel") as caught:
        list(wheel_files(tmp_path / NAME))

    assert caught.value.remedy == f"remove {tmp_path / NAME} and try again"
