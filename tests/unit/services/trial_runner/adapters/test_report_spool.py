from pathlib import Path

from svc_trial_runner.adapters.report_spool import DirectoryReportSpool


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
