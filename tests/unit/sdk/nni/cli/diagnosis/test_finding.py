from dataclasses import FrozenInstanceError, asdict

import pytest

from nni.cli.diagnosis.finding import Finding


def test_finding_is_a_value_with_the_keys_of_the_report() -> None:
    finding = Finding("disk", "note", "1 GB free; delete something")

    assert asdict(finding) == {
        "check": "disk",
        "result": "note",
        "explanation": "1 GB free; delete something",
    }
    with pytest.raises(FrozenInstanceError):
        finding.result = "ok"  # type: ignore[misc]  # what the test is about
