"""Annotated code through the real services: converted, tuned, reported; the original untouched."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.local_shape import LocalShape

EXAMPLE = Path(__file__).parents[2] / "examples" / "annotation"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A copy of the example, so that nothing is written into the repository."""
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(EXAMPLE, tmp_path / "example", ignore=ignored))


@pytest.mark.timeout(240)
@pytest.mark.claim("hpo", 19)
def test_annotated_example_is_tuned_in_a_copy(local_shape: LocalShape, example: Path) -> None:
    original = (example / "trial.py").read_bytes()

    experiment = local_shape.create(example / "config.yml")
    assert local_shape.wait_for(experiment, "DONE", "ERROR") == "DONE"
    trials = local_shape.trials(experiment)
    exported = example / "results.json"
    local_shape.nnictl("experiment", "export", experiment, "-f", exported, "--type", "json")
    config = json.loads(local_shape.nnictl("config", "show", experiment, "--json").stdout)["config"]

    assert [trial["status"] for trial in trials] == ["SUCCEEDED"] * 8
    results: list[dict[str, Any]] = json.loads(exported.read_text())
    for result in results:
        assert set(result["parameter"]) == {"learning_rate", "decay", "squared"}
        assert result["parameter"]["squared"] in {"squared(weights)", "absolute(weights)"}
    # The learning rate decides: at its lower end a fit has hardly begun after five epochs.
    assert len({json.dumps(result["value"]) for result in results}) > 1
    assert max(result["value"]["default"] for result in results) > 0.8
    assert config["useAnnotation"] is True
    assert config["searchSpace"]["decay"] == {"_type": "choice", "_value": [0, 0.01, 0.1]}
    copy = Path(config["trialCodeDirectory"])
    assert copy.parent == local_shape.home / "annotation"
    for folder in (local_shape.root / experiment / "trials").iterdir():
        assert (folder / "run.sh").read_text().splitlines()[1] == f"cd {copy}"
    assert (example / "trial.py").read_bytes() == original

    local_shape.nnictl("stop", experiment)
    local_shape.nnictl("experiment", "delete", experiment)
    assert not copy.exists()


@pytest.mark.timeout(240)
def test_mistake_is_reported_with_its_line_before_anything_starts(
    local_shape: LocalShape, example: Path
) -> None:
    text = (example / "trial.py").read_text()
    line = text[: text.index("@nni.variable(nni.choice")].count("\n") + 1
    (example / "trial.py").write_text(text.replace("    decay = 0\n", "    other = 0\n"))

    port = ("--port", str(local_shape.free_port()))
    done = local_shape.nnictl("create", "--config", example / "config.yml", *port, check=False)

    assert done.returncode == 2
    assert f"trial.py:{line}: @nni.variable(..., name=decay) must stand right before" in done.stderr
    assert not (local_shape.home / "endpoint.json").exists()
