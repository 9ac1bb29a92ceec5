from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from nni.cli.diagnosis import machine
from tests.support.nvml import NvmlLibrary
from tests.unit.sdk.nni.cli.diagnosis.conftest import only


def test_a_home_that_is_no_folder_is_found(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NNI_HOME", str(tmp_path / "file"))

    assert f"cannot write to {tmp_path / 'file'}" in only(machine.check_disk(), "bad")[0]


def test_a_full_disk_is_found(home: Path) -> None:
    assert only(machine.check_disk(), "bad") == []

    assert "is full" in only(machine.check_disk(least_free_bytes=2**60), "bad")[0]


def test_the_room_that_the_bus_needs_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (text,) = only(machine.check_bus_room(), "ok")

    assert "jetstream; the bus starts with 1 MB, the first time and later" in text
    usage = shutil.disk_usage(home)._replace(free=63 * 1024 * 1024)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    (text,) = only(machine.check_bus_room(), "bad")
    assert text.startswith("63 MB are free for ")
    assert text.endswith("goes on with 64 MB: make room")


def test_a_low_limit_of_open_files_is_found() -> None:
    program = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512))\n"
        "from nni.cli.diagnosis.machine import check_descriptors\n"
        "print([(f.result, f.explanation) for f in check_descriptors()])"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert "'bad', 'a process may have 512 files open" in done.stdout


def test_a_low_limit_of_watches_is_found(tmp_path: Path) -> None:
    limit = tmp_path / "max_user_instances"
    limit.write_text("8\n")

    (text,) = only(machine.check_watches(limit), "bad")

    assert "sysctl fs.inotify.max_user_instances" in text
    limit.write_text("128\n")
    assert only(machine.check_watches(limit), "ok") == ["128 instances"]
    assert only(machine.check_watches(tmp_path / "none"), "note")


@pytest.mark.parametrize(
    ("disk_s", "own_s", "words"),
    [(1000.0, 1030.0, "is 30 s ahead of"), (1030.0, 1000.0, "is 30 s behind")],
)
def test_a_clock_that_differs_from_the_disks_is_found(
    disk_s: float, own_s: float, words: str
) -> None:
    finding = machine.judge_clock(disk_s, own_s, own_s, "/net/home")

    assert finding.result == "bad"
    assert finding.explanation.startswith(words)


def test_a_disk_that_writes_slowly_has_no_wrong_clock() -> None:
    assert machine.judge_clock(1020.0, 1000.0, 1060.0, "/net/home").result == "ok"
    assert "is 30 s ahead of" in machine.judge_clock(970.0, 1000.0, 1060.0, "/").explanation


def test_the_clock_of_this_machine_agrees_with_its_disk(home: Path) -> None:
    assert only(machine.check_clock(), "ok")


def test_gpus_whose_driver_is_silent_are_found(tmp_path: Path) -> None:
    def load() -> NvmlLibrary:
        return NvmlLibrary(works=False)

    (tmp_path / "nvidia0").write_text("")

    (text,) = only(machine.check_gpus(tmp_path, load), "bad")

    assert text.startswith("nvidia0 is there, but the driver does not answer (Driver Not Loaded)")
    assert only(machine.check_gpus(tmp_path / "none", load), "ok")


def test_gpus_that_nothing_can_ask_about_are_found(tmp_path: Path) -> None:
    (tmp_path / "nvidia0").write_text("")

    (text,) = only(machine.check_gpus(tmp_path, lambda: import_module("no_such_package")), "bad")

    assert "pip install nvidia-ml-py" in text


@pytest.mark.parametrize("name", ["H200", b"H200"])
def test_gpus_that_answer_are_named(tmp_path: Path, name: str | bytes) -> None:
    findings = machine.check_gpus(tmp_path, lambda: NvmlLibrary(gpus=2, name=name))

    assert only(findings, "ok") == ["2: H200"]


def test_the_command_prints_json_and_tells_by_its_exit_code(home: Path, tmp_path: Path) -> None:
    variables = {**os.environ, "NNI_HOME": str(home), "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "nni.cli.main", "doctor", "--json"]
    good = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    (home / "endpoint.json").write_text("{")
    bad = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)

    assert (good.returncode, bad.returncode) == (0, 1), good.stdout + good.stderr
    found = {finding["check"]: finding["result"] for finding in json.loads(bad.stdout)}
    assert found["endpoint file"] == "bad"
    assert found["python"] == "ok"
