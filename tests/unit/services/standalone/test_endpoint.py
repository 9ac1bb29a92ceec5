import errno
import json
import os
from pathlib import Path

import pytest

from svc_standalone.endpoint import (
    ENDPOINT_FILE,
    SUPERVISOR_LOCK,
    Endpoint,
    Lock,
    read_endpoint,
    remove_endpoint,
    write_endpoint,
)

ENDPOINT = Endpoint(
    version="4.0.0",
    pid=7,
    started_at="2026-01-01T00:00:00+00:00",
    http="http://127.0.0.1:1",
    grpc="127.0.0.1:2",
    nats="nats://127.0.0.1:3",
    token="secret",
)


def test_file_of_a_running_supervisor_is_read_back(tmp_path: Path) -> None:
    write_endpoint(tmp_path, ENDPOINT)
    lock = Lock.take(tmp_path / SUPERVISOR_LOCK)

    endpoint = read_endpoint(tmp_path)

    lock.release()
    assert endpoint == ENDPOINT


def test_file_is_for_its_owner_only(tmp_path: Path) -> None:
    write_endpoint(tmp_path, ENDPOINT)

    assert (tmp_path / ENDPOINT_FILE).stat().st_mode & 0o777 == 0o600


def test_file_of_an_ended_supervisor_counts_as_missing(tmp_path: Path) -> None:
    write_endpoint(tmp_path, ENDPOINT)

    assert read_endpoint(tmp_path) is None


def test_malformed_endpoint_file_counts_as_missing(tmp_path: Path) -> None:
    lock = Lock.take(tmp_path / SUPERVISOR_LOCK)
    for text in ("", "{}", "[]", json.dumps({"pid": "x"})):
        (tmp_path / ENDPOINT_FILE).write_text(text)
        assert read_endpoint(tmp_path) is None
    lock.release()


def test_pipe_in_place_of_the_file_keeps_no_reader_waiting(tmp_path: Path) -> None:
    lock = Lock.take(tmp_path / SUPERVISOR_LOCK)
    os.mkfifo(tmp_path / ENDPOINT_FILE)

    assert read_endpoint(tmp_path) is None
    lock.release()


def test_token_is_not_in_the_representation() -> None:
    assert "secret" not in repr(ENDPOINT)


def test_lock_is_held_once_and_free_after_release(tmp_path: Path) -> None:
    held = Lock.take(tmp_path / "lock")
    assert Lock.try_take(tmp_path / "lock") is None

    held.release()
    held.release()

    again = Lock.try_take(tmp_path / "lock")
    assert again is not None
    again.release()


def test_lock_file_is_for_its_owner_only(tmp_path: Path) -> None:
    for name, take in (("a", Lock.take), ("b", Lock.try_take)):
        lock = take(tmp_path / name)
        assert lock is not None
        lock.release()

    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_lock_of_an_ended_supervisor_stays_free_when_its_file_was_read(tmp_path: Path) -> None:
    write_endpoint(tmp_path, ENDPOINT)

    read_endpoint(tmp_path)

    assert Lock.try_take(tmp_path / SUPERVISOR_LOCK) is not None


def test_removed_file_may_be_removed_again(tmp_path: Path) -> None:
    write_endpoint(tmp_path, ENDPOINT)

    remove_endpoint(tmp_path)
    remove_endpoint(tmp_path)

    assert not (tmp_path / ENDPOINT_FILE).exists()


def test_lock_that_is_held_leaves_no_descriptor_open(tmp_path: Path) -> None:
    held = Lock.take(tmp_path / "lock")
    before = len(list(Path("/proc/self/fd").iterdir()))

    assert Lock.try_take(tmp_path / "lock") is None

    assert len(list(Path("/proc/self/fd").iterdir())) == before
    held.release()


def test_lock_closes_its_descriptor_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Descriptor 0 is one like any other."""
    closed: list[int] = []
    lock = Lock(0)
    with monkeypatch.context() as patch:
        patch.setattr(os, "close", closed.append)
        lock.release()
        lock.release()

    assert closed == [0]


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_lock_is_taken_on_a_disk_that_is_read_only(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lock").touch()
    open_file = os.open

    def refuse_writes(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_RDWR:
            raise OSError(number, os.strerror(number))
        return open_file(path, flags, mode)

    monkeypatch.setattr(os, "open", refuse_writes)

    if number == errno.EROFS:
        Lock.take(tmp_path / "lock").release()
    else:
        with pytest.raises(PermissionError):
            Lock.take(tmp_path / "lock")
    assert (tmp_path / "lock").read_bytes() == b""
