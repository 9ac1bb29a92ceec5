from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.compression import TorchEvaluator
from nni.compression.base import ModuleWrapper
from nni.compression.pruning import MovementPruner

HALF = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]


def evaluator_of(model: nn.Module, batches: Tensor, lr: float = 0.1, **seen: Any) -> TorchEvaluator:
    """Return an evaluator that descends on the sum of outputs, one row of the batches a step."""

    def train(one: nn.Module, optimizer: Any, step: Any, _schedulers: Any, *limits: Any) -> None:
        for number in range(limits[0] or 8):
            optimizer.zero_grad()
            loss = step(batches[number % len(batches)][None], one)
            seen.get("losses", []).append(float(loss.detach()))
            loss.backward()
            optimizer.step()

    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    return TorchEvaluator(train, optimizer, lambda batch, one: one(batch).sum())


def linear(weight: list[list[float]]) -> nn.Sequential:
    model = nn.Sequential(nn.Linear(len(weight[0]), len(weight), bias=False))
    model[0].weight.data = torch.tensor(weight)
    return model


def test_weights_that_move_towards_zero_are_masked_whatever_their_size() -> None:
    # The loss falls when the weights of positive inputs fall: large ones move towards zero.
    model = linear([[5.0, 4.0, 0.1, 0.2]])
    batches = torch.tensor([[1.0, 1.0, -1.0, -1.0]])

    _, masks = MovementPruner(model, HALF, evaluator_of(model, batches, 1e-3), 0, 4).compress()

    assert masks["0"]["weight"].tolist() == [[0, 0, 1, 1]]


def test_scores_sum_up_gradient_times_weight() -> None:
    model = linear([[2.0, -3.0]])
    batches = torch.tensor([[0.5, 0.25]])
    pruner = MovementPruner(model, HALF, evaluator_of(model, batches, 0.0), 1, 2)
    pruner.compress(max_steps=2)

    # Adam moves by its learning rate against the sign of a constant gradient: 1.0 and -0.75.
    scores = pruner.calculate_metrics()["0", "weight"]
    torch.testing.assert_close(scores, torch.tensor([[-0.02, 0.02]]))


def test_the_ratio_grows_cubically_between_warm_up_and_cool_down() -> None:
    model = linear([[float(place + 1) for place in range(64)]])
    pruner = MovementPruner(model, HALF, evaluator_of(model, torch.ones(1, 64), 0.0), 2, 6)
    counts: list[int] = []
    update = pruner.update_masks

    def counted(masks: Any) -> None:
        update(masks)
        counts.append(int((masks["0"]["weight"] == 0).sum()))

    pruner.update_masks = counted  # type: ignore[method-assign]
    pruner.compress(max_steps=8)

    growth = [int(32 * (1 - (1 - step / 4) ** 3)) for step in (1, 2, 3, 4)]
    assert counts == [*growth, 32, 32, 32]  # two steps of cool-down, and the final masks


def test_a_masked_weight_comes_back_when_its_score_rises() -> None:
    model = linear([[1.0, 1.0]])
    # First the gradient pushes weight 0 towards zero, then, for longer, weight 1.
    batches = torch.tensor([[1.0, -1.0]] + [[-1.0, 1.0]] * 11)
    pruner = MovementPruner(model, HALF, evaluator_of(model, batches, 0.0), 0, 1)
    history: list[list[float]] = []
    update = pruner.update_masks

    def kept(masks: Any) -> None:
        update(masks)
        history.append(masks["0"]["weight"].flatten().tolist())

    pruner.update_masks = kept  # type: ignore[method-assign]
    pruner.compress(max_steps=12)

    assert history[0] == [0, 1]
    assert history[-1] == [1, 0]
    assert model[0].module.weight[0, 0] == 1  # its value was kept


def test_masked_weights_are_zero_after_the_training() -> None:
    model = linear([[1.0, 2.0]])
    pruner = MovementPruner(model, HALF, evaluator_of(model, torch.tensor([[1.0, -1.0]])), 0, 2)
    pruner.compress()

    model(torch.ones(1, 2))

    assert model[0].module.weight[0, 0] == 0


