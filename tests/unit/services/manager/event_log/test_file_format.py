from __future__ import annotations

import io

import pytest

from svc_manager.event_log.file_format import (
    MAGIC,
    damaged_bytes,
    file_of,
    readable_records,
    record_of,
    whole_records,
)

RECORDS = [(3, b"first"), (8, b""), (9, b"x" * 1000)]
TEXT = MAGIC + b"".join(record_of(sequence, payload) for sequence, payload in RECORDS)


def read(data: bytes) -> list[tuple[int, bytes]]:
    return [(sequence, payload) for sequence, payload, _ in whole_records(io.BytesIO(data))]


def test_records_come_back_with_their_ends() -> None:
    found = list(whole_records(io.BytesIO(TEXT)))

    assert [(sequence, payload) for sequence, payload, _ in found] == RECORDS
    assert found[-1][2] == len(TEXT)


@pytest.mark.parametrize("cut", range(1, 20))
def test_a_torn_record_is_not_given(cut: int) -> None:
    assert read(TEXT[:-cut]) == RECORDS[:2]


def test_nothing_behind_a_damaged_record_is_given() -> None:
    damaged = bytearray(TEXT)
    damaged[len(MAGIC) + 17] ^= 1

    assert read(bytes(damaged)) == []


def test_what_does_not_begin_with_the_magic_line_is_refused() -> None:
    with pytest.raises(ValueError, match="magic line"):
        read(b"something else")


MANY = [(number * 3, b"payload of record %d" % number) for number in range(1, 9)]


def readable(data: bytes | bytearray) -> list[tuple[int, bytes]]:
    return readable_records(io.BytesIO(bytes(data)))


@pytest.mark.parametrize("record", range(len(MANY)))
@pytest.mark.parametrize("byte", range(18), ids=lambda byte: f"byte {byte}")
def test_a_flipped_byte_costs_no_other_record(record: int, byte: int) -> None:
    data = bytearray(file_of(MANY))
    data[len(file_of(MANY[:record])) + byte] ^= 0xFF

    found = readable(data)

    others = [*MANY[:record], *MANY[record + 1 :]]
    assert [kept for kept in found if kept in others] == others
    assert len(found) <= len(MANY)


@pytest.mark.parametrize("record", range(len(MANY)))
@pytest.mark.parametrize("byte", range(8), ids=lambda byte: f"byte {byte}")
def test_a_batch_whose_sequence_is_damaged_keeps_its_place(record: int, byte: int) -> None:
    data = bytearray(file_of(MANY))
    data[len(file_of(MANY[:record])) + byte] ^= 0x40

    found = readable(data)

    assert [payload for _, payload in found] == [payload for _, payload in MANY]
    assert [sequence for sequence, _ in found] == sorted({sequence for sequence, _ in found})


def test_zeros_in_place_of_a_record_are_no_records() -> None:
    start, end = len(file_of(MANY[:2])), len(file_of(MANY[:4]))
    data = bytearray(file_of(MANY))
    data[start:end] = bytes(end - start)

    assert readable(data) == [*MANY[:2], *MANY[4:]]
    assert read(bytes(data)) == MANY[:2]
    assert damaged_bytes(io.BytesIO(data), start) == len(data) - start


@pytest.mark.parametrize("start", range(5, 45))
def test_records_behind_zeros_at_any_place_are_readable(start: int) -> None:
    records = [(number, b"\xff\xfe" * number) for number in range(20, 30)]
    first = len(file_of(records[:3]))
    data = bytearray(file_of(records))
    data[first + start : first + start + 100] = bytes(100)

    assert [kept for kept in readable(data) if kept in records][-4:] == records[-4:]


def test_records_that_were_written_twice_are_read_once() -> None:
    data = file_of([*MANY[:5], *MANY[3:]])

    assert readable(data) == MANY


def test_a_torn_record_is_not_readable() -> None:
    assert readable(file_of(MANY)[:-1]) == MANY[:-1]
    assert readable(file_of(MANY)[:5] + file_of(MANY)[5 : len(MAGIC)]) == []


@pytest.mark.parametrize("byte", range(len(MAGIC)))
def test_magic_line_with_a_flipped_byte_is_recognised(byte: int) -> None:
    data = bytearray(file_of(MANY))
    data[byte] ^= 0xFF

    assert readable(data) == read(bytes(data)) == MANY


@pytest.mark.parametrize("line", [b"NNI events 2\n", b"NNI events 10", b"NNI evil logs"])
def test_magic_line_of_another_version_or_file_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match="magic line"):
        readable(line + file_of(MANY)[len(MAGIC) :])


def test_search_behind_damage_ends_in_a_file_made_to_make_it_long() -> None:
    claims = b"".join(b"\0\0\0\0\0\0\0\1\0\x0f\xff\xff????" for _ in range(100_000))

    assert readable(MAGIC + claims) == []
