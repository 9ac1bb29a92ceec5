from pathlib import Path

import pytest

from svc_manager.adapters.event_file import EventFile, read_records


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
