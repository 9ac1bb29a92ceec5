"""Addresses of the services, from files and processes of a private installation."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from nni.experiment.endpoint import endpoint_path, is_supervisor, read_endpoint
from nni.experiment.errors import RefusedError
from tests.support.endpoint_files import SUPERVISOR, Spawn, process_spawner, write_endpoint


@pytest.fixture
def home(private_home: Path) -> Path:
    folder = private_home / "nni"
    folder.mkdir()
    return folder


@pytest.fixture
def spawn(home: Path) -> Iterator[Spawn]:
    with process_spawner(home) as start:
        yield start


def test_no_file_means_no_services(home: Path) -> None:
    assert read_endpoint() is None
    assert endpoint_path() == home / "endpoint.json"


def test_file_of_a_live_supervisor_is_read(home: Path, spawn: Spawn) -> None:
    pid = spawn(SUPERVISOR).pid
    write_endpoint(home, pid, grpc="127.0.0.1:7", token="s3cret")

    endpoint = read_endpoint()

    assert endpoint is not None
    assert (endpoint.supervisor_pid, endpoint.grpc, endpoint.token) == (
        pid,
        "127.0.0.1:7",
        "s3cret",
    )
    assert "s3cret" not in repr(endpoint)


def test_file_of_a_dead_supervisor_counts_as_none(home: Path, spawn: Spawn) -> None:
    process = spawn(SUPERVISOR)
    write_endpoint(home, process.pid)
    process.kill()
    process.wait()

    assert read_endpoint() is None


def test_process_id_that_another_program_has_now_counts_as_none(home: Path, spawn: Spawn) -> None:
    write_endpoint(home, spawn("another").pid)

    assert read_endpoint() is None
    assert not is_supervisor(os.getpid())


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"pid": "x"}', "[" * 10**5])
def test_damaged_file_counts_as_none(text: str, home: Path) -> None:
    (home / "endpoint.json").write_text(text)

    assert read_endpoint() is None


def test_folder_in_place_of_the_file_counts_as_none(home: Path) -> None:
    (home / "endpoint.json").mkdir()

    assert read_endpoint() is None


@pytest.mark.parametrize("kind", ["pipe", "link to itself", "closed file"])
def test_own_file_that_cannot_be_read_counts_as_none(kind: str, home: Path) -> None:
    path = home / "endpoint.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link to itself":
        path.symlink_to(path)
    else:
        path.touch(mode=0)

    assert read_endpoint() is None


def test_token_file_that_cannot_be_read_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NNI_ENDPOINT", "https://nni.lab")
    monkeypatch.setenv("NNI_TOKEN_FILE", str(home / "missing"))

    with pytest.raises(RefusedError, match="NNI_TOKEN_FILE cannot be read"):
        read_endpoint()


def test_home_that_is_no_folder_of_the_user_is_refused(private_home: Path) -> None:
    (private_home / "nni").write_text("a file")

    with pytest.raises(RefusedError, match="NNI_HOME must be a folder that you may read"):
        read_endpoint()