def test_weights_that_were_masked_before_stay_masked() -> None:
    model = linear([[1.0, 1.0]])
    pruner = MovementPruner(model, HALF, evaluator_of(model, torch.tensor([[1.0, -1.0]])), 0, 2)
    pruner.update_masks({"0": {"weight": torch.tensor([[1.0, 0.0]])}})

    _, masks = pruner.compress()

    assert masks["0"]["weight"].tolist() == [[1, 0]]


def test_blocks_have_one_score() -> None:
    model = linear([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    entry = {**HALF[0], "granularity": "out_channel"}
    with torch.no_grad():
        model[0].weight[:2] *= -1  # gradient x weight is negative in the first two rows

    pruner = MovementPruner(model, [entry], evaluator_of(model, torch.ones(1, 2), 1e-3), 0, 2)
    _, masks = pruner.compress()

    assert pruner.calculate_metrics()["0", "weight"].shape == (4, 1)
    assert masks["0"]["weight"][:, 0].tolist() == [1, 1, 0, 0]


def test_a_threshold_is_of_the_sigmoid_and_the_loss_grows_by_the_mean() -> None:
    model = linear([[1.0, 1.0]])
    losses: list[float] = []
    config_list = [{"op_types": ["Linear"], "sparse_threshold": 0.5}]
    evaluator = evaluator_of(model, torch.tensor([[1.0, -1.0]]), 0.0, losses=losses)
    pruner = MovementPruner(model, config_list, evaluator, 1, 2, regular_scale=2.0)

    _, masks = pruner.compress(max_steps=3)

    scores = pruner.calculate_metrics()["0", "weight"]
    assert scores[0, 0] < 0.5 < scores[0, 1]
    assert masks["0"]["weight"].tolist() == [[0, 1]]
    assert losses[0] == losses[1] == 0  # warm-up
    # One weight is masked: the output is -1; sigmoids near 0.5 are added twice.
    assert losses[2] == pytest.approx(-1 + 2 * 0.5, abs=1e-2)


def test_the_training_must_reach_the_cool_down() -> None:
    model = linear([[1.0, 1.0]])
    pruner = MovementPruner(model, HALF, evaluator_of(model, torch.ones(1, 2)), 0, 10)

    with pytest.raises(ValueError, match="max_steps must be >= cooldown_begin_step, 10, got 9"):
        pruner.compress(max_steps=9)
    with pytest.raises(RuntimeError, match="made 8 optimizer steps, but cooldown_begin_step is 10"):
        pruner.compress(max_epochs=1)


def test_nothing_selected_masks_nothing() -> None:
    model = linear([[1.0, 1.0]])
    config_list = [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}]

    _, masks = MovementPruner(
        model, config_list, evaluator_of(model, torch.ones(1, 2)), 0, 1
    ).compress()

    assert masks == {}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"evaluator": None}, TypeError, "evaluator must be an Evaluator"),
        ({"warmup_step": -1}, ValueError, "warmup_step must be >= 1, got -1"),
        ({"warmup_step": 0.5}, TypeError, "warmup_step must be an int"),
        ({"cooldown_begin_step": 0}, ValueError, "cooldown_begin_step must be >= 1, got 0"),
        ({"warmup_step": 4}, ValueError, "warmup_step must be < cooldown_begin_step, got 4 and 4"),
        ({"regular_scale": -1}, ValueError, "regular_scale must be a number >= 0, got -1"),
    ],
)
def test_wrong_arguments_are_refused(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    model = linear([[1.0, 1.0]])
    given = {
        "evaluator": evaluator_of(model, torch.ones(1, 2)), "warmup_step": 0,
        "cooldown_begin_step": 4, **arguments,
    }  # fmt: skip

    with pytest.raises(error, match=message):
        MovementPruner(model, HALF, **given)
    assert not any(isinstance(one, ModuleWrapper) for one in model.modules())
