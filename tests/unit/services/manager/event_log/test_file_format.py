from __future__ import annotations

import io

import pytest

from svc_manager.event_log.file_format import MAGIC, record_of, whole_records

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
