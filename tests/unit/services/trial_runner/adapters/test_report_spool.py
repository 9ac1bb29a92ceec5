import errno
import os
import zlib
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from svc_trial_runner.adapters.report_spool import (
    _ACKNOWLEDGED,
    _HEADER,
    _REPORT,
    DirectoryReportSpool,
    _record,
)


def inherited(folder: Path) -> list[tuple[str, bytes, bool]]:
    return [
        (report.experiment_id, report.entry, report.acknowledged)
        for report in DirectoryReportSpool(folder).inherited()
    ]


def test_reports_survive_in_order(tmp_path: Path) -> None:
    spool = DirectoryReportSpool(tmp_path)
    spool.append([("a", b"1"), ("b", b"2")])
    spool.append([("a", b"3")])

    assert inherited(tmp_path) == [("a", b"1", False), ("b", b"2", False), ("a", b"3", False)]


def test_acknowledged_reports_are_known_as_such(tmp_path: Path) -> None:
    spool = DirectoryReportSpool(tmp_path)
    spool.append([("a", b"1"), ("b", b"2"), ("a", b"3")])
    spool.acknowledge("a", 1)
    spool.close()

    assert inherited(tmp_path) == [("a", b"1", True), ("b", b"2", False), ("a", b"3", False)]


def test_acknowledgement_goes_to_disk_with_the_next_reports(tmp_path: Path) -> None:
    spool = DirectoryReportSpool(tmp_path)
    spool.append([("a", b"1")])
    spool.acknowledge("a", 1)
    spool.append([("a", b"2")])

    assert inherited(tmp_path) == [("a", b"1", True), ("a", b"2", False)]


def test_inheritance_is_given_once_and_stays_until_discarded(tmp_path: Path) -> None:
    DirectoryReportSpool(tmp_path).append([("a", b"1")])
    second = DirectoryReportSpool(tmp_path)
    assert len(second.inherited()) == 1
    assert len(second.inherited()) == 0

    assert len(inherited(tmp_path)) == 1
    second.discard_inherited()

    assert inherited(tmp_path) == []


def test_reports_appended_again_survive_the_discard(tmp_path: Path) -> None:
    DirectoryReportSpool(tmp_path).append([("a", b"1")])
    second = DirectoryReportSpool(tmp_path)
    second.append([("a", b"1")])
    second.discard_inherited()

    assert inherited(tmp_path) == [("a", b"1", False)]


def test_reports_after_an_agent_whose_clock_was_ahead_have_not_arrived(tmp_path: Path) -> None:
    in_2100_ns = 4_102_444_800_000_000_000
    (tmp_path / "000000000001.spool").write_bytes(
        _record(_REPORT, in_2100_ns, "a", b"1") + _record(_ACKNOWLEDGED, in_2100_ns, "a", b"")
    )

    DirectoryReportSpool(tmp_path).append([("a", b"2")])

    assert inherited(tmp_path) == [("a", b"1", True), ("a", b"2", False)]


def test_cut_record_is_dropped(tmp_path: Path) -> None:
    spool = DirectoryReportSpool(tmp_path)
    spool.append([("a", b"first"), ("a", b"second")])
    (path,) = tmp_path.glob("*.spool")
    path.write_bytes(path.read_bytes()[:-3])

    assert inherited(tmp_path) == [("a", b"first", False)]


def test_damaged_record_ends_the_segment(tmp_path: Path) -> None:
    spool = DirectoryReportSpool(tmp_path)
    spool.append([("a", b"first"), ("a", b"second")])
    (path,) = tmp_path.glob("*.spool")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)

    assert inherited(tmp_path) == [("a", b"first", False)]


def test_arrived_segments_are_removed_and_that_is_announced(tmp_path: Path) -> None:
    announced = []
    spool = DirectoryReportSpool(tmp_path, segment_bytes=100)
    spool.before_forgetting(lambda: announced.append(len(list(tmp_path.glob("*.spool")))))

    for number in range(100):
        spool.append([("a", b"x" * 50)])
        if number >= 10:
            spool.acknowledge("a", 1)

    assert announced
    assert len(list(tmp_path.glob("*.spool"))) < 15
    assert [report for report in inherited(tmp_path) if not report[2]] != []


def test_segment_has_a_mebibyte_before_the_next_is_begun(tmp_path: Path) -> None:
    spool = DirectoryReportSpool(tmp_path)
    content = b"x" * (2**20 - len(_record(_REPORT, 1, "a", b"")))

    counts = []
    for report in (content, b"", b""):
        spool.append([("a", report)])
        counts.append(len(list(tmp_path.glob("*.spool"))))

    assert counts == [1, 1, 2]


def test_segment_is_removed_once_it_is_full_and_all_its_reports_have_arrived(
    tmp_path: Path,
) -> None:
    size_bytes = len(_record(_REPORT, 1, "a", b"1"))
    spool = DirectoryReportSpool(tmp_path, segment_bytes=size_bytes)

    spool.append([("a", b"1")])
    spool.acknowledge("a", 1)
    not_full = list(tmp_path.glob("*.spool"))
    spool.append([("a", b"2")])
    not_arrived = list(tmp_path.glob("*.spool"))
    spool.acknowledge("a", 1)

    assert len(not_full) == len(not_arrived) == 1
    assert list(tmp_path.glob("*.spool")) == []


