from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD
from torch.optim.lr_scheduler import StepLR

import nni
from nni.compression.evaluators.torch_evaluator import TorchEvaluator
from nni.compression.pruning import L1NormPruner

BATCH = torch.ones(4, 2)


def training_step(batch: Tensor, model: nn.Module) -> Tensor:
    loss: Tensor = model(batch).square().mean()
    return loss


def training_func(
    model: nn.Module,
    optimizer: Any,
    step: Callable[..., Any],
    _lr_scheduler: Any = None,
    max_steps: int | None = None,
    max_epochs: int | None = None,
) -> None:
    for _ in range(max_steps or 5 * (max_epochs or 1)):
        optimizer.zero_grad()
        loss = step(BATCH, model)
        loss = loss["loss"] if isinstance(loss, dict) else loss
        (loss[0] if isinstance(loss, tuple) else loss).backward()
        optimizer.step()


def model_and_evaluator(
    step: Callable[..., Any] = training_step, **kwargs: Any
) -> tuple[nn.Module, TorchEvaluator]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 1))
    optimizer = nni.trace(SGD)(model.parameters(), lr=0.01, momentum=0.9)
    return model, TorchEvaluator(training_func, optimizer, step, **kwargs)


def test_a_bound_model_is_trained_and_the_given_optimizer_untouched() -> None:
    model, evaluator = model_and_evaluator()
    before = training_step(BATCH, model)

    evaluator.bind_model(model)
    evaluator.train(max_steps=3)
    evaluator.finetune()
    evaluator.unbind_model()

    assert training_step(BATCH, model) < before
    assert not evaluator._given_optimizers[0].state


def test_each_binding_starts_a_new_optimizer() -> None:
    model, evaluator = model_and_evaluator()
    start = {name: value.clone() for name, value in model.state_dict().items()}
    results = []

    for _ in range(2):
        model.load_state_dict(start)
        evaluator.bind_model(model)
        evaluator.train(max_steps=3)
        evaluator.unbind_model()
        results.append([value.clone() for value in model.state_dict().values()])

    assert all(map(torch.equal, *results))


def test_a_wrapped_model_is_trained_without_moving_masked_weights() -> None:
    model, evaluator = model_and_evaluator()
    pruner = L1NormPruner(model, [{"op_names": ["0"], "sparse_ratio": 0.5}], evaluator)

    _, masks = pruner.compress(max_steps=3)

    weight = pruner.get_modules_wrapper()["0"].parameter("weight")
    assert not weight[masks["0"]["weight"] == 0].any()
    assert weight.any()
    with pytest.raises(RuntimeError, match="has no model"):
        evaluator.train()


@pytest.mark.parametrize(
    "form", [lambda loss: loss, lambda loss: (loss, 1), lambda loss: {"loss": loss}]
)
def test_a_patched_loss_is_what_is_minimised(form: Callable[[Tensor], Any]) -> None:
    model, evaluator = model_and_evaluator(lambda batch, one: form(training_step(batch, one)))
    before = [one.detach().clone() for one in model.parameters()]
    evaluator.bind_model(model)

    evaluator.patch_loss(lambda loss, _: loss * 0)
    evaluator.train(max_steps=2)
    unchanged = all(map(torch.equal, before, model.parameters()))
    evaluator.revert_loss()
    evaluator.train(max_steps=1)

    assert unchanged
    assert not all(map(torch.equal, before, model.parameters()))


def test_tasks_run_around_each_step_until_the_model_is_unbound() -> None:
    model, evaluator = model_and_evaluator()
    calls: list[str] = []
    evaluator.bind_model(model)
    evaluator.patch_optimizer_step(
        [lambda: calls.append("before")], [lambda: calls.append("after")]
    )
    evaluator.register_hooks([model.register_forward_hook(lambda *_: calls.append("forward"))])

    evaluator.train(max_steps=2)
    evaluator.remove_hooks()
    evaluator.revert_optimizer_step()
    evaluator.train(max_steps=1)

    assert calls == ["forward", "before", "after"] * 2


def test_parameters_of_an_algorithm_join_the_optimizer() -> None:
    model, evaluator = model_and_evaluator(lambda batch, one: training_step(batch, one) + extra * 3)
    extra = nn.Parameter(torch.tensor(1.0))
    evaluator.bind_model(model)

    evaluator.patch_optim_param_group({"params": [extra], "lr": 0.1, "momentum": 0.0})
    evaluator.train(max_steps=1)

    assert extra.item() == pytest.approx(0.7)


def test_schedulers_are_built_for_their_own_optimizer() -> None:
    seen: list[tuple[bool, bool]] = []
    model = nn.Linear(2, 1)
    one, other = (SGD([parameter], lr=0.1) for parameter in model.parameters())
    schedulers = [nni.trace(StepLR)(other, 1), nni.trace(StepLR)(one, 1)]

    def look(_model: object, optimizers: Any, _step: object, made: Any, *_: object) -> None:
        seen.append((made[0].optimizer is optimizers[1], made[1].optimizer is optimizers[0]))

    evaluator = TorchEvaluator(look, [one, other], training_step, schedulers)
    evaluator.bind_model(model)
    evaluator.train()

    assert seen == [(True, True)]


@pytest.mark.parametrize("result", [0.5, {"default": 0.5, "loss": 3}])
def test_an_evaluation_is_a_number(result: object) -> None:
    model, evaluator = model_and_evaluator(evaluating_func=lambda _: result, dummy_input=BATCH)
    evaluator.bind_model(model)

    assert evaluator.evaluate() == 0.5
    assert evaluator.get_dummy_input() is BATCH


def test_wrong_uses_are_refused() -> None:
    model, evaluator = model_and_evaluator(evaluating_func=lambda _: {"accuracy": 1})
    evaluator.bind_model(model)

    with pytest.raises(KeyError, match="must have the key 'default', got 'accuracy'"):
        evaluator.evaluate()
    with pytest.raises(RuntimeError, match=r"call unbind_model\(\) first"):
        evaluator.bind_model(model)
    with pytest.raises(TypeError, match="optimizers must be a Optimizer or a list"):
        TorchEvaluator(training_func, 3, training_step)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="optimizers must hold only Optimizer"):
        TorchEvaluator(training_func, [3], training_step)  # type: ignore[list-item]
    one, other = (SGD(model.parameters(), lr=0.1) for _ in range(2))
    with pytest.raises(ValueError, match="lr_schedulers must be of the given optimizers, got a St"):
        TorchEvaluator(training_func, one, training_step, StepLR(other, 1))


def test_an_evaluation_needs_its_function() -> None:
    model, evaluator = model_and_evaluator()
    evaluator.bind_model(model)

    with pytest.raises(RuntimeError, match="has no evaluating_func; pass one"):
        evaluator.evaluate()
