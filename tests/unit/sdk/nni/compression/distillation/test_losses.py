import pytest
import torch
from torch import Tensor

from nni.compression.distillation.losses import DistillKL, distance, kd_loss


def slow_kd_loss(student: Tensor, teacher: Tensor, temperature: float) -> float:
    """Sum p log(p / q) over classes, mean over the batch, by hand."""
    total = 0.0
    for y_student, y_teacher in zip(student.tolist(), teacher.tolist(), strict=True):
        weights = [
            [torch.tensor(one / temperature).double().exp().item() for one in logits]
            for logits in (y_student, y_teacher)
        ]
        q, p = ([one / sum(row) for one in row] for row in weights)
        total += sum(
            a * torch.tensor(a / b).double().log().item() for a, b in zip(p, q, strict=True)
        )
    return total / len(student) * temperature**2


@pytest.mark.claim("compression", 89)
def test_loss_of_the_specification() -> None:
    loss = DistillKL(4)(torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[3.0, 2.0, 1.0]]))

    assert loss.item() == pytest.approx(1.319630, abs=1e-6)


@pytest.mark.claim("compression", 89)
def test_equal_logits_have_no_loss() -> None:
    logits = torch.randn(5, 7, generator=torch.Generator().manual_seed(0))

    assert kd_loss(logits, logits).item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("temperature", [1.0, 2.0, 8.0])
def test_the_loss_is_that_of_the_definition(temperature: float) -> None:
    generator = torch.Generator().manual_seed(0)
    student, teacher = (torch.randn(4, 6, generator=generator) for _ in range(2))

    found = kd_loss(student, teacher, temperature).item()

    assert found == pytest.approx(slow_kd_loss(student, teacher, temperature), rel=1e-5)


def test_gradients_reach_the_student_only() -> None:
    student, teacher = (torch.randn(2, 3, requires_grad=True) for _ in range(2))

    torch.autograd.backward(kd_loss(student, teacher) + distance("mse", student, teacher))

    assert student.grad is not None
    assert teacher.grad is None


def test_distances_of_layers() -> None:
    student, teacher = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 2.0]])

    assert distance("mse", student, teacher).item() == 2
    assert distance("kl", student, teacher).item() == kd_loss(student, teacher, 2.0).item()


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="T must be > 0, got 0"):
        DistillKL(0)
    with pytest.raises(ValueError, match="temperature must be > 0, got -1"):
        kd_loss(torch.ones(1, 2), torch.ones(1, 2), -1)
    with pytest.raises(ValueError, match=r"of one shape, got \(1, 2\) and \(1, 3\)"):
        kd_loss(torch.ones(1, 2), torch.ones(1, 3))