def test_acknowledgement_is_written_once(tmp_path: Path) -> None:
    spool = DirectoryReportSpool(tmp_path)
    spool.append([("a", b"1")])
    (path,) = tmp_path.glob("*.spool")
    report_bytes = path.stat().st_size
    spool.acknowledge("a", 1)
    spool.append([("a", b"2")])
    before = path.stat().st_size
    spool.append([("a", b"3")])
    added = path.stat().st_size - before
    spool.acknowledge("a", 1)
    spool.close()
    closed = path.stat().st_size
    spool.close()

    assert added == report_bytes
    assert before < closed == path.stat().st_size


def test_only_this_user_may_read_the_reports(tmp_path: Path) -> None:
    DirectoryReportSpool(tmp_path).append([("a", b"1")])

    (path,) = tmp_path.glob("*.spool")
    assert path.stat().st_mode & 0o777 == 0o600


def test_acknowledgements_of_removed_segments_touch_no_later_report(tmp_path: Path) -> None:
    spool = DirectoryReportSpool(tmp_path, segment_bytes=100)
    spool.append([("a", b"x" * 200)])
    spool.append([("a", b"later")])
    spool.acknowledge("a", 1)
    spool.close()

    assert inherited(tmp_path) == [("a", b"later", False)]


def test_broken_disk_does_not_stop_the_agent(tmp_path: Path) -> None:
    spool = DirectoryReportSpool(tmp_path / "spool")
    (tmp_path / "spool").rmdir()

    spool.append([("a", b"1")])
    spool.acknowledge("a", 1)
    spool.close()

    assert not (tmp_path / "spool").exists()


def test_reports_that_follow_a_full_disk_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = DirectoryReportSpool(tmp_path)
    spool.append([("a", b"first")])
    write = os.write
    written: list[int] = []

    def write_little(file: int, data: bytes) -> int:
        if written:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(write(file, data[:7]))
        return written[-1]

    with monkeypatch.context() as full:
        full.setattr(os, "write", write_little)
        spool.append([("a", b"refused")])
    spool.append([("a", b"third")])

    assert inherited(tmp_path) == [("a", b"first", False), ("a", b"third", False)]


def test_acknowledgement_of_an_experiment_without_reports_changes_nothing(tmp_path: Path) -> None:
    spool = DirectoryReportSpool(tmp_path)
    spool.acknowledge("a", 1)
    spool.append([("a", b"1")])
    spool.acknowledge("b", 1)
    spool.close()

    assert inherited(tmp_path) == [("a", b"1", False)]


def test_first_error_of_a_series_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    spool = DirectoryReportSpool(tmp_path)
    with capture_logs() as lines:
        for _ in range(2):
            with monkeypatch.context() as full:
                full.setattr(os, "write", refuse)
                spool.append([("a", b"refused")])
                spool.append([("a", b"refused")])
            spool.append([("a", b"stored")])

    assert [line["folder"] for line in lines] == [str(tmp_path)] * 2


def test_reports_that_follow_a_missing_folder_are_stored(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    spool = DirectoryReportSpool(folder)
    folder.rmdir()
    spool.append([("a", b"refused")])
    folder.mkdir()

    spool.append([("a", b"second")])

    assert inherited(folder) == [("a", b"second", False)]


def old_record(kind: bytes, number: int, experiment_id: str, content: bytes) -> bytes:
    """Return a record of versions whose checksum covered id and content only."""
    body = experiment_id.encode() + content
    return _HEADER.pack(len(body), zlib.crc32(body), kind, len(experiment_id), number) + body


def test_segments_of_earlier_versions_are_read(tmp_path: Path) -> None:
    records = [(b"R", 1, "a", b"1"), (b"A", 1, "a", b""), (b"R", 2, "a", b"2")]
    data = b"".join(old_record(*record) for record in records)
    (tmp_path / "000000000007.spool").write_bytes(data)

    assert inherited(tmp_path) == [("a", b"1", True), ("a", b"2", False)]


def test_every_damaged_byte_is_noticed_and_keeps_nothing_from_starting(tmp_path: Path) -> None:
    spool = DirectoryReportSpool(tmp_path / "good")
    spool.append([("a", b"first"), ("b", b"second")])
    (path,) = (tmp_path / "good").glob("*.spool")
    data = path.read_bytes()
    whole = [("a", b"first", False), ("b", b"second", False)]

    for position in range(len(data)):
        for bit in (0, 7):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            path.write_bytes(damaged)
            for left in path.parent.glob("*.damaged-*"):
                left.unlink()

            found = inherited(path.parent)

            assert found == whole[: len(found)]
            assert len(found) < 2


@pytest.mark.parametrize("name", ["x.spool", "-1.spool", "²⁵.spool", "1e3.spool"])
def test_file_with_another_name_is_set_aside(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")

    spool = DirectoryReportSpool(tmp_path)
    spool.append([("a", b"1")])

    assert inherited(tmp_path) == [("a", b"1", False)]
    assert not (tmp_path / name).exists()


def test_folder_in_place_of_a_segment_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "000000000001.spool").mkdir()

    spool = DirectoryReportSpool(tmp_path)
    spool.append([("a", b"1")])

    assert inherited(tmp_path) == [("a", b"1", False)]


def test_file_in_place_of_the_folder_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "spool").write_bytes(b"")

    assert inherited(tmp_path / "spool") == []


def test_discard_leaves_a_damaged_segment_that_was_set_aside(tmp_path: Path) -> None:
    DirectoryReportSpool(tmp_path).append([("a", b"first")])
    (path,) = tmp_path.glob("*.spool")
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    spool = DirectoryReportSpool(tmp_path)

    spool.discard_inherited()

    assert not path.exists()
    assert [left.name.startswith(path.name) for left in tmp_path.iterdir()] == [True]
