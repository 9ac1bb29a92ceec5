import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from nni.compression.job import StepResult, run_job
from nni.compression.speedup import load_smaller
from tests.support.compression_job import ITERATIONS, description


def tensors(folder: Path) -> dict[str, bytes]:
    """Return the content of all files of tensors below a folder, by path."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*.safetensors")}


def test_ratios_grow_and_the_last_step_removes_what_is_masked(tmp_path: Path, code: Path) -> None:
    results = run_job(description(), tmp_path / "job", code)

    pruned = [result.sparsity["0.weight"] for result in results[:-1]]
    assert pruned == sorted(pruned)
    assert pruned[-1] == 0.5
    assert [result.kind for result in results] == ["prune"] * ITERATIONS + ["speedup"]
    assert (results[0].parameters, results[-1].parameters) == (67, 35)
    assert results[-1].error < 1e-4
    assert results[-1].flops > 0
    assert results[-1].latency_ms > 0
    assert results[-1].latency_before_ms > 0


def test_masks_of_an_iteration_contain_those_of_the_one_before(tmp_path: Path, code: Path) -> None:
    run_job(description(speedup=False), tmp_path / "job", code)

    masks = [load_file(one)["0|weight"] for one in sorted(tmp_path.rglob("masks.safetensors"))]
    assert all(bool((later <= earlier).all()) for earlier, later in pairwise(masks))


def test_the_smaller_model_is_loaded_into_that_of_the_factory(tmp_path: Path, code: Path) -> None:
    results = run_job(description(), tmp_path / "job", code)

    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    smaller = load_smaller(model, tmp_path / "job" / f"{len(results):04d}")

    assert sum(parameter.numel() for parameter in smaller.parameters()) == 35
    assert smaller(torch.zeros(1, 4)).shape == (1, 3)


def test_a_complete_job_runs_nothing_again(tmp_path: Path, code: Path) -> None:
    ran: list[StepResult] = []
    first = run_job(description(), tmp_path / "job", code, ran.append)

    again = run_job(description(), tmp_path / "job", code, ran.append)

    assert again == first == ran


def test_another_job_does_not_continue_in_the_folder(tmp_path: Path, code: Path) -> None:
    run_job(description(), tmp_path / "job", code)

    with pytest.raises(ValueError, match="files of another job; choose an empty folder"):
        run_job(description(seed=1), tmp_path / "job", code)


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
def test_a_job_killed_at_ten_moments_ends_with_the_same_tensors(tmp_path: Path, code: Path) -> None:
    run_job(description(), tmp_path / "quiet", code)

    subprocess.run(
        [
            *(sys.executable, "-m", "tests.support.compression_job"),
            *(str(tmp_path / "killed"), str(code), "10", "7"),
        ],
        check=True,
    )

    assert tensors(tmp_path / "killed") == tensors(tmp_path / "quiet")
    assert len(tensors(tmp_path / "quiet")) == 3 * (ITERATIONS + 1)
