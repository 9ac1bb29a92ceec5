from __future__ import annotations

import os
from pathlib import Path

from nni.cli.diagnosis import services
from nni.cli.diagnosis.finding import Finding
from nni.cli.doctor import findings
from tests.support.endpoint_files import Spawn, write_endpoint
from tests.unit.sdk.nni.cli.diagnosis.conftest import only


def test_services_of_another_version_are_found(home: Path, spawn: Spawn) -> None:
    write_endpoint(home, spawn("svc_standalone").pid, version="3.0")

    assert "but the services are 3.0" in only(services.check_version(), "bad")[0]


def test_services_that_were_killed_are_found(home: Path) -> None:
    write_endpoint(home, os.getpid())  # alive, but no supervisor

    assert "their supervisor was killed" in only(services.check_services(), "bad")[0]


def test_services_that_are_not_up_are_worth_a_note(home: Path) -> None:
    assert "the next nnictl create brings them up" in only(services.check_services(), "note")[0]


def test_a_check_that_fails_itself_is_no_end_of_the_others() -> None:
    def check_broken() -> list[Finding]:
        raise RuntimeError("oh")

    def check_whole() -> list[Finding]:
        return [Finding("whole", "ok", "")]

    found = findings([check_broken, check_whole])  # type: ignore[list-item] # lists will do

    assert [(finding.check, finding.result) for finding in found] == [
        ("broken", "note"),
        ("whole", "ok"),
    ]
    assert "RuntimeError: oh" in found[0].explanation
