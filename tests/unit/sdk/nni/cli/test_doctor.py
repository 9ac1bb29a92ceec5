import csv
import json
from collections.abc import Iterator

import pytest

from nni.cli.diagnosis.finding import Finding
from nni.cli.doctor import checks, findings
from nni.cli.main import DONE, FAILED, main
from nni.experiment.errors import RefusedError
from tests.support.in_memory_manager import InMemoryManager


def good() -> Iterator[Finding]:
    yield Finding("disk", "ok", "12 GB free")


def test_findings_stand_in_the_order_of_the_checks() -> None:
    def bad() -> Iterator[Finding]:
        yield Finding("clock", "bad", "it goes wrong; set it")

    assert [finding.check for finding in findings([good, bad])] == ["disk", "clock"]


def test_check_that_fails_is_a_note_and_hides_no_other() -> None:
    def broken() -> Iterator[Finding]:
        yield from good()
        raise OSError("no such device")

    found = findings([broken, good])

    assert [finding.check for finding in found if finding.result == "ok"][-1] == "disk"
    (note,) = [finding for finding in found if finding.result == "note"]
    assert "no such device" in note.explanation


def test_refusal_and_missing_permission_are_no_defects() -> None:
    def refused() -> Iterator[Finding]:
        yield from ()
        raise RefusedError("NNI_HOME must be a folder of yours")

    def forbidden() -> Iterator[Finding]:
        yield from ()
        raise PermissionError(13, "Permission denied", "/root/x")

    found = [(finding.result, finding.explanation) for finding in findings([refused, forbidden])]

    assert found == [
        ("bad", "NNI_HOME must be a folder of yours"),
        ("note", "could not be checked: you may not read /root/x"),
    ]


def test_services_of_another_machine_leave_this_one_unchecked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = checks()
    monkeypatch.setenv("NNI_ENDPOINT", "https://nni.lab")

    elsewhere = checks()

    assert set(elsewhere) < set(here)


def test_exit_code_says_whether_something_is_bad(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["doctor", "--json"])

    found = json.loads(capsys.readouterr().out)
    assert {"python", "services"} <= {finding["check"] for finding in found}
    bad = any(finding["result"] == "bad" for finding in found)
    assert code == (FAILED if bad else DONE)


def test_findings_are_printed_as_csv_without_a_last_message(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["doctor", "--output", "csv"])

    lines = list(csv.reader(capsys.readouterr().out.splitlines()))
    assert lines[0] == ["check", "result", "explanation"]
    assert {line[1] for line in lines[1:]} <= {"ok", "note", "bad"}
