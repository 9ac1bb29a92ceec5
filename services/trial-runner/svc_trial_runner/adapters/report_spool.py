"""Durable queue of reports until they are in the inbox: segments of checksummed records.

A record is `<length><crc32><kind><experiment length><number>` + experiment id + content. Kind R
holds a report, numbers grow; kind A says that the reports of the experiment up to its number have
arrived. A segment is removed when all reports in it and in all before it have arrived.

The checksum covers the record but itself; records of earlier versions, whose checksum covers id
and content only, are read, too. The cut end of a segment (after a crash) is dropped. A damaged
segment is set aside: the reports before the damage are sent, and the trials of the others are
reported lost.
"""

import os
import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from svc_common.errors import InvalidArgumentError
from svc_common.logs import get_logger
from svc_common.own_files import private_folder, set_aside
from svc_common.subjects import check_id
from svc_trial_runner.ports import SpooledReport

_HEADER: Final = struct.Struct("<IIcBQ")
_REPORT: Final = b"R"
_ACKNOWLEDGED: Final = b"A"
SEGMENT_BYTES: Final = 1024 * 1024
"""Size at which a new segment is begun; a segment is removed when its reports have arrived."""


@dataclass(slots=True)
class _Segment:
    """File of the report spool: path, size and number of unacknowledged reports."""

    path: Path
    size_bytes: int = 0
    """With the records that a full disk has refused."""
    stored_bytes: int = 0
    waiting: int = 0


@dataclass(slots=True)
class _Experiment:
    """Spool positions of an experiment's unacknowledged reports, oldest first."""

    places: deque[tuple[int, _Segment]] = field(default_factory=deque)
    """Number and segment of each report."""


