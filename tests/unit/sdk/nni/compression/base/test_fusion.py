"""Pruner, quantizer and distiller of one model, which share its wrappers and a training."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD

from nni.compression.base.fusion import fused_arguments
from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.config.settings import ConfigListError
from nni.compression.distillation import DynamicLayerwiseDistiller
from nni.compression.distillation.losses import distance
from nni.compression.evaluators.torch_evaluator import TorchEvaluator
from nni.compression.pruning import AGPPruner, L1NormPruner, LevelPruner, SlimPruner
from nni.compression.quantization import LsqQuantizer, PtqQuantizer, QATQuantizer
from nni.compression.speedup import ModelSpeedup

BATCH = torch.eye(4)
PRUNED = [{"op_types": ["Linear"], "sparse_ratio": 0.5, "op_names": ["0"]}]
QUANTIZED = [{"op_types": ["Linear"], "target_names": ["weight"], "quant_dtype": "int4"}]
COMPARED = [{"op_names": ["2"]}]


def network(seed: int = 0) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def loss_of(batch: Tensor, model: nn.Module) -> Tensor:
    loss: Tensor = model(batch).square().mean()
    return loss


def evaluator_of(
    model: nn.Module, losses: list[float] | None = None, step: Any = loss_of
) -> TorchEvaluator:
    def train(one: nn.Module, optimizer: SGD, training_step: Any, *limits: Any) -> None:
        for _ in range(limits[1]):
            optimizer.zero_grad()
            loss = training_step(BATCH, one)
            if losses is not None:
                losses.append(loss.item())
            loss.backward()
            optimizer.step()

    sgd = SGD(model.parameters(), lr=0.1, momentum=0.9)
    return TorchEvaluator(
        train, sgd, step, evaluating_func=lambda one: float(one(BATCH).sum().item())
    )


def teach(batch: Tensor, teacher: nn.Module) -> object:
    return teacher(batch)


def distiller_of(compressor: Any, **more: Any) -> DynamicLayerwiseDistiller:
    return DynamicLayerwiseDistiller.from_compressor(
        compressor, COMPARED, network(1), teach, **more
    )


def test_one_training_prunes_quantizes_and_distils() -> None:
    losses: list[float] = []
    model = network()
    inner = L1NormPruner(model, PRUNED, evaluator_of(model, losses))
    schedule = AGPPruner(inner, interval_steps=2, total_times=2)
    quantizer = QATQuantizer.from_compressor(schedule, QUANTIZED)
    distiller = distiller_of(quantizer, origin_loss_lambda=0.5)
    own = loss_of(BATCH, model).item()
    away = distance("mse", model(BATCH), network(1)(BATCH)).item()

    compressed = distiller.compress(max_steps=6)

    assert compressed is model
    assert len(losses) == 6
    assert losses[0] == pytest.approx(0.5 * own + away)
    masks = schedule.get_masks()
    assert masks["0"]["bias"].sum() == 4
    assert quantizer.get_calibration_config()["0"]["_input_0"].keys() == {
        "tracked_min",
        "tracked_max",
    }
    weight = model[0].weight
    assert not weight[masks["0"]["weight"] == 0].any()
    assert len(weight.unique()) <= 16


def test_the_result_is_sped_up_and_exported(tmp_path: Path) -> None:
    model = network()
    pruner = L1NormPruner(model, PRUNED, evaluator_of(model))
    quantizer = QATQuantizer.from_compressor(pruner, QUANTIZED)
    distiller_of(quantizer).compress(max_steps=3)

    calibration = quantizer.export_model(tmp_path / "model.pt")
    saved = torch.load(tmp_path / "model.pt", weights_only=True)
    masks = pruner.get_masks()

    assert not any(isinstance(one, ModuleWrapper) for one in model.modules())
    assert list(saved) == list(network().state_dict())
    assert not saved["0.weight"][masks["0"]["weight"] == 0].any()
    assert calibration["2"]["weight"]["quant_dtype"] == "int4"
    assert ModelSpeedup(model, BATCH, masks).speedup_model()[0].out_features == 4


def test_a_module_of_two_compressors_has_one_wrapper() -> None:
    model = network()
    pruner = L1NormPruner(model, PRUNED)
    quantizer = QATQuantizer.from_compressor(pruner, QUANTIZED)

    wrapper = model[0]

    assert pruner.get_modules_wrapper() == {"0": wrapper}
    assert quantizer.get_modules_wrapper() == {"0": wrapper, "2": model[2]}
    assert pruner.is_wrapped
    assert quantizer.is_wrapped


def test_unwrapping_one_unwraps_all_and_parameters_are_the_same() -> None:
    model = network()
    modules, parameters = list(model), list(model.parameters())
    pruner = L1NormPruner(model, PRUNED, evaluator_of(model))
    quantizer = QATQuantizer.from_compressor(pruner, QUANTIZED)
    distiller = distiller_of(quantizer)

    for one in (pruner, quantizer, distiller):
        assert one.unwrap_model() is model
        assert list(model) == modules
        assert not pruner.is_wrapped
        assert one.wrap_model() is model
        assert isinstance(model[2], ModuleWrapper)
    distiller.unwrap_model()

    assert all(a is b for a, b in zip(model.parameters(), parameters, strict=True))


def test_a_pruner_may_follow_a_quantizer() -> None:
    model = network()
    quantizer = LsqQuantizer(model, QUANTIZED, evaluator_of(model))
    pruner = L1NormPruner.from_compressor(quantizer, PRUNED)
    scales = [one.scale.clone() for _, one in quantizer.target_quantizers()]

    _, masks = pruner.compress(max_steps=3)

    assert masks["0"]["bias"].sum() == 4
    assert not model[0].weight[masks["0"]["weight"] == 0].any()
    now = [one.scale for _, one in quantizer.target_quantizers()]
    assert any(not torch.equal(a, b) for a, b in zip(scales, now, strict=True))


def test_masks_that_a_pruner_has_are_kept() -> None:
    model = network()
    pruner = L1NormPruner(model, PRUNED, evaluator_of(model))
    mask = torch.ones(8)
    mask[7] = 0
    pruner.update_masks({"0": {"bias": mask}})

    QATQuantizer.from_compressor(pruner, QUANTIZED).compress(max_steps=2)

    assert torch.equal(pruner.get_masks()["0"]["bias"], mask)
    assert model[0].module.bias[7].item() == 0


def test_ranges_are_observed_with_the_masks() -> None:
    model = network()
    pruner = LevelPruner(model, PRUNED, evaluator_of(model))
    pruner.compress()
    quantizer = PtqQuantizer.from_compressor(pruner, QUANTIZED)

    _, calibration = quantizer.compress()

    assert calibration["0"]["weight"]["quant_bits"] == 4
    assert (model[0].weight == 0).sum() >= 16


def test_a_short_training_is_an_error_of_the_schedule() -> None:
    model = network()
    inner = L1NormPruner(model, PRUNED, evaluator_of(model))
    schedule = AGPPruner(inner, interval_steps=2, total_times=2)
    distiller = distiller_of(schedule)

    with pytest.raises(RuntimeError, match="the training made 3 optimizer steps, but 2 updates"):
        distiller.compress(max_steps=3)


def test_an_error_of_a_training_leaves_no_hooks() -> None:
    def fail(batch: Tensor, model: nn.Module) -> Tensor:
        raise ArithmeticError

    model = network()
    inner = L1NormPruner(model, PRUNED, evaluator_of(model, step=fail))
    distiller = distiller_of(AGPPruner(inner, interval_steps=1, total_times=1))

    for _ in range(2):
        with pytest.raises(ArithmeticError):
            distiller.compress(max_steps=1)
    assert not any(one._forward_hooks for one in model.modules())


@pytest.mark.parametrize(
    ("made", "config_list", "problem"),
    [
        (LevelPruner, PRUNED, "selects 0, which is pruned by another compressor already"),
        (QATQuantizer, [{"op_names": ["0"], "weird": 1}], "weird"),
    ],
)
def test_a_refused_configuration_leaves_the_model_as_it_was(
    made: Any, config_list: Any, problem: str
) -> None:
    model = network()
    pruner = L1NormPruner(model, PRUNED)
    modules = dict(model.named_modules())

    with pytest.raises(ConfigListError, match=problem):
        made.from_compressor(pruner, config_list)

    assert dict(model.named_modules()) == modules
    assert pruner.is_wrapped
    assert list(pruner.get_modules_wrapper()["0"].quantizers) == []


def test_a_module_is_quantized_once() -> None:
    quantizer = QATQuantizer(network(), QUANTIZED)

    with pytest.raises(ConfigListError, match="is quantized by another compressor already"):
        LsqQuantizer.from_compressor(quantizer, QUANTIZED)


def test_a_pruned_batch_norm_is_not_folded() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2))
    evaluator = evaluator_of(model)
    pruner = SlimPruner(model, [{"op_types": ["BatchNorm2d"], "sparse_ratio": 0.5}], evaluator, 1)
    config_list = [{"op_types": ["Conv2d"], "target_names": ["weight"], "fuse_names": [("0", "1")]}]

    with pytest.raises(ConfigListError, match="selects 1, which is fused with the layer before"):
        QATQuantizer.from_compressor(pruner, config_list)


def test_a_fused_compressor_is_not_reset() -> None:
    pruner = L1NormPruner(network(), PRUNED)
    quantizer = QATQuantizer.from_compressor(pruner, QUANTIZED)

    for one in (pruner, quantizer):
        with pytest.raises(RuntimeError, match="is fused with another compressor of its model"):
            one.reset(network(), PRUNED)


def test_an_evaluator_of_its_own_trains() -> None:
    model, losses = network(), list[float]()
    pruner = L1NormPruner(model, PRUNED, evaluator_of(model))
    quantizer = QATQuantizer.from_compressor(
        pruner, QUANTIZED, 3, evaluator=evaluator_of(model, losses)
    )

    quantizer.compress(max_steps=4)

    assert len(losses) == 4
    assert quantizer.quant_start_step == 3


def test_arguments_follow_those_of_the_constructor() -> None:
    assert fused_arguments(SlimPruner, None, [5], {"mode": "normal"}) == {
        "evaluator": None,
        "training_steps": 5,
        "mode": "normal",
    }
    with pytest.raises(TypeError, match=r"L1NormPruner\.from_compressor takes mode, dummy_input"):
        fused_arguments(L1NormPruner, None, [1, 2, 3], {})
    with pytest.raises(TypeError, match=r"L1NormPruner\.from_compressor got mode twice"):
        fused_arguments(L1NormPruner, None, ["normal"], {"mode": "normal"})
