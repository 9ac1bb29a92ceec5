import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nni.compression.job import JobError, run_job
from nni.compression.job.__main__ import run_trial
from nni.compression.pipeline import BudgetError
from tests.support.compression_job import description


def parameters(folder: Path, step: int) -> dict[str, object]:
    """Return the parameters of the trial of a step."""
    found: dict[str, Any] = {
        "job": description(),
        "step": step,
        "save_checkpoint_dir": str(folder / str(step)),
    }
    if step > 1:
        found["load_checkpoint_dir"] = str(folder / str(step - 1))
    return found


def test_trials_end_with_the_tensors_of_a_local_run(tmp_path: Path, code: Path) -> None:
    results = run_job(description(), tmp_path / "local", code)

    reported = [run_trial(parameters(tmp_path, step), code) for step in (1, 2, 3, 4, 5)]

    assert [result["default"] for result in reported] == [one.metric for one in results]
    for step in (1, 2, 3, 4, 5):
        for path in (tmp_path / "local" / f"{step:04d}").glob("*.safetensors"):
            assert (tmp_path / str(step) / path.name).read_bytes() == path.read_bytes()
    assert json.loads(json.dumps(reported)) == reported


def test_a_complete_step_is_not_run_again(tmp_path: Path, code: Path) -> None:
    first = run_trial(parameters(tmp_path, 1), code)
    (code / "small_network.py").unlink()

    assert run_trial(parameters(tmp_path, 1), code) == first


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"step": 9}, "step"),
        ({"step": None}, "step"),
        ({"job": {}}, "model"),
        ({"save_checkpoint_dir": None}, "save_checkpoint_dir"),
        ({"load_checkpoint_dir": "previous"}, "load_checkpoint_dir"),
    ],
)
def test_a_bad_parameter_is_named(tmp_path: Path, changes: dict[str, object], field: str) -> None:
    with pytest.raises(JobError) as caught:
        run_trial({**parameters(tmp_path, 1), **changes}, tmp_path)

    assert caught.value.field == field
    assert list(tmp_path.iterdir()) == []


def test_a_broken_budget_leaves_the_step_incomplete(tmp_path: Path, code: Path) -> None:
    job = description(schedule={"iterations": 1}, speedup=False, budget={"metric": 9})

    with pytest.raises(BudgetError, match=r"the step '1 \(prune\)' metric is"):
        run_trial({**parameters(tmp_path, 1), "job": job}, code)

    assert not (tmp_path / "1" / "step.json").exists()


def test_a_refusal_ends_the_trial_with_its_reason(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nni.compression.job"],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "job must be an object with named values" in done.stderr
