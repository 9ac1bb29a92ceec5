from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from nni.compression.experiment import compress_and_measure
from tests.unit.sdk.nni.compression.experiment.compressed_module import Plain, Trained

HALF = {"config_list::Linear::0::sparsity": 0.5}
BITS = {"config_list::weight::Linear::::quant_bits": 4}
MEASURED = {"default", "latency_ms", "flops", "parameters", "size_bytes"}


def result_of(module: Any, name: str, quantizer: str | None = None, **more: object) -> Any:
    parameters: dict[str, object] = {"algorithm_name": {"_name": name, **HALF, **more}}
    if quantizer is not None:
        bits = {} if quantizer == "none" else BITS
        parameters["quantization_name"] = {"_name": quantizer, **bits}
    return compress_and_measure(module, parameters)


def test_without_a_dummy_input_the_metric_is_all() -> None:
    assert result_of(Plain, "level") == 16.0


def test_masks_hold_while_the_model_is_fine_tuned() -> None:
    found = result_of(Trained, "level")

    assert found["default"] == 16.0
    assert found.keys() == MEASURED


def test_masked_channels_are_removed_before_the_measurement() -> None:
    found = result_of(Trained, "l1")

    assert found["default"] == 16.0
    assert found["flops"] == 4 * 4 + 4 * 2
    assert found["size_bytes"] == 4 * found["parameters"] == 4 * (5 * 4 + 5 * 2)


@pytest.mark.parametrize("quantizer", ["qat", "lsq"])
def test_a_quantizer_follows_the_pruner_and_its_masks_hold(quantizer: str) -> None:
    counts: list[int] = []

    class Counting(Trained):
        @classmethod
        def evaluator(cls) -> Callable[[nn.Module], float]:
            def evaluate(model: nn.Module) -> float:
                inner = model.get_submodule("0.module")  # quantized while it is evaluated
                counts.append(int((inner.weight == 0).all(1).sum()))
                return 0.0

            return evaluate

    found = result_of(Counting, "l1", quantizer)

    assert counts == [4]
    assert found["parameters"] == 5 * 4 + 5 * 2
    assert found["size_bytes"] == 0.5 * (4 * 4 + 4 * 2) + 4 * (4 + 2)


def test_no_quantizer_may_be_chosen() -> None:
    assert result_of(Trained, "l1", "none")["size_bytes"] == 4 * (5 * 4 + 5 * 2)


@pytest.mark.parametrize("name", ["naive", "dorefa", "bnn"])
def test_a_model_is_only_quantized(name: str) -> None:
    bits = {"naive": 8, "dorefa": 4, "bnn": 1}[name]
    chosen = {"_name": name, "config_list::weight::Linear::::quant_bits": bits}

    found: Any = compress_and_measure(Trained, {"algorithm_name": chosen})

    assert found["size_bytes"] == bits / 8 * (4 * 8 + 8 * 2) + 4 * (8 + 2)
    assert found["flops"] == 4 * 8 + 8 * 2


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("taylorfo", {"parameter::sparsifying_training_batches": 2}),
        ("admm", {"parameter::num_iterations": 2, "parameter::epochs_per_iteration": 1}),
        ("fpgm", {"parameter::dependency_aware": True}),
        ("l2", {"parameter::global_sort": True}),
    ],
)
def test_pruners_take_the_arguments_of_nni_1_and_2(name: str, more: dict[str, Any]) -> None:
    assert result_of(Trained, name, **more)["default"] == 16.0


def test_slim_counts_steps_or_epochs() -> None:
    class Normalised(Trained):
        @classmethod
        def model(cls) -> nn.Module:
            torch.manual_seed(0)
            return nn.Sequential(nn.Conv2d(1, 4, 1), nn.BatchNorm2d(4), nn.Flatten(0, 2))

        @classmethod
        def evaluator(cls) -> Callable[[nn.Module], float]:
            return lambda model: float((model.get_submodule("1").weight == 0).sum())

        @classmethod
        def sparsifying_trainer(cls, compress_algorithm_name: str) -> Any:
            def train(model: nn.Module, optimizer: Any, criterion: Any, epoch: int) -> None:
                del epoch
                optimizer.zero_grad()
                found = model(torch.ones(2, 1, 2, 2))
                criterion(found, torch.zeros_like(found)).backward()
                optimizer.step()

            return train

        @classmethod
        def post_compress_finetuning_epochs(cls, compress_algorithm_name: str) -> int:
            return 0

        @classmethod
        def dummy_input(cls) -> None:  # type: ignore[override]  # no measurements here
            return None

    for more in ({}, {"parameter::training_batches": 2}, {"parameter::training_epochs": 1}):
        chosen = {"_name": "slim", "config_list::BatchNorm2d::::sparsity": 0.5, **more}
        assert compress_and_measure(Normalised, {"algorithm_name": chosen}) == 2.0


def test_a_mapping_of_metrics_is_kept() -> None:
    class Several(Trained):
        @classmethod
        def evaluator(cls) -> Callable[[nn.Module], Any]:
            return lambda _: {"default": 0.5, "recall": 0.25}

    found = result_of(Several, "l1")

    assert found.keys() == MEASURED | {"recall"}


def test_missing_code_is_named() -> None:
    with pytest.raises(
        ValueError,
        match=r"apoz needs sparsifying_trainer\('apoz'\), optimizer_factory\(\), criterion\(\)",
    ):
        result_of(Plain, "apoz")


def test_fine_tuning_needs_an_optimizer() -> None:
    class NoOptimizer(Trained):
        @classmethod
        def optimizer_factory(cls) -> None:  # type: ignore[override]  # what is refused
            return None

    with pytest.raises(ValueError, match=r"fine-tuning needs optimizer_factory\(\) of NoOptimizer"):
        result_of(NoOptimizer, "level")


@pytest.mark.parametrize("parameters", [{}, {"lr": 1}, {"algorithm_name": {"sparsity": 1}}])
def test_parameters_of_another_space_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="parameters must have 'algorithm_name'"):
        compress_and_measure(Plain, parameters)
