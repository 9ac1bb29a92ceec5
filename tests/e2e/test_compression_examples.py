"""The example of a compression job runs through the real services, as its README says."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from nni.compression.remote import RemoteJob
from tests.support.local_shape import LocalShape
from tests.support.nnictl import Nnictl
from tests.support.scripts import Scripts, scripts

__all__ = ["scripts"]  # a fixture

EXAMPLE = Path(__file__).parents[2] / "examples" / "compression" / "job"


@pytest.mark.timeout(180)
def test_job_halves_the_channels_and_its_files_give_the_network(
    local_shape: LocalShape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripts: Scripts
) -> None:
    monkeypatch.setenv("NNI_HOME", str(local_shape.home))
    nnictl = Nnictl(local_shape)
    ignored = shutil.ignore_patterns("__pycache__", "*.safetensors", "job.json")
    folder = Path(shutil.copytree(EXAMPLE, tmp_path / "job", ignore=ignored))
    scripts(folder / "prepare.py", "--epochs", 2)
    description = folder / "job.json"
    job = json.loads(description.read_text("utf-8"))
    # 3 iterations with 2 epochs each in the README
    job |= {"schedule": {"iterations": 1}, "fine_tuning": {"max_steps": 10}}
    description.write_text(json.dumps(job), "utf-8")

    said = nnictl("compress", "submit", "--job", description, "--code", folder / "code").stdout
    job_id = said.split("Submitted job ")[1].split()[0]
    with RemoteJob(job_id) as remote:
        *_, last = remote.follow()
    assert last.complete, last
    nnictl("compress", "get", job_id, tmp_path / "pruned")
    loaded = scripts(folder / "load.py", tmp_path / "pruned").strip()

    found = re.fullmatch(r"accuracy (\S+) %, ([\d,]+) parameters", loaded)
    assert found is not None, loaded
    # 16 and 32 channels became 8 and 16: 8 x 9, 16 x 8 x 9 and 3 x 16 weights, biases, norms.
    assert found[2] == "1,347"
    assert float(found[1]) > 50  # guessing gives 33; the README trains for longer
