"""Facts about a worker."""

import os
import shutil
import sys
import time
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


def test_tag_of_a_machine_with_glibc_has_the_version_of_that() -> None:
    library, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    if library != "glibc":
        pytest.skip("the C library of this machine is another one")
    major, minor = version.split(".")[:2]

    assert wheel_platform() == f"manylinux_{major}_{minor}_{os.uname().machine}"


def test_keys_are_those_of_the_system() -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    file = Path("/etc/machine-id")
    machine = file.read_text().strip() if file.exists() else ""

    assert boot_key() == f"{boot}:{Path('/proc/self/ns/pid').readlink()}"
    assert machine_key() == f"{os.uname().nodename}:{machine[:32]}"


def test_probe_reads_the_clock_and_the_kind_of_python(tmp_path: Path) -> None:
    before_s = time.time()

    facts = probe(WorkerFolders(str(tmp_path / "nni")))

    assert before_s <= facts["time"] <= time.time()
    assert facts["implementation"] == sys.implementation.name + sys.abiflags
    assert facts["platform_tag"] == wheel_platform()
    assert facts["free_bytes"] <= shutil.disk_usage(tmp_path).total


def test_bundles_of_the_same_time_are_sorted_by_name(tmp_path: Path) -> None:
    folders = WorkerFolders(str(tmp_path))
    folders.open()
    for name in ("b", "c", "a"):
        folders.bundle(name).mkdir()
        os.utime(folders.bundle(name), (1000, 1000))

    assert probe(folders)["bundles"] == ["a", "b", "c"]
