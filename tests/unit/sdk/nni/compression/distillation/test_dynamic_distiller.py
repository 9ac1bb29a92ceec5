from typing import Any

import pytest
import torch
from torch import nn

from nni.compression.distillation import DynamicLayerwiseDistiller
from nni.compression.distillation.losses import distance
from tests.unit.sdk.nni.compression.distillation.students import (
    BATCH,
    evaluator_of,
    mean_square,
    network,
    predict,
)


def distiller_of(
    student: nn.Module, teacher: nn.Module, losses: list[float], **entry: Any
) -> DynamicLayerwiseDistiller:
    config_list = [{"op_names": ["2"], **entry}]
    evaluator = evaluator_of(student, losses=losses)
    return DynamicLayerwiseDistiller(
        student, config_list, evaluator, teacher, predict, origin_loss_lambda=0.5
    )


@pytest.mark.parametrize("method", ["mse", "kl"])
def test_the_loss_is_the_weighted_sum(method: Any) -> None:
    student, teacher, losses = network(0), network(1), list[float]()
    own = mean_square(BATCH, student).item()
    away = distance(method, student(BATCH), teacher(BATCH)).item()

    distiller = distiller_of(student, teacher, losses, apply_method=method, **{"lambda": 3.0})
    distiller.compress(max_steps=1)

    assert losses == [pytest.approx(0.5 * own + 3.0 * away)]


def test_the_nearest_of_several_links_counts() -> None:
    student, losses = network(0), list[float]()
    teacher = nn.ModuleDict({"far": network(1), "near": network(0)})
    with torch.no_grad():
        teacher["near"][2].bias.add_(0.1)

    def both(batch: torch.Tensor, model: nn.ModuleDict) -> None:
        for one in model.values():
            one(batch)

    distiller = DynamicLayerwiseDistiller(
        student,
        [{"op_names": ["2"], "link": ["far.2", "near.2"]}],
        evaluator_of(student, losses=losses),
        teacher,
        both,  # type: ignore[arg-type]  # takes the teacher in its own type
        origin_loss_lambda=0,
    )
    distiller.compress(max_steps=1)

    assert losses == [pytest.approx(0.01)]


def test_a_student_approaches_its_teacher() -> None:
    student, teacher = network(0), network(1)
    with torch.no_grad():
        teacher[2].bias.add_(1)  # else both begin near each other
    before = distance("mse", student(BATCH), teacher(BATCH)).item()
    config_list = [{"op_types": ["Linear"]}]

    distiller = DynamicLayerwiseDistiller(
        student, config_list, evaluator_of(student), teacher, predict, origin_loss_lambda=0
    )
    found = distiller.compress(max_steps=100)

    assert found is student is distiller.unwrap_model()
    assert distance("mse", student(BATCH), teacher(BATCH)).item() < 0.05 * before


def test_outputs_of_another_shape_are_refused() -> None:
    student, teacher = network(0, width=4), network(1, width=6)
    distiller = DynamicLayerwiseDistiller(
        student, [{"op_names": ["0"]}], evaluator_of(student), teacher, predict
    )

    with pytest.raises(ValueError, match=r"of 0 has shape \(3, 4\), .* \(3, 6\).*Adaptive1d"):
        distiller.compress(max_steps=1)
