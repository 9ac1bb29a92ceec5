import json
from pathlib import Path

import pytest

from nni.nas.experiment.manifest import ExperimentManifest, checked_id


def test_id_is_that_of_the_user_or_a_new_one() -> None:
    assert checked_id("mine-1") == "mine-1"
    assert len(checked_id(None)) == 8
    with pytest.raises(ValueError, match="id must be 1 to 32 letters"):
        checked_id("a/b")


def test_missing_file_has_no_entries(tmp_path: Path) -> None:
    assert ExperimentManifest(tmp_path / "none").entries() == {}


def test_running_experiment_has_no_port_and_no_end(tmp_path: Path) -> None:
    manifest = ExperimentManifest(tmp_path / "new")

    manifest.add_running("one", "name", 5)

    assert manifest.entries()["one"] == {
        "id": "one",
        "experimentName": "name",
        "port": "N/A",
        "platform": "N/A",
        "status": "RUNNING",
        "startTime": 5,
        "endTime": "N/A",
        "tag": ["retiarii"],
        "logDir": str(tmp_path / "new"),
    }


def test_stopped_experiment_has_an_end(tmp_path: Path) -> None:
    manifest = ExperimentManifest(tmp_path)
    manifest.add_running("one", None, 5)
    manifest.add_running("two", None, 6)

    manifest.set_stopped("one", 9)
    manifest.set_stopped("unknown", 9)

    entries = json.loads((tmp_path / ".experiment").read_text())
    assert {key: (one["status"], one["endTime"]) for key, one in entries.items()} == {
        "one": ("STOPPED", 9),
        "two": ("RUNNING", "N/A"),
    }
