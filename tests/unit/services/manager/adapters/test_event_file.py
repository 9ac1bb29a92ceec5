import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from svc_common.safe_folders import SafeFolder
from svc_manager.adapters.event_file import (
    EventFile,
    damage_of,
    read_readable,
    read_records,
    torn_end_of,
)
from svc_manager.event_log.file_format import file_of, record_of


def written(path: Path, *records: tuple[int, bytes]) -> None:
    file = EventFile(path)
    for sequence, payload in records:
        file.append(sequence, payload)
    file.close()


def test_records_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "events.log"

    written(path, (3, b"one"), (9, b""))
    written(path, (10, b"x" * 100_000))

    assert list(read_records(path)) == [(3, b"one"), (9, b""), (10, b"x" * 100_000)]


@pytest.mark.parametrize("cut", range(1, 20))
def test_a_write_that_was_cut_in_two_is_cut_off(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "events.log"
    written(path, (1, b"whole"), (2, b"torn"))  # header 16 bytes, payload 4
    data = path.read_bytes()
    path.write_bytes(data[:-cut])

    file = EventFile(path)
    assert file.last_sequence == 1
    file.append(2, b"again")
    file.close()

    assert list(read_records(path)) == [(1, b"whole"), (2, b"again")]


def test_a_record_that_was_damaged_ends_the_log(tmp_path: Path) -> None:
    path = tmp_path / "events.log"
    written(path, (1, b"good"), (2, b"bad!"), (3, b"lost"))
    data = bytearray(path.read_bytes())
    data[-24] ^= 1  # in the payload of record 2
    path.write_bytes(data)

    assert list(read_records(path)) == [(1, b"good")]


def test_another_file_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "events.log"
    path.write_bytes(b"SQLite format 3, and more")

    with pytest.raises(ValueError, match="magic"):
        EventFile(path)

    assert path.read_bytes().startswith(b"SQLite")


def test_a_file_that_was_cut_in_its_magic_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "events.log"
    path.write_bytes(b"NNI ev")

    written(path, (1, b"x"))

    assert list(read_records(path)) == [(1, b"x")]


def test_a_late_writer_neither_overwrites_nor_doubles_what_its_successor_wrote(
    tmp_path: Path,
) -> None:
    path = tmp_path / "events.log"
    stale = EventFile(path)
    stale.append(1, b"one")
    stale.flush()
    stale.append(2, b"two")  # in the log, not yet in the file: now it is stopped

    successor = EventFile(path)
    for sequence, payload in ((2, b"two"), (3, b"three")):
        successor.append(sequence, payload)
    successor.flush()
    stale.close()
    successor.append(4, b"four")
    successor.close()

    assert list(read_records(path)) == [(1, b"one"), (2, b"two"), (3, b"three"), (4, b"four")]
    again = EventFile(path)
    again.close()
    assert again.last_sequence == 4


@contextmanager
def room(limit_bytes: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size: writes fail as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_write_that_a_full_disk_has_cut_goes_on_when_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "events.log"
    file = EventFile(path)
    file.append(1, b"one")
    file.flush()
    file.append(2, b"2" * 500)

    with room(path.stat().st_size + 100):
        for _ in range(2):
            with pytest.raises(OSError, match="large"):
                file.flush()
            file.append(file.last_sequence + 1, b"more")
    file.close()

    assert list(read_records(path)) == [(1, b"one"), (2, b"2" * 500), (3, b"more"), (4, b"more")]


def test_damage_is_counted_and_an_interrupted_write_is_none(tmp_path: Path) -> None:
    path = tmp_path / "events.log"
    written(path, (1, b"good"), (2, b"bad!"), (3, b"lost"))
    whole = path.read_bytes()
    record = len(record_of(1, b"good"))

    path.write_bytes(whole[:-3])
    torn = EventFile(path)
    path.write_bytes(whole[: -2 * record + 17] + b"?" + whole[-2 * record + 18 :])
    damaged = EventFile(path)

    assert (torn.damaged_bytes, torn.last_sequence) == (0, 2)
    assert (damaged.damaged_bytes, damaged.last_sequence) == (2 * record, 1)
    for file in (torn, damaged):
        file.close()


RECORDS = [(1, b"one"), (4, b"two"), (5, b"three"), (9, b"four")]


@pytest.mark.parametrize(
    ("content", "text", "count"),
    [
        (file_of(RECORDS), "", 4),
        (file_of(RECORDS)[:-1], "", 3),
        (b"X" + file_of(RECORDS)[1:], "damaged in its first 13 bytes", 4),
        (file_of([*RECORDS, *RECORDS[1:]]), "3 of 7 records are out of order", 4),
        (
            file_of(RECORDS).replace(b"two", b"tw?"),
            "2 of those in the last 60 bytes can be read",
            3,
        ),
    ],
    ids=["whole", "torn", "magic line", "written twice", "flipped"],
)
def test_damage_is_described_and_costs_no_other_record(
    tmp_path: Path, content: bytes, text: str, count: int
) -> None:
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "events.log").write_bytes(content)

    with SafeFolder.open(tmp_path) as folder:
        damage = damage_of(folder)
        found = read_readable(folder)

    assert damage == "" if not text else text in damage
    assert len(found) == count


@pytest.mark.parametrize(
    ("content", "count"),
    [
        (file_of(RECORDS), None),
        (file_of(RECORDS[:2]), None),
        (file_of(RECORDS)[:-1], 3),
        (file_of(RECORDS)[: len(file_of(RECORDS[:2])) + 3], 2),  # in the header of the third
        (file_of([])[:-1] + b"\n1", 0),
        (file_of(RECORDS).replace(b"two", b"tw?"), None),
    ],
    ids=["whole", "ends with a record", "in a payload", "in a header", "in the first", "flipped"],
)
def test_end_in_the_middle_of_a_record_is_described(
    tmp_path: Path, content: bytes, count: int | None
) -> None:
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "events.log").write_bytes(content)

    with SafeFolder.open(tmp_path) as folder:
        text = torn_end_of(folder)

    wanted = "" if count is None else f"in the middle of a record: {count} records before are whole"
    assert text == "" if not wanted else wanted in text
