from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nni.experiment.config import (
    ExperimentConfig,
    LocalConfig,
    RemoteConfig,
    RemoteMachineConfig,
)
from nni.experiment.errors import ConfigError, RefusedError, WrongStateError
from nni.experiment.preflight import (
    DEFAULT_PORT,
    check_code,
    check_code_folder,
    check_folders,
    check_port,
    check_start,
    on_free_port,
    secret_in_code,
)
from nni_proto.experiment.v1 import config_pb2
from tests.support.ports import free_port


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


@pytest.mark.claim("platform", 28)
def test_taken_port_is_refused_with_its_holder(taken_port: int) -> None:
    with pytest.raises(RefusedError, match=rf"port {taken_port} is in use by program") as raised:
        check_port(taken_port)

    assert f"pid {os.getpid()}" in raised.value.facts["holder"]


def test_next_port_is_tried_when_another_process_has_taken_one() -> None:
    tried: list[int] = []

    def call(port: int) -> int:
        tried.append(port)
        if len(tried) < 3:
            raise WrongStateError("in use", {"field": "port"})
        return port

    assert on_free_port(None, call) == tried[2]
    assert sorted(set(tried)) == tried
    assert min(tried) >= DEFAULT_PORT


def test_given_port_is_the_only_one() -> None:
    assert on_free_port(9, lambda port: port) == 9


def test_other_refusal_is_not_tried_again() -> None:
    def refuse(_port: int) -> None:
        raise WrongStateError("it is running")

    with pytest.raises(WrongStateError, match="it is running"):
        on_free_port(None, refuse)


def test_free_port_and_no_port_pass() -> None:
    check_port(free_port())
    check_port(0)


@pytest.mark.parametrize("port", [-1, 65536])
def test_number_that_is_no_port_is_refused(port: int) -> None:
    with pytest.raises(ConfigError, match="from 1 to 65535"):
        check_port(port)


def test_full_disk_is_refused_with_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"the disk of .* is full: .* MB are free"):
        check_folders([tmp_path], least_free_bytes=1 << 60)


def test_folder_that_does_not_exist_is_judged_by_the_one_above(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    check_folders([tmp_path / "a" / "b"])
    with pytest.raises(RefusedError, match="is not a writable folder"):
        check_folders([tmp_path / "file" / "b"])


def test_wrong_configuration_is_found_before_the_port(taken_port: int) -> None:
    with pytest.raises(ConfigError, match="trialCommand must be given"):
        check_start(ExperimentConfig(), taken_port)


def test_too_many_files_for_other_machines_are_refused_before_anything_starts(
    tmp_path: Path,
) -> None:
    pytest.importorskip("pathspec", reason="packs code directories")
    for number in range(2001):
        (tmp_path / f"{number}.txt").touch()
    config = ExperimentConfig(
        trial_code_directory=tmp_path,
        training_service=[LocalConfig(), RemoteConfig()],
    )

    with pytest.raises(ConfigError, match="must have at most 2000 files"):
        check_code(config)


def test_file_name_that_other_machines_cannot_take_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pathspec", reason="packs code directories")
    (tmp_path / "two\nlines").touch()
    config = ExperimentConfig(trial_code_directory=tmp_path, training_service=RemoteConfig())

    with pytest.raises(ConfigError, match="names are printable text"):
        check_code(config)


@pytest.mark.parametrize(
    ("password", "ignored", "warned"),
    [("hidden", "", True), ("hidden", "config.yml", False), (None, "", False)],
)
def test_password_that_travels_with_the_code_is_a_warning(
    password: str | None, ignored: str, warned: bool, tmp_path: Path
) -> None:
    file = tmp_path / "config.yml"
    file.touch()
    (tmp_path / ".nniignore").write_text(ignored)
    machine = RemoteMachineConfig(host="h", user="ann", password=password)
    config = ExperimentConfig(
        trial_code_directory=tmp_path, training_service=RemoteConfig(machine_list=[machine])
    )

    warning = secret_in_code(config, file)

    assert ("config.yml holds trainingService machineList[0].password" in warning) == warned
    assert "hidden" not in warning


def test_code_that_is_used_in_place_may_be_of_any_size(tmp_path: Path) -> None:
    (tmp_path / "two\nlines").touch()

    check_code(ExperimentConfig(trial_code_directory=tmp_path, training_service=LocalConfig()))


def test_removed_code_folder_is_refused_at_resume(tmp_path: Path) -> None:
    config = config_pb2.ExperimentConfig(trial_code_directory=str(tmp_path / "gone"))

    with pytest.raises(RefusedError, match="trialCodeDirectory must exist"):
        check_code_folder(config)
    config.code_archive.sha256 = "0" * 64
    check_code_folder(config)


def test_checks_load_neither_the_configuration_nor_a_client() -> None:
    """`nnictl up` uses some of them, and both take longer than all else before it starts."""
    program = "import sys, nni.experiment.preflight; print(*sys.modules)"

    loaded = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.split()

    assert not {"nni.experiment.config", "pydantic", "http.client", "grpc"} & {*loaded}
