import fcntl
import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from svc_common.access.audit import AUDIT_FILE, AuditRecord, AuditTrail

RECORD = AuditRecord("alice", "user", "token", "192.0.2.7", "POST /x", "OK", experiment="exp")


def lines(folder: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in (folder / AUDIT_FILE).read_text().splitlines()]


def test_each_record_is_a_line_that_only_the_owner_can_read(tmp_path: Path) -> None:
    one, other = AuditTrail(tmp_path / "log"), AuditTrail(tmp_path / "log")

    one.record(RECORD)
    other.record(RECORD)
    one.close()
    other.close()
    one.close()

    first, second = lines(tmp_path / "log")
    assert first.pop("at") <= second.pop("at")
    assert first == {
        "caller": "alice",
        "role": "user",
        "by": "token",
        "peer": "192.0.2.7",
        "what": "POST /x",
        "outcome": "OK",
        "experiment": "exp",
    }
    assert (tmp_path / "log" / AUDIT_FILE).stat().st_mode & 0o777 == 0o600


def test_text_of_callers_is_escaped_and_cut(tmp_path: Path) -> None:
    trail = AuditTrail(tmp_path)

    trail.record(AuditRecord("", "", "", "", "x\n{}", "OK", request="y" * 10_000))
    trail.close()

    (line,) = lines(tmp_path)
    assert line["what"] == "x\n{}"
    assert len(line["request"]) == 200


def test_large_file_is_rotated_at_the_start(tmp_path: Path) -> None:
    (tmp_path / AUDIT_FILE).write_text("x" * 11)

    trail = AuditTrail(tmp_path, file_limit_bytes=10)
    trail.record(RECORD)
    trail.close()

    assert (tmp_path / f"{AUDIT_FILE}.1").read_text() == "x" * 11
    assert len(lines(tmp_path)) == 1


def test_file_that_grows_is_rotated_and_all_services_continue_with_the_new_one(
    tmp_path: Path,
) -> None:
    trails = [AuditTrail(tmp_path, file_limit_bytes=400) for _ in range(3)]

    for number in range(30):
        trails[number % 3].record(AuditRecord("", "", "", "", "x", "OK", request=str(number)))
    for trail in trails:
        trail.close()

    old = (tmp_path / f"{AUDIT_FILE}.1").read_text().splitlines()
    requests = [json.loads(line)["request"] for line in old] + [
        line["request"] for line in lines(tmp_path)
    ]
    # Two generations: the last lines, each once and in order.
    assert requests == [str(number) for number in range(30 - len(requests), 30)]
    assert len(requests) > len(old)
    # One line may follow when the limit is reached.
    assert all(path.stat().st_size < 400 + 200 for path in tmp_path.iterdir())


def test_program_that_holds_the_folder_s_lock_holds_up_nothing(tmp_path: Path) -> None:
    trail = AuditTrail(tmp_path, file_limit_bytes=10)
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)

    trail.record(RECORD)
    trail.record(RECORD)
    os.close(folder)
    trail.close()

    assert len(lines(tmp_path)) == 2


def test_file_that_a_person_has_removed_is_begun_again(tmp_path: Path) -> None:
    trail = AuditTrail(tmp_path)
    (tmp_path / AUDIT_FILE).unlink()

    trail.record(RECORD)
    trail.close()

    assert len(lines(tmp_path)) == 1


def test_file_that_cannot_be_rotated_is_written_further(tmp_path: Path) -> None:
    (tmp_path / AUDIT_FILE).write_text("{}\n")
    (tmp_path / f"{AUDIT_FILE}.1").mkdir()

    trail = AuditTrail(tmp_path, file_limit_bytes=1)
    trail.record(RECORD)
    trail.record(RECORD)
    trail.close()

    assert len(lines(tmp_path)) == 3


def test_pipe_in_place_of_the_file_is_set_aside_and_holds_up_nothing(tmp_path: Path) -> None:
    trail = AuditTrail(tmp_path)
    (tmp_path / AUDIT_FILE).unlink()
    os.mkfifo(tmp_path / AUDIT_FILE)

    trail.record(RECORD)
    trail.close()

    assert len(lines(tmp_path)) == 1


def test_folder_in_its_place_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / AUDIT_FILE).mkdir()

    trail = AuditTrail(tmp_path)
    trail.record(RECORD)
    trail.close()

    assert len(lines(tmp_path)) == 1
    assert len(list(tmp_path.glob(f"{AUDIT_FILE}.damaged-*"))) == 1


def test_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").touch()
    (tmp_path / AUDIT_FILE).symlink_to(tmp_path / "target")

    with pytest.raises(OSError, match="symbolic"):
        AuditTrail(tmp_path)


def test_full_disk_does_not_stop_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trail = AuditTrail(tmp_path)

    def full(_descriptor: int, _data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    trail.record(RECORD)

    monkeypatch.undo()
    trail.close()
    assert lines(tmp_path) == []


@contextmanager
def no_room_beyond(size_bytes: int) -> Iterator[None]:
    """Have the system cut a write to any file at a size, and refuse the next one."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_line_after_one_that_a_full_disk_has_cut_is_a_line_of_its_own(tmp_path: Path) -> None:
    # Larger than the captured output of the test, which the limit would cut as well.
    (tmp_path / AUDIT_FILE).write_text("{}\n" * 400_000)
    one, other = AuditTrail(tmp_path), AuditTrail(tmp_path)
    size = (tmp_path / AUDIT_FILE).stat().st_size

    with no_room_beyond(size + 30):
        one.record(RECORD)
        one.record(RECORD)
        other.record(RECORD)
    other.record(RECORD)
    one.record(RECORD)
    one.close()
    other.close()

    cut, *rest = (tmp_path / AUDIT_FILE).read_text().splitlines()[400_000:]
    assert len(cut) == 30
    assert not cut.endswith("}")
    assert [json.loads(line)["caller"] for line in rest] == ["alice"] * 2


def test_line_that_was_cut_before_its_end_is_complete(tmp_path: Path) -> None:
    (tmp_path / AUDIT_FILE).write_text('{"caller": "alice"}')
    trail = AuditTrail(tmp_path)

    trail.record(RECORD)
    trail.close()

    assert [line["caller"] for line in lines(tmp_path)] == ["alice", "alice"]
