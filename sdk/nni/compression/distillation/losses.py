"""Losses of knowledge distillation: functions of the outputs of student and teacher."""

from typing import Final

from torch import Tensor, nn
from torch.nn import functional

from nni.compression.config.distillation_settings import DistanceName

_LAYER_TEMPERATURE: Final = 2.0
"""Temperature of the divergence between the outputs of layers, that of NNI 3.0."""


def kd_loss(student_logits: Tensor, teacher_logits: Tensor, temperature: float = 4.0) -> Tensor:
    """Return temperature squared times the softened classes' KL divergence, averaged by batch.

    The factor keeps the size of gradients independent of the temperature.

    Args:
        student_logits: `(batch, classes)`.
        teacher_logits: `(batch, classes)`; no gradient passes it.
        temperature: what both are divided by before the softmax, > 0.

    Returns:
        A scalar, the mean over the batch; 0 for equal logits.

    Raises:
        ValueError: the temperature is out of range, or the shapes differ.

    Source: Hinton et al., Distilling the Knowledge in a Neural Network, 2015, section 2.

    Examples:
        >>> import torch
        >>> from nni.compression.distillation import kd_loss
        >>> round(kd_loss(torch.tensor([[1.0, 2, 3]]), torch.tensor([[3.0, 2, 1]])).item(), 6)
        1.31963
    """
    if not temperature > 0:
        raise ValueError(f"temperature must be > 0, got {temperature!r}")
    if student_logits.shape != teacher_logits.shape:
        raise ValueError(
            "student and teacher must give logits of one shape, got "
            f"{tuple(student_logits.shape)} and {tuple(teacher_logits.shape)}"
        )
    student = functional.log_softmax(student_logits / temperature, -1)
    teacher = functional.softmax(teacher_logits.detach() / temperature, -1)
    return functional.kl_div(student, teacher, reduction="batchmean") * temperature**2


class DistillKL(nn.Module):
    """`kd_loss` as a module, for training code that expects a criterion.

    Args:
        T: temperature, > 0.

    Raises:
        ValueError: the temperature is out of range.

    Examples:
        >>> import torch
        >>> from nni.compression.distillation import DistillKL
        >>> criterion = DistillKL(4)
        >>> round(criterion(torch.tensor([[1.0, 2, 3]]), torch.tensor([[3.0, 2, 1]])).item(), 6)
        1.31963
    """

    def __init__(self, T: float) -> None:
        super().__init__()
        if not T > 0:
            raise ValueError(f"T must be > 0, got {T!r}")
        self.temperature = float(T)

    def forward(self, student_logits: Tensor, teacher_logits: Tensor) -> Tensor:
        """Return `kd_loss` at the temperature of the module.

        Args:
            student_logits: `(batch, classes)`.
            teacher_logits: `(batch, classes)`.

        Returns:
            A scalar.
        """
        return kd_loss(student_logits, teacher_logits, self.temperature)


def distance(name: DistanceName, student: Tensor, teacher: Tensor) -> Tensor:
    """Return the mean squared error (`mse`) or `kd_loss` (`kl`) of student and detached teacher.

    Args:
        name: `mse`: mean squared difference; `kl`: divergence of the softmax over the last
            dimension at temperature 2, times 4.
        student: `(batch, ..., features)`.
        teacher: the same shape.

    Returns:
        A scalar.

    Examples:
        >>> import torch
        >>> distance("mse", torch.ones(2, 3), torch.zeros(2, 3))
        tensor(1.)
    """
    if name == "kl":
        return kd_loss(student, teacher, _LAYER_TEMPERATURE)
    return functional.mse_loss(student, teacher.detach())
