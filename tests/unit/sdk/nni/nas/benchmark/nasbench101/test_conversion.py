"""Converter of NAS-Bench-101, on a file in the original format, made here."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from nni.nas.benchmark.database import BenchmarkDatabase
from nni.nas.benchmark.nasbench101 import NB101_SCHEMA
from nni.nas.benchmark.nasbench101.conversion import convert_nasbench101
from nni.nas.benchmark.nasbench101.graph_util import hash_module
from nni.nas.benchmark.writer import create_database

ARCH = {"op1": "maxpool3x3", "input1": [0], "input2": [0, 1]}


def varint(value: int) -> bytes:
    digits = []
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    return bytes([*digits, value])


def metrics(evaluations: Sequence[tuple[float, ...]], parameters: int) -> bytes:
    """Write a ModelMetrics message by hand: tag, then length or value."""
    message = b""
    for numbers in evaluations:
        data = b"".join(
            bytes([field << 3 | 1]) + struct.pack("<d", number)
            for field, number in enumerate(numbers, start=1)
        )
        message += b"\x0a" + varint(len(data)) + data
    return message + b"\x10" + varint(parameters) + b"\x19" + struct.pack("<d", 999.0)


def record(content: object) -> bytes:
    data = json.dumps(content).encode()
    return struct.pack("<QI", len(data), 0) + data + struct.pack("<I", 0)


def original_file(path: Path) -> Path:
    rows = [
        [(0, 0.0, 0.1, 0.1, 0.1), (54, 300.5, 0.9, 0.8, 0.7), (108, 601.0, 1.0, last, 0.89)]
        for last in (0.9, 0.91, 0.92)
    ]
    path.write_bytes(
        b"".join(
            record(
                [
                    hash_module(ARCH, 3),
                    108,
                    "011001000",
                    "input,maxpool3x3,output",
                    base64.b64encode(metrics(evaluations, 2_694_282)).decode(),
                ]
            )
            for evaluations in rows
        )
    )
    return path


def test_trials_and_their_courses_are_converted(tmp_path: Path) -> None:
    source = original_file(tmp_path / "nasbench_full.tfrecord")
    with create_database(tmp_path / "a.db", NB101_SCHEMA) as writer:
        convert_nasbench101(source, writer)
    rows = list(
        BenchmarkDatabase(tmp_path / "a.db", NB101_SCHEMA).query({}, include_intermediates=True)
    )

    assert [row["valid_acc"] for row in rows] == pytest.approx([90, 91, 92])
    assert rows[0]["config"] == {
        "id": 1,
        "arch": ARCH,
        "num_vertices": 3,
        "hash": hash_module(ARCH, 3),
        "num_epochs": 108,
    }
    assert rows[0]["parameters"] == pytest.approx(2.694282)


def test_times_are_seconds_in_trials_and_their_courses(tmp_path: Path) -> None:
    source = original_file(tmp_path / "nasbench_full.tfrecord")
    with create_database(tmp_path / "a.db", NB101_SCHEMA) as writer:
        convert_nasbench101(source, writer)
    row = next(
        BenchmarkDatabase(tmp_path / "a.db", NB101_SCHEMA).query({}, include_intermediates=True)
    )

    assert row["training_time"] == 601.0
    assert [(one["current_epoch"], one["training_time"]) for one in row["intermediates"]] == [
        (54, 300.5),
        (108, 601.0),
    ]


def test_file_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    source = original_file(tmp_path / "nasbench_full.tfrecord")
    source.write_bytes(source.read_bytes()[:-10])

    with (
        pytest.raises(ValueError, match="is cut off"),
        create_database(tmp_path / "a.db", NB101_SCHEMA) as writer,
    ):
        convert_nasbench101(source, writer)
