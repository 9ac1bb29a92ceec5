import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from nni.compression.job import JobError, StepResult, run_job
from nni.compression.job.later_steps import executed_by
from nni.compression.pipeline import BudgetError
from nni.compression.pipeline.integer_steps import RuntimeModel
from nni.compression.quantization import open_session
from nni.compression.quantization.qdq.simulation import export_wrapped
from nni.compression.speedup import load_smaller
from tests.support.compression_job import MODULE, description

TRAINED = {"name": "QATQuantizer", "fine_tuning": {"max_steps": 5}}


def job(**changes: object) -> dict[str, Any]:
    return description(
        **{"schedule": {"iterations": 1}, "quantization": True, "export": True, **changes}
    )


def small() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def test_the_smaller_model_is_trained_after_the_speedup(tmp_path: Path, code: Path) -> None:
    fields = job(speedup={"fine_tuning": {"max_steps": 5}}, quantization=False, export=False)

    results = run_job(fields, tmp_path / "job", code)

    assert [result.kind for result in results] == ["prune", "speedup", "fine_tune"]
    assert results[2].parameters == results[1].parameters == 35
    assert results[2].metric != results[1].metric
    before, after = (load_smaller(small(), tmp_path / "job" / name) for name in ("0002", "0003"))
    assert not torch.equal(before.get_parameter("0.weight"), after.get_parameter("0.weight"))


@pytest.mark.parametrize("quantization", [True, TRAINED])
def test_a_quantized_model_is_exported_and_evaluated_as_it_runs(
    tmp_path: Path, code: Path, quantization: object
) -> None:
    results = run_job(job(quantization=quantization), tmp_path / "job", code)

    speedup, quantized, exported = results[1:]
    assert [one.kind for one in results] == ["prune", "speedup", "quantize", "export"]
    folder = tmp_path / "job" / "0004"
    assert (folder / "calibration.json").read_bytes() == (
        tmp_path / "job" / "0003" / "calibration.json"
    ).read_bytes()
    calibration = json.loads((folder / "calibration.json").read_text())
    assert calibration["0"]["weight"]["quant_bits"] == 8
    assert exported.size_bytes == (folder / "model.onnx").stat().st_size
    assert (exported.latency_ms > 0, exported.latency_before_ms > 0) == (True, True)
    # One value of the evaluation moves by at most one step of 1/255 of its range.
    assert exported.metric == pytest.approx(quantized.metric, abs=0.02)
    assert exported.flops == quantized.flops == speedup.flops > 0
    assert open_session(folder / "model.onnx").get_inputs()[0].shape == ["batch", 4]


def test_a_masked_model_is_quantized_without_a_speedup(tmp_path: Path, code: Path) -> None:
    run_job(job(speedup=False, export=False), tmp_path / "job", code)

    saved = load_file(tmp_path / "job" / "0002" / "model.safetensors")
    assert int((saved["0.weight"] == 0).sum()) == 16


def test_a_model_is_exported_without_quantization(tmp_path: Path, code: Path) -> None:
    results = run_job(job(quantization=False), tmp_path / "job", code)

    assert results[-1].kind == "export"
    assert results[-1].metric == pytest.approx(results[-2].metric, rel=1e-5)


def test_batch_norms_are_folded_in_the_file(tmp_path: Path, code: Path) -> None:
    path = code / f"{MODULE}.py"
    text = path.read_text().replace(
        "return nn.Sequential(nn.Linear(4, width),",
        "return nn.Sequential(nn.Unflatten(1, (4, 1, 1)), nn.Conv2d(4, width, 1), "
        "nn.BatchNorm2d(width), nn.Flatten(),",
    )
    path.write_text(text.replace("    with torch", "    model.eval()\n    with torch"))
    entries = [{"op_names": ["1"], "sparse_ratio": 0.5}]

    results = run_job(
        job(config_list=entries, algorithm={"name": "L1NormPruner"}), tmp_path / "job", code
    )

    assert results[-1].metric == pytest.approx(results[-2].metric, abs=0.02)
    content = (tmp_path / "job" / "0004" / "model.onnx").read_bytes()
    assert b"BatchNormalization" not in content


def test_a_broken_budget_ends_the_job_at_its_step(tmp_path: Path, code: Path) -> None:
    ran: list[StepResult] = []

    with pytest.raises(BudgetError, match=r"the step '4 \(export\)' size_bytes"):
        run_job(job(budget={"size_bytes": 100}), tmp_path / "job", code, ran.append)

    assert [result.kind for result in ran] == ["prune", "speedup", "quantize"]
    assert not (tmp_path / "job" / "0004" / "step.json").exists()


def test_an_unknown_argument_of_the_quantizer_is_named(tmp_path: Path, code: Path) -> None:
    fields = job(quantization={"arguments": {"steps": 2}})

    with pytest.raises(JobError, match=r"quantization.arguments.steps is no argument of Ptq"):
        run_job(fields, tmp_path / "job", code)


def test_calls_run_the_file_and_keep_the_structure_of_outputs(tmp_path: Path) -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, value: Tensor) -> dict[str, Tensor]:
            return {"logits": self.layer(value), "value": value}

    model, inputs = Named(), torch.ones(3, 2)
    export_wrapped(model, inputs, tmp_path / "model.onnx", runtime=None, dynamic_batch=True)
    expected = model(inputs)
    exported = RuntimeModel(tmp_path / "model.onnx", threads=1)

    with executed_by(exported, model, inputs):
        found = model(inputs)

    torch.testing.assert_close(found, {key: one.detach() for key, one in expected.items()})
    assert not found["logits"].requires_grad
    assert model(inputs)["logits"].requires_grad
