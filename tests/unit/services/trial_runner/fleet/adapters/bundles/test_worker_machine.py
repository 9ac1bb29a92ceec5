"""Facts about a worker."""

import os
import sys
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.bundles.worker_folders import WorkerError, WorkerFolders
from svc_trial_runner.fleet.adapters.bundles.worker_machine import (
    boot_key,
    machine_key,
    probe,
    unpacked_bundles,
    wheel_platform,
)


def test_keys_of_machine_and_boot_stay_the_same() -> None:
    assert machine_key() == machine_key()
    assert machine_key().startswith(os.uname().nodename)
    assert boot_key() == boot_key() != ""


def test_platform_tag_has_the_version_of_the_c_library() -> None:
    tag = wheel_platform()

    assert tag.startswith(("manylinux_2_", "musllinux_1_"))
    assert tag.endswith(os.uname().machine)


def test_probe_reports_the_machine_and_creates_the_folder(tmp_path: Path) -> None:
    folders = WorkerFolders(str(tmp_path / "nni"))

    facts = probe(folders)

    assert facts["python"] == list(sys.version_info[:3])
    assert facts["interpreter"] == sys.executable
    assert facts["folder"] == str(tmp_path / "nni")
    assert facts["free_bytes"] > 0
    assert facts["bundles"] == []
    assert folders.bundles.is_dir()


def test_folder_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(WorkerError, match="file"):
        probe(WorkerFolders(str(tmp_path / "file" / "nni")))


def test_last_used_bundle_comes_first(tmp_path: Path) -> None:
    folders = WorkerFolders(str(tmp_path))
    folders.open()
    for age, name in enumerate(("new", "old")):
        folders.bundle(name).mkdir()
        os.utime(folders.bundle(name), (1000 - age, 1000 - age))
    (folders.bundles / ".new-draft").mkdir()

    assert unpacked_bundles(folders) == ["new", "old"]


def test_probe_has_the_figures_of_the_system(tmp_path: Path) -> None:
    facts = probe(WorkerFolders(str(tmp_path / "nni")))

    space = os.statvfs(tmp_path)
    assert facts["cores"] == os.cpu_count()
    assert facts["noexec"] is bool(space.f_flag & os.ST_NOEXEC)
    assert (facts["free_files"] is None) is (space.f_files == 0)
    assert (facts["home"], facts["host"]) == (str(Path.home()), os.uname().nodename)
    assert (facts["system"], facts["machine"]) == ("Linux", os.uname().machine)


def test_key_of_a_machine_has_32_digits_of_its_id_at_most() -> None:
    assert len(machine_key().rpartition(":")[2]) in {0, 32}


def test_folder_that_is_missing_has_no_bundles(tmp_path: Path) -> None:
    assert unpacked_bundles(WorkerFolders(str(tmp_path / "none"))) == []
