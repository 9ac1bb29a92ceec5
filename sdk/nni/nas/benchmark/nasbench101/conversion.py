"""Converter of the original file of NAS-Bench-101: TFRecords of JSON with encoded messages.

`python -m nni.nas.benchmark.nasbench101.conversion nasbench_full.tfrecord`

Each record is a JSON list of hash, epochs, adjacency matrix as one string of digits, names of the
vertices, and a `ModelMetrics` message in base 64. Neither TensorFlow nor protobuf is needed.
"""

from __future__ import annotations

import base64
import json
import math
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nni.nas.benchmark.conversion_command import run_conversion
from nni.nas.benchmark.nasbench101.graph_util import nasbench_format_to_architecture_repr
from nni.nas.benchmark.nasbench101.records import (
    NB101_SCHEMA,
    Nb101IntermediateStats,
    Nb101TrialConfig,
    Nb101TrialStats,
)
from nni.nas.benchmark.writer import BenchmarkWriter

_HEADER: Final = struct.Struct("<QI")
"""Length of a TFRecord and its checksum, which is not verified: it needs a rare polynomial."""
_FOOTER_BYTES: Final = 4
_CONTINUED: Final = 0x80
_EVALUATION_DATA, _TRAINABLE_PARAMETERS = 1, 2
_EPOCH, _TIME, _TRAIN, _VALID, _TEST = 1, 2, 3, 4, 5


@dataclass(frozen=True, slots=True)
class _Evaluation:
    epoch: int
    seconds: float
    train: float
    valid: float
    test: float


def convert_nasbench101(source: Path, writer: BenchmarkWriter) -> None:
    """Read a TFRecord file of NAS-Bench-101; add its trainings, with all epochs, to a database.

    Args:
        source: TFRecord file, such as `nasbench_full.tfrecord`.
        writer: writer of an empty database.

    Raises:
        ValueError: the file is cut off, or no such file.
    """
    for record in _records(source):
        module_hash, epochs, digits, operations, encoded = json.loads(record)
        evaluations, parameters = _metrics(base64.b64decode(encoded))
        side = math.isqrt(len(digits))
        matrix = [
            [int(digit) for digit in digits[at * side : (at + 1) * side]] for at in range(side)
        ]
        vertices, arch = nasbench_format_to_architecture_repr(matrix, operations.split(","))
        last = evaluations[-1]
        stats = Nb101TrialStats(
            Nb101TrialConfig(arch, vertices, module_hash, epochs),
            last.train * 100,
            last.valid * 100,
            last.test * 100,
            parameters / 1e6,
            last.seconds,
        )
        # The first evaluation precedes the training.
        writer.add(stats, (_intermediate(stats, one) for one in evaluations if one.epoch > 0))


def _intermediate(stats: Nb101TrialStats, one: _Evaluation) -> Nb101IntermediateStats:
    return Nb101IntermediateStats(
        stats, one.epoch, one.train * 100, one.valid * 100, one.test * 100, one.seconds
    )


def _records(source: Path) -> Iterator[bytes]:
    """Yield the bytes of each record of a TFRecord file, unchecked; raise if it is cut off."""
    with source.open("rb") as file:
        while header := file.read(_HEADER.size):
            length = _HEADER.unpack(header)[0] if len(header) == _HEADER.size else 0
            record, footer = file.read(length), file.read(_FOOTER_BYTES)
            if len(footer) < _FOOTER_BYTES:
                raise ValueError(f"{source} is no TFRecord file, or is cut off at {file.tell()}")
            yield record


def _metrics(message: bytes) -> tuple[list[_Evaluation], int]:
    """Return the evaluations in order, and the number of parameters, of one `ModelMetrics`."""
    evaluations, parameters = [], 0
    for number, value in _fields(message):
        if number == _EVALUATION_DATA and isinstance(value, bytes):
            data = dict(_fields(value))
            numbers = [float(data.get(one, 0.0)) for one in (_EPOCH, _TIME, _TRAIN, _VALID, _TEST)]
            evaluations.append(_Evaluation(round(numbers[0]), *numbers[1:]))
        elif number == _TRAINABLE_PARAMETERS and isinstance(value, int):
            parameters = value
    return evaluations, parameters


def _fields(message: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """Yield number and value of each field of a protobuf message; texts and messages as bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, wire = key >> 3, key & 7
        match wire:
            case 0:
                value, at = _varint(message, at)
                yield number, value
            case 1:
                yield number, struct.unpack_from("<d", message, at)[0]
                at += 8
            case 2:
                length, at = _varint(message, at)
                yield number, message[at : at + length]
                at += length
            case 5:
                yield number, struct.unpack_from("<f", message, at)[0]
                at += 4
            case _:
                raise ValueError(f"field {number} has the unknown wire type {wire}")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return the protobuf varint at a position of a message, and the position after it."""
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & ~_CONTINUED) << shift
        if byte < _CONTINUED:
            return value, at
        shift += 7


if __name__ == "__main__":
    sys.exit(run_conversion(convert_nasbench101, NB101_SCHEMA, "nasbench_full.tfrecord"))
