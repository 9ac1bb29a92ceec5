import json
from pathlib import Path

from nni.nas.experiment.manifest import ExperimentManifest


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
