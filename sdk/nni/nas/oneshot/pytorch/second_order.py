"""Second-order gradient of an architecture: through one virtual step of the weights.

Source: Liu, Simonyan, Yang, DARTS: Differentiable Architecture Search, 2019, equations 6 to 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

PERTURBATION = 0.01
"""Norm of the change of the weights in the finite difference, as the paper says."""

Loss = Callable[[], Tensor]


def unrolled_gradient(
    training_loss: Loss,
    validation_loss: Loss,
    logits: Sequence[Tensor],
    weights: Sequence[Tensor],
    optimizer: Optimizer,
) -> list[Tensor]:
    """Return the validation loss's gradient in the logits, through a virtual training step.

    The weights are the same afterwards.

    Args:
        training_loss: computes the loss of a training batch.
        validation_loss: computes the loss of a validation batch, with the penalty if any.
        logits: logits of the architecture.
        weights: parameters of the supernet.
        optimizer: optimizer of the weights: learning rate, weight decay and momentum are used.

    Returns:
        Gradient of each logit.
    """
    with restored(weights):
        step = virtual_step(training_loss(), weights, optimizer)
        gradients = _gradients(validation_loss(), [*logits, *weights])
    direct, vector = gradients[: len(logits)], gradients[len(logits) :]
    correction = _hessian_product(training_loss, logits, weights, vector, step)
    return [one - other for one, other in zip(direct, correction, strict=True)]


def virtual_step(loss: Tensor, weights: Sequence[Tensor], optimizer: Optimizer) -> list[float]:
    """Move weights in place by a descent step, without the optimizer; return their learning rates.

    Args:
        loss: training loss.
        weights: parameters.
        optimizer: its learning rate, weight decay and momentum are used.

    Returns:
        Learning rate of each parameter.
    """
    groups = {id(one): group for group in optimizer.param_groups for one in group["params"]}
    rates = []
    with torch.no_grad():
        for weight, gradient in zip(weights, _gradients(loss, weights), strict=True):
            group = groups.get(id(weight), {"lr": 0.0})
            buffer = optimizer.state.get(weight, {}).get("momentum_buffer")
            momentum = 0.0 if buffer is None else group.get("momentum", 0.0) * buffer
            decay = group.get("weight_decay", 0.0) * weight
            rates.append(float(group["lr"]))
            weight.sub_((gradient + momentum + decay) * group["lr"])
    return rates


def _hessian_product(
    training_loss: Loss,
    logits: Sequence[Tensor],
    weights: Sequence[Tensor],
    vector: Sequence[Tensor],
    rates: Sequence[float],
) -> list[Tensor]:
    """Return the mixed second derivative times a vector, by a symmetric finite difference."""
    scaled = [rate * one for rate, one in zip(rates, vector, strict=True)]
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(one) for one in scaled]))
    size = PERTURBATION / norm.clamp(min=torch.finfo(norm.dtype).tiny)
    sides = []
    for sign in (1.0, -1.0):
        with restored(weights):
            with torch.no_grad():
                for weight, one in zip(weights, scaled, strict=True):
                    weight.add_(one * (sign * size))
            sides.append(_gradients(training_loss(), logits))
    return [(plus - minus) / (2 * size) for plus, minus in zip(*sides, strict=True)]


def _gradients(loss: Tensor, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Return the gradient of each input; zeros for one that the loss does not depend on."""
    found: Sequence[Tensor | None] = torch.autograd.grad(loss, list(inputs), allow_unused=True)
    return [
        torch.zeros_like(one) if gradient is None else gradient
        for one, gradient in zip(inputs, found, strict=True)
    ]


@contextmanager
def restored(weights: Sequence[Tensor]) -> Iterator[None]:
    """Restore weights to their current values at the end of a block.

    Args:
        weights: parameters.

    Yields:
        Once.
    """
    before = [one.detach().clone() for one in weights]
    try:
        yield
    finally:
        with torch.no_grad():
            for weight, value in zip(weights, before, strict=True):
                weight.copy_(value)


@contextmanager
def restored_buffers(module: nn.Module) -> Iterator[None]:
    """Restore buffers, such as statistics of normalizations, to their current values afterwards.

    Args:
        module: the module.

    Yields:
        Once.
    """
    with restored(list(module.buffers())):
        yield
