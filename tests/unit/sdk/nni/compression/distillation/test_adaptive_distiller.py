import pytest
import torch
from torch import nn

from nni.compression.config.settings import ConfigListError
from nni.compression.distillation import Adaptive1dLayerwiseDistiller
from tests.unit.sdk.nni.compression.distillation.students import (
    BATCH,
    evaluator_of,
    network,
    predict,
)


def distiller_of(student: nn.Module, teacher: nn.Module) -> Adaptive1dLayerwiseDistiller:
    return Adaptive1dLayerwiseDistiller(
        student, [{"op_types": ["Linear"]}], evaluator_of(student), teacher, predict, 0.0
    )


def test_only_outputs_of_different_size_get_a_map() -> None:
    distiller = distiller_of(network(0, width=4), network(1, width=6))

    distiller.track_forward(BATCH)

    shapes = [tuple(one.shape) for one in distiller.trained_parameters()]
    assert shapes == [(6, 4), (6,)]


def test_the_run_for_the_sizes_changes_nothing_and_needs_no_gradients() -> None:
    student = nn.Sequential(*network(0, width=4), nn.BatchNorm1d(2))
    distiller = distiller_of(student, network(1, width=6))
    before = {name: one.clone() for name, one in student.state_dict().items()}

    with torch.no_grad():
        distiller.track_forward(BATCH)

    assert len(distiller.trained_parameters()) == 2
    assert all(torch.equal(one, before[name]) for name, one in student.state_dict().items())
    assert student.training


def test_student_and_map_are_trained_together() -> None:
    torch.manual_seed(0)
    student, teacher = network(0, width=4), network(1, width=6)
    losses: list[float] = []
    distiller = Adaptive1dLayerwiseDistiller(
        student,
        [{"op_names": ["0"]}],
        evaluator_of(student, losses=losses),
        teacher,
        predict,
        origin_loss_lambda=0,
    )
    distiller.track_forward(BATCH)
    weight, _ = distiller.trained_parameters()
    own = student.get_parameter("0.weight")
    before = weight.detach().clone(), own.detach().clone()

    distiller.compress(max_steps=60)

    assert not torch.equal(weight, before[0])
    assert not torch.equal(own, before[1])
    assert losses[-1] < 0.2 * losses[0]


def test_sizes_must_be_known_before_the_training() -> None:
    distiller = distiller_of(network(0), network(1))

    with pytest.raises(RuntimeError, match=r"call track_forward\(example inputs\) before"):
        distiller.compress(max_steps=1)

    distiller.track_forward(BATCH)
    assert isinstance(distiller.compress(max_steps=1), nn.Module)


def test_several_links_are_refused() -> None:
    student = network(0)
    config_list = [{"op_names": ["0"], "link": ["0", "2"]}]

    with pytest.raises(ConfigListError, match=r"links 0 to 0, 2; .* one link for each output"):
        Adaptive1dLayerwiseDistiller(
            student, config_list, evaluator_of(student), network(1), predict
        )


def test_only_the_last_dimension_may_differ() -> None:
    student, teacher = nn.Sequential(nn.Flatten(0, 1)), nn.Sequential(nn.Identity())
    trained = network(0)
    distiller = Adaptive1dLayerwiseDistiller(
        nn.Sequential(student, trained),
        [{"op_names": ["0.0"], "link": "0"}],
        evaluator_of(trained),
        teacher,
        predict,
    )

    with pytest.raises(ValueError, match=r"shape \(6, 3\), .* \(2, 3, 3\); only the last"):
        distiller.track_forward(torch.ones(2, 3, 3))


def test_tracking_leaves_no_hooks() -> None:
    student, teacher = network(0), network(1)

    distiller_of(student, teacher).track_forward(BATCH)

    modules = [*student.modules(), *teacher.modules()]
    assert not any(one._forward_hooks for one in modules)
