import pytest

from nni.compression import quantization
from nni.compression.job.field_checks import JobError
from nni.compression.job.step_options import (
    QUANTIZERS,
    RUNTIMES,
    ExportOptions,
    QuantizationOptions,
    SpeedupOptions,
    TuningLimits,
    budget_of,
    export_of,
    quantization_of,
    speedup_of,
)
from nni.compression.pipeline import Budget
from nni.compression.quantization import presets
from nni.compression.quantization.quantizer import Quantizer


def test_true_and_false_mean_the_defaults_and_no_step() -> None:
    assert (speedup_of(True), speedup_of(False)) == (SpeedupOptions(), None)
    assert (export_of(True), export_of(False)) == (ExportOptions(), None)
    assert (quantization_of(True), quantization_of(False)) == (QuantizationOptions(), None)


def test_all_options_are_read() -> None:
    training = TuningLimits(5, None)
    options = {
        "name": "QATQuantizer",
        "arguments": {"quant_start_step": 2},
        "config_list": [{"op_types": ["Linear"]}],
        "runtime": "openvino",
        "fine_tuning": {"max_steps": 5},
    }

    assert speedup_of({"fine_tuning": {"max_steps": 5}}) == SpeedupOptions(fine_tuning=training)
    assert export_of({"threads": 2}) == ExportOptions(2)
    assert quantization_of(options) == QuantizationOptions(
        "QATQuantizer",
        {"quant_start_step": 2},
        ({"op_types": ["Linear"]},),
        "openvino",
        training,
    )
    assert budget_of({"metric": 0.5, "latency_ms": 8}, speedup=False, export=True) == Budget(
        metric=0.5, latency_ms=8
    )


@pytest.mark.parametrize(
    ("value", "field", "problem"),
    [
        ({"name": "PtqQuantiser"}, "quantization.name", "did you mean 'PtqQuantizer'"),
        ({"name": "QATQuantizer"}, "quantization.fine_tuning", "is missing"),
        ({"fine_tuning": {"max_steps": 1}}, "quantization.fine_tuning", "trains nothing"),
        ({"runtime": "tflite"}, "quantization.runtime", "onnxruntime, openvino"),
        ({"config_list": []}, "quantization.config_list", "one or more"),
        ({"arguments": 1}, "quantization.arguments", "named values"),
        (1, "quantization", "named values"),
    ],
)
def test_wrong_options_of_a_quantization_are_named(value: object, field: str, problem: str) -> None:
    with pytest.raises(JobError, match=problem) as caught:
        quantization_of(value)

    assert caught.value.field == field


def test_a_fine_tuning_without_limits_is_refused() -> None:
    with pytest.raises(JobError, match=r"speedup.fine_tuning must have max_steps or max_epochs"):
        speedup_of({"fine_tuning": {}})


@pytest.mark.parametrize(
    ("limits", "field", "problem"),
    [
        ({"size": 1}, "budget.size", "is no field"),
        ({}, "budget", "must have one or more of metric"),
        ({"metric": "x"}, "budget.metric", "must be a number"),
        ({"size_bytes": 0}, "budget.size_bytes", "above 0"),
        ({"parameters": 5}, "budget.parameters", "needs speedup"),
    ],
)
def test_a_wrong_limit_of_a_budget_is_named(
    limits: dict[str, object], field: str, problem: str
) -> None:
    with pytest.raises(JobError, match=problem) as caught:
        budget_of(limits, speedup=False, export=True)

    assert caught.value.field == field


def test_a_limit_that_no_step_can_keep_is_refused() -> None:
    with pytest.raises(JobError, match="latency_ms needs speedup or export"):
        budget_of({"latency_ms": 8}, speedup=False, export=False)


def test_names_are_those_of_the_library() -> None:
    assert RUNTIMES == presets.RUNTIMES
    assert all(issubclass(getattr(quantization, name), Quantizer) for name in QUANTIZERS)