class DirectoryReportSpool:
    """Spool of unsent reports in numbered segment files of a folder.

    Args:
        folder: created if missing; one agent at a time (by the claim journal's lock).
        segment_bytes: size at which a new segment is begun.
    """

    def __init__(self, folder: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        private_folder(folder)
        self._old = sorted(path for path in folder.glob("*.spool") if _is_segment(path))
        self._inherited, last_number = _read_all(self._old)
        # A segment that was set aside has no number that counts any more.
        self._segment_number = max((int(path.stem) for path in self._old), default=0)
        # Above those of earlier agents: acknowledgements name the largest number that has arrived.
        self._report_number = last_number
        self._segments: deque[_Segment] = deque()
        self._experiments: dict[str, _Experiment] = {}
        self._before_forgetting: Callable[[], None] = lambda: None
        self._unwritten = b""
        """Acknowledgements written with the next reports: without them some are sent twice."""
        self._file = -1
        self._broken = False

    def inherited(self) -> Sequence[SpooledReport]:
        """Return the reports that the previous agent process left, in order; call once."""
        inherited, self._inherited = self._inherited, []
        return inherited

    def append(self, reports: Iterable[tuple[str, bytes]]) -> None:
        """Write (experiment id, report) pairs, numbered, to the current segment; log an error."""
        segment = self._current()
        parts = [self._unwritten]
        self._unwritten = b""
        for experiment_id, entry in reports:
            self._report_number += 1
            parts.append(_record(_REPORT, self._report_number, experiment_id, entry))
            experiment = self._experiments.setdefault(experiment_id, _Experiment())
            experiment.places.append((self._report_number, segment))
            segment.waiting += 1
        self._write(segment, b"".join(parts))

    def discard_inherited(self) -> None:
        """Delete an earlier agent's segments, after reports still needed were appended again."""
        for path in self._old:
            path.unlink(missing_ok=True)
        self._old = []

    def acknowledge(self, experiment_id: str, count: int) -> None:
        """Mark an experiment's oldest `count` reports as acknowledged; delete finished segments."""
        experiment = self._experiments.get(experiment_id)
        if experiment is None or not self._segments:
            return
        number = 0
        for _ in range(min(count, len(experiment.places))):
            number, segment = experiment.places.popleft()
            segment.waiting -= 1
        if not experiment.places:
            del self._experiments[experiment_id]
        self._unwritten += _record(_ACKNOWLEDGED, number, experiment_id, b"")
        self._forget_finished()

    def before_forgetting(self, call: Callable[[], None]) -> None:
        """Register a callback that runs before acknowledged reports are removed from disk."""
        self._before_forgetting = call

    def close(self) -> None:
        """Write buffered acknowledgements and close the spool's file."""
        if self._segments and self._unwritten:
            self._write(self._segments[-1], self._unwritten)
            self._unwritten = b""
        self._close_file()

    def _close_file(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _current(self) -> _Segment:
        if not self._segments or self._segments[-1].size_bytes > self._segment_bytes:
            self._open_next()
        return self._segments[-1]

    def _open_next(self) -> None:
        self._close_file()
        self._segment_number += 1
        path = self._folder / f"{self._segment_number:012d}.spool"
        self._segments.append(_Segment(path))

    def _forget_finished(self) -> None:
        """Delete full segment files at the front whose reports are all acknowledged."""
        while (
            self._segments
            and self._segments[0].waiting == 0
            and self._segments[0].size_bytes > self._segment_bytes
        ):
            self._before_forgetting()
            segment = self._segments.popleft()
            if not self._segments:
                self._close_file()
            segment.path.unlink(missing_ok=True)

    def _write(self, segment: _Segment, data: bytes) -> None:
        segment.size_bytes += len(data)
        try:
            if self._file < 0:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
                self._file = os.open(segment.path, flags, 0o600)
            written = os.write(self._file, data)
            while written < len(data):
                written += os.write(self._file, data[written:])
        except OSError as error:
            self._fault(error)
            with suppress(OSError):  # no record may follow one that was cut short
                os.truncate(segment.path, segment.stored_bytes)
        else:
            segment.stored_bytes += len(data)
            self._broken = False

    def _fault(self, error: OSError) -> None:
        if not self._broken:
            self._broken = True
            get_logger().error(
                "reports not on disk: a restart now would lose them",
                folder=str(self._folder),
                error=str(error),
            )


def _record(kind: bytes, number: int, experiment_id: str, content: bytes) -> bytes:
    name = experiment_id.encode()
    body = name + content
    checksum = _checksum(len(body), kind, len(name), number, body)
    return _HEADER.pack(len(body), checksum, kind, len(name), number) + body


def _checksum(length: int, kind: bytes, name_length: int, number: int, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(_HEADER.pack(length, 0, kind, name_length, number)))


def _is_segment(path: Path) -> bool:
    """Return whether a path is a numbered segment file; rename it aside if it is not."""
    if path.stem.isdecimal() and path.stem.isascii() and path.is_file():
        return True
    set_aside(path, "it is no segment of the spool")
    return False


def _read_all(paths: Iterable[Path]) -> tuple[list[SpooledReport], int]:
    """Read spool segments; return reports and the largest number; rename damaged ones.

    Returns:
        Reports in order, marked if arrived, and the largest number; 0: there is none.
    """
    reports: list[tuple[int, str, bytes]] = []
    arrived: dict[str, int] = {}
    last_number = 0
    for path in paths:
        try:
            for kind, number, experiment_id, content in _records(path.read_bytes()):
                last_number = max(last_number, number)
                if kind == _REPORT:
                    reports.append((number, experiment_id, content))
                else:
                    arrived[experiment_id] = max(number, arrived.get(experiment_id, 0))
        except (OSError, ValueError, InvalidArgumentError) as error:
            set_aside(path, f"{error}; trials whose reports it held are reported lost")
    inherited = [
        SpooledReport(experiment_id, entry, number <= arrived.get(experiment_id, 0))
        for number, experiment_id, entry in reports
    ]
    return inherited, last_number


def _records(data: bytes) -> Iterable[tuple[bytes, int, str, bytes]]:
    """Yield (kind, number, experiment, content) of records; stop at a cut one, raise if damaged.

    Raises:
        ValueError: a record is damaged.
    """
    position = 0
    while position + _HEADER.size <= len(data):
        length, checksum, kind, name_length, number = _HEADER.unpack_from(data, position)
        start = position + _HEADER.size
        body = data[start : start + length]
        if len(body) < length:
            # Damaged, unless nothing follows: then the write was cut.
            return
        wanted = (_checksum(length, kind, name_length, number, body), zlib.crc32(body))
        if checksum not in wanted or kind not in {_REPORT, _ACKNOWLEDGED}:
            raise ValueError(f"the record at byte {position} is damaged")
        position = start + length
        experiment_id = check_id("experiment_id", body[:name_length].decode())
        yield kind, number, experiment_id, body[name_length:]
