import hashlib
import inspect
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from nni.compression import pruning
from nni.compression.base.pruner import Pruner
from nni.compression.job.description import ALGORITHMS, JobDescription
from nni.compression.job.field_checks import JobError
from nni.compression.job.step_files import empty_folder
from nni.compression.job.step_run import run_step
from nni.compression.job.steps import Step, step_of
from nni.compression.pruning.search_pruner import SearchPruner
from tests.support.compression_job import MODULE, description

FIRST = Step(1, "prune")


def refused(code: Path, folder: Path, **changes: object) -> JobError:
    """Return the error of the first step of a job with these fields."""

    def run() -> None:
        job = JobDescription.of(description(**changes))
        run_step(job, FIRST, None, empty_folder(folder), code)

    with pytest.raises(JobError) as caught:
        run()
    return caught.value


@pytest.mark.parametrize(
    ("changes", "field", "problem"),
    [
        (
            {"model": {"factory": f"{MODULE}:make_number"}},
            "model.factory",
            "nn.Module, got 3",
        ),
        ({"evaluator": {"factory": f"{MODULE}:make_number"}}, "evaluator.factory", "an evaluator"),
        (
            {"evaluator": {"factory": f"{MODULE}:make_evaluator_without_input"}},
            "evaluator.factory",
            "must set dummy_input",
        ),
        ({"algorithm": {"name": "L3NormPruner"}}, "algorithm.name", "L1NormPruner"),
        (
            {"algorithm": {"name": "TaylorPruner", "arguments": {"steps": 2}}},
            "algorithm.arguments.steps",
            "is no argument of TaylorPruner",
        ),
        (
            {"model": {"factory": f"{MODULE}:make", "weights": "0" * 64}},
            "model.weights",
            "which is not in",
        ),
    ],
)
def test_what_does_not_fit_the_code_is_named(
    tmp_path: Path, code: Path, changes: dict[str, object], field: str, problem: str
) -> None:
    error = refused(code, tmp_path / "step", **changes)

    assert error.field == field
    assert problem in str(error)


def test_weights_are_checked_against_their_hash_and_their_model(tmp_path: Path, code: Path) -> None:
    save_file({"0.weight": torch.ones(2)}, path := code / "weights")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.rename(right := code / f"{digest}.safetensors")
    (code / f"{'1' * 64}.safetensors").write_bytes(right.read_bytes())

    model = {"factory": f"{MODULE}:make", "weights": digest}
    other = refused(code, tmp_path / "step", model=model)
    false = refused(code, tmp_path / "step", model={**model, "weights": "1" * 64})

    assert "does not fit the model" in str(other)
    assert "is not the SHA-256" in str(false)


def test_the_job_starts_from_the_given_weights(tmp_path: Path, code: Path) -> None:
    source = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    save_file(source.state_dict(), path := code / "weights")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.rename(code / f"{digest}.safetensors")
    job = JobDescription.of(
        description(
            model={"factory": f"{MODULE}:make", "weights": digest},
            algorithm={"name": "L1NormPruner"},
            fine_tuning={},
        )
    )

    run_step(job, FIRST, None, empty_folder(tmp_path / "step"), code)

    saved = load_file(tmp_path / "step" / "model.safetensors")
    masks = load_file(tmp_path / "step" / "masks.safetensors")
    assert torch.equal(saved["0.weight"], source.get_parameter("0.weight") * masks["0|weight"])
    assert torch.equal(saved["2.weight"], source.get_parameter("2.weight"))


def test_what_factories_draw_does_not_change_the_training(tmp_path: Path, code: Path) -> None:
    job = JobDescription.of(description())
    path = code / f"{MODULE}.py"
    run_step(job, FIRST, None, empty_folder(tmp_path / "a"), code)

    torch.rand(5)  # the state of the caller
    run_step(job, FIRST, None, empty_folder(tmp_path / "b"), code)

    assert path.is_file()
    for name in ("model.safetensors", "masks.safetensors", "random.safetensors"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_every_named_algorithm_is_a_pruner_that_takes_an_evaluator() -> None:
    found = {
        name
        for name in pruning.__all__
        if isinstance(one := getattr(pruning, name), type)
        and issubclass(one, Pruner)
        and not issubclass(one, SearchPruner)
    }

    assert set(ALGORITHMS) == found
    for name in ALGORITHMS:
        assert "evaluator" in inspect.signature(getattr(pruning, name)).parameters


def test_parameters_before_and_after_the_speedup_are_counted_alike(
    tmp_path: Path, code: Path
) -> None:
    path = code / f"{MODULE}.py"
    text = path.read_text().replace("nn.ReLU()", "nn.BatchNorm1d(width), nn.ReLU()")
    path.write_text(
        text.replace("    with torch.no_grad", "    model.eval()\n    with torch.no_grad")
    )
    entries = [{"op_names": ["0"], "sparse_ratio": 0.5}]
    job = JobDescription.of(
        description(config_list=entries, schedule={"iterations": 1}, fine_tuning={})
    )
    pruned = run_step(job, FIRST, None, empty_folder(tmp_path / "1"), code)

    removal = step_of(job, 1)
    assert removal is not None
    smaller = run_step(job, removal, tmp_path / "1", empty_folder(tmp_path / "2"), code)

    assert pruned.parameters == 4 * 8 + 8 + 2 * 8 + 8 * 3 + 3
    assert smaller.parameters == 4 * 4 + 4 + 2 * 4 + 4 * 3 + 3
