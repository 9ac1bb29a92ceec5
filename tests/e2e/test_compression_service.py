"""Compression jobs through all services: submitted, killed, resumed and fetched as a user would."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from nni.compression.remote import JobStatus, RemoteJob
from tests.support.compression_job import MODULE, description, job_of, write_code
from tests.support.local_shape import LocalShape
from tests.support.nnictl import Nnictl

FILES = {
    *("model.safetensors", "masks.safetensors", "random.safetensors", "step.json", "plan.json"),
    *("calibration.json", "model.onnx"),
}


@pytest.fixture
def nnictl(local_shape: LocalShape, monkeypatch: pytest.MonkeyPatch) -> Nnictl:
    monkeypatch.setenv("NNI_HOME", str(local_shape.home))
    return Nnictl(local_shape)


def submit(nnictl: Nnictl, job: dict[str, Any], code: Path) -> str:
    path = nnictl.shape.folder / "job.json"
    path.write_text(json.dumps(job))
    said = nnictl("compress", "submit", "--job", path, "--code", code, "--name", "halved").stdout
    return said.split("Submitted job ")[1].split()[0]


def until_running(statuses: Iterator[JobStatus], step: int) -> None:
    while next(statuses).steps[step - 1].state != "RUNNING":
        pass


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folder with the code of the job; the interpreter forgets its module afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield write_code(tmp_path / "code")
    sys.modules.pop(MODULE, None)


@pytest.mark.timeout(180)
def test_job_whose_services_are_killed_gives_the_same_tensors(
    nnictl: Nnictl, tmp_path: Path, code: Path
) -> None:
    from nni.compression.job import run_job

    job = description(
        schedule={"iterations": 1},
        quantization=True,
        export=True,
        budget={"parameters": 40, "metric": -10},
    )
    job_id = submit(nnictl, job, code)
    assert "compressor" in nnictl.shape.pids()
    with RemoteJob(job_id) as remote:
        statuses = remote.follow()
        until_running(statuses, 1)
        nnictl.shape.kill("compressor")
        until_running(statuses, 2)
        nnictl.shape.kill("trial-runner")
        *_, last = statuses
        assert last.complete, last
        fetched = remote.fetch(tmp_path / "fetched")

    run_job(job, tmp_path / "local", code)

    assert {path.name for path in fetched.iterdir()} == FILES
    assert equal(fetched, tmp_path / "local" / "0004")
    assert [step.kind for step in last.steps] == ["prune", "speedup", "quantize", "export"]
    calibration = (fetched / "calibration.json").read_bytes()
    assert calibration == (tmp_path / "local" / "0004" / "calibration.json").read_bytes()
    first = nnictl("compress", "get", job_id, tmp_path / "first", "--step", 1).stdout
    assert "masks.safetensors" in first
    assert equal(tmp_path / "first", tmp_path / "local" / "0001")


def equal(one: Path, other: Path) -> bool:
    """Return whether all tensors of two steps are equal bit for bit."""
    for name in ("model.safetensors", "masks.safetensors"):
        left, right = load_file(one / name), load_file(other / name)
        if left.keys() != right.keys() or any((left[key] != right[key]).any() for key in left):
            return False
    return True


@pytest.mark.timeout(180)
def test_job_that_fails_says_why_and_goes_on_once_it_is_mended(
    nnictl: Nnictl, tmp_path: Path
) -> None:
    code = write_code(tmp_path / "code")
    good = (code / f"{MODULE}.py").read_text()
    (code / f"{MODULE}.py").write_text("raise RuntimeError('a mistake of mine')\n")
    job_id = submit(nnictl, job_of(1, speedup=False), code)

    followed = nnictl("compress", "status", job_id, "--follow", expect=1)

    assert "step 1 (prune) did not succeed" in followed.stderr
    assert "a mistake of mine" in nnictl("compress", "log", job_id[:5]).stdout
    refused = nnictl("compress", "get", job_id, tmp_path / "none", expect=1)
    assert "no step of job" in refused.stderr

    (code / f"{MODULE}.py").write_text(good)
    nnictl("compress", "resume", job_id)
    nnictl("compress", "status", job_id, "--follow")

    (listed,) = nnictl.json("compress", "list", "--json")
    assert (listed["id"], listed["complete"], listed["name"]) == (job_id, True, "halved")
    (step,) = listed["steps"]
    assert step["result"]["sparsity"]["0.weight"] == pytest.approx(0.5)


def test_job_that_breaks_a_rule_is_refused_before_anything_starts(
    nnictl: Nnictl, tmp_path: Path
) -> None:
    path = tmp_path / "job.json"
    path.write_text(json.dumps({**job_of(), "sead": 1}))

    refused = nnictl("compress", "submit", "--job", path, expect=2)

    assert "sead is no field of a job; did you mean 'seed'?" in refused.stderr
    path.write_text(json.dumps({**job_of(speedup=False), "budget": {"parameters": 9}}))
    unkept = nnictl("compress", "submit", "--job", path, expect=2)
    assert "budget.parameters" in unkept.stderr
    assert "needs speedup" in unkept.stderr
    path.write_text("{")
    assert "must be JSON" in nnictl("compress", "submit", "--job", path, expect=2).stderr
    assert nnictl.json("compress", "list", "--json") == []
    assert "compressor" not in nnictl.shape.pids()
