"""Second-order gradient of an architecture, compared with differentiation through the step."""

import pytest
import torch
from torch import Tensor, nn

from nni.nas.oneshot.pytorch.second_order import restored_buffers, unrolled_gradient, virtual_step

LOGITS = torch.tensor([0.3, -0.2], dtype=torch.float64, requires_grad=True)
WEIGHTS = torch.tensor([1.0, 2.0], dtype=torch.float64)
RATE = 0.1


def training_loss(logits: Tensor, weights: Tensor) -> Tensor:
    return ((logits.softmax(0) * weights).sum() - 0.5) ** 2 + (weights**2).sum() * logits[0]


def validation_loss(logits: Tensor, weights: Tensor) -> Tensor:
    return ((logits.softmax(0) * weights.sin()).sum() - 1.0) ** 2


def obvious(logits: Tensor, weights: Tensor, decay: float) -> Tensor:
    """Return the gradient by differentiation through one step of gradient descent."""
    weights = weights.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(training_loss(logits, weights), weights, create_graph=True)
    moved = weights - RATE * (gradient + decay * weights)
    (result,) = torch.autograd.grad(validation_loss(logits, moved), logits)
    return result


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_gradient_equals_that_through_the_virtual_step(decay: float) -> None:
    weights = nn.Parameter(WEIGHTS.clone())
    optimizer = torch.optim.SGD([weights], RATE, weight_decay=decay)

    (gradient,) = unrolled_gradient(
        lambda: training_loss(LOGITS, weights),
        lambda: validation_loss(LOGITS, weights),
        [LOGITS],
        [weights],
        optimizer,
    )

    # The finite difference is exact but for third derivatives times its step, 0.01, squared.
    torch.testing.assert_close(gradient, obvious(LOGITS, WEIGHTS, decay), rtol=1e-3, atol=1e-4)
    assert torch.equal(weights.detach(), WEIGHTS)


def test_second_order_differs_from_first() -> None:
    weights = WEIGHTS.clone().requires_grad_()
    (first,) = torch.autograd.grad(validation_loss(LOGITS, weights), LOGITS)

    assert (obvious(LOGITS, WEIGHTS, 0.0) - first).abs().max() > 0.01


def test_virtual_step_is_the_step_of_the_optimizer() -> None:
    layers = [nn.Linear(2, 1) for _ in range(2)]
    layers[1].load_state_dict(layers[0].state_dict())
    optimizers = [
        torch.optim.SGD(layer.parameters(), RATE, momentum=0.9, weight_decay=0.1)
        for layer in layers
    ]
    for layer, optimizer in zip(layers, optimizers, strict=True):  # fills the momentum
        layer(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    layers[0](torch.ones(1, 2)).sum().backward()
    optimizers[0].step()
    virtual_step(layers[1](torch.ones(1, 2)).sum(), list(layers[1].parameters()), optimizers[1])

    torch.testing.assert_close(layers[1].state_dict(), layers[0].state_dict())


def test_parameter_without_optimizer_does_not_move() -> None:
    weight = nn.Parameter(torch.ones(1))
    other = torch.optim.SGD([nn.Parameter(torch.ones(1))], RATE)

    assert virtual_step(weight.sum(), [weight], other) == [0.0]
    assert weight.item() == 1


def test_statistics_of_a_normalization_are_restored() -> None:
    layer = nn.BatchNorm1d(2)

    with restored_buffers(layer):
        layer(torch.randn(4, 2))

    assert layer.running_mean is not None
    assert layer.running_mean.tolist() == [0, 0]
