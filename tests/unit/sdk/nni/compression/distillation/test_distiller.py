from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.compression.base.evaluator import Evaluator
from nni.compression.config.distillation_settings import DistillationSettings
from nni.compression.config.settings import ConfigListError
from nni.compression.distillation import Distiller, DynamicLayerwiseDistiller
from nni.compression.pruning import LevelPruner, LinearPruner
from tests.unit.sdk.nni.compression.distillation.students import (
    BATCH,
    evaluator_of,
    mean_square,
    network,
    predict,
)

CONFIG_LIST = [{"op_names": ["2"]}]


class AbsoluteDistiller(Distiller):
    """Distiller of one's own, which keeps what it compared."""

    calls: list[tuple[tuple[str, str], tuple[int, ...]]]

    def output_distance(
        self,
        target: tuple[str, str],
        settings: DistillationSettings,
        student: Tensor,
        teachers: Mapping[str, Tensor],
    ) -> Tensor:
        (teacher,) = teachers.values()
        self.calls = [*vars(self).get("calls", []), (target, tuple(student.shape))]
        return (student - teacher).abs().sum()


def arguments(**changed: Any) -> dict[str, Any]:
    student = network(0)
    given = {
        "model": student,
        "config_list": CONFIG_LIST,
        "evaluator": evaluator_of(student),
        "teacher_model": network(1),
        "teacher_predict": predict,
    }
    return {**given, **changed}


def test_a_distiller_of_ones_own_decides_about_the_distance() -> None:
    losses: list[float] = []
    given = arguments(origin_loss_lambda=0)
    student, teacher = given["model"], given["teacher_model"]
    given["evaluator"] = evaluator_of(student, losses=losses)
    wanted = (student(BATCH) - teacher(BATCH)).abs().sum().item()
    distiller = AbsoluteDistiller(**given)

    distiller.compress(max_steps=1)

    assert losses == [pytest.approx(wanted)]
    assert distiller.calls == [(("2", "_output_"), (3, 2))]


def test_the_teacher_is_evaluated_and_left_as_it_was() -> None:
    teacher = nn.Sequential(*network(1), nn.Dropout(0.5))
    teacher[0].eval()
    before = {name: one.clone() for name, one in teacher.state_dict().items()}
    modes: list[bool] = []

    def watch(batch: Tensor, model: nn.Module) -> None:
        modes.extend([model.training, torch.is_grad_enabled()])
        model(batch)

    DynamicLayerwiseDistiller(**arguments(teacher_model=teacher, teacher_predict=watch)).compress(2)

    assert modes == [False, False] * 2
    assert [one.training for one in teacher] == [False, True, True, True]
    assert all(torch.equal(one, before[name]) for name, one in teacher.state_dict().items())
    assert not any(one._forward_hooks for one in teacher.modules())
    assert all(one.grad is None for one in teacher.parameters())


def test_a_module_that_is_called_twice_is_compared_twice() -> None:
    def twice(batch: Tensor, model: nn.Module) -> Tensor:
        return mean_square(batch, model) + mean_square(2 * batch, model)

    def predict_twice(batch: Tensor, model: nn.Module) -> None:
        model(batch)
        model(2 * batch)

    losses: list[float] = []
    given = arguments(origin_loss_lambda=0, teacher_predict=predict_twice)
    student, teacher = given["model"], given["teacher_model"]
    given["evaluator"] = evaluator_of(student, twice, losses)
    distances = [
        nn.functional.mse_loss(student(one), teacher(one)).item() for one in (BATCH, 2 * BATCH)
    ]

    DynamicLayerwiseDistiller(**given).compress(max_steps=1)

    assert losses == [pytest.approx(sum(distances) / 2)]


def test_calls_of_student_and_teacher_must_agree() -> None:
    def predict_twice(batch: Tensor, model: nn.Module) -> None:
        model(batch)
        model(batch)

    distiller = DynamicLayerwiseDistiller(**arguments(teacher_predict=predict_twice))

    with pytest.raises(RuntimeError, match=r"2 of the student was called 1 times.*teacher 2 times"):
        distiller.compress(max_steps=1)


def test_modules_that_are_not_called_are_named() -> None:
    lazy = DynamicLayerwiseDistiller(**arguments(teacher_predict=lambda *_: None))

    with pytest.raises(RuntimeError, match="2 was not called in teacher_predict"):
        lazy.compress(max_steps=1)


def test_a_pruned_student_keeps_its_masks() -> None:
    given = arguments()
    student = given["model"]
    pruner = LevelPruner(student, [{"op_types": ["Linear"], "sparse_ratio": 0.5}])
    _, masks = pruner.compress()

    DynamicLayerwiseDistiller(**given).compress(max_steps=3)

    for name, wrapper in pruner.get_modules_wrapper().items():
        assert not wrapper.parameter("weight")[masks[name]["weight"] == 0].any()


def test_a_schedule_prunes_and_distils_at_once() -> None:
    given = arguments()
    student, evaluator = given["model"], given["evaluator"]
    teachers: list[object] = []

    def count(batch: Tensor, model: nn.Module) -> None:
        teachers.append(model(batch))

    distiller = DynamicLayerwiseDistiller(**{**given, "teacher_predict": count})
    config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]
    inner = LevelPruner(student, config_list, distiller.distilling_evaluator)
    _, masks = LinearPruner(inner, interval_steps=1, total_times=2).compress(max_steps=3)

    assert [float(targets["weight"].mean()) for targets in masks.values()] == [0.5, 0.5]
    assert len(teachers) == 3
    assert isinstance(evaluator, Evaluator)


@pytest.mark.parametrize(
    ("changed", "error", "problem"),
    [
        ({"model": 3}, TypeError, "model must be a torch.nn.Module, got int"),
        ({"teacher_model": None}, TypeError, "teacher_model must be a torch.nn.Module"),
        ({"evaluator": None}, TypeError, "evaluator must be an Evaluator"),
        ({"teacher_predict": 3}, TypeError, "teacher_predict must be a function, got 3"),
        ({"origin_loss_lambda": -1}, ConfigListError, "origin_loss_lambda must be a number"),
        ({"config_list": [{"op_names": ["2"], "link": "9"}]}, ConfigListError, "teacher lacks"),
    ],
)
def test_wrong_arguments_are_refused(
    changed: dict[str, Any], error: type[Exception], problem: str
) -> None:
    with pytest.raises(error, match=problem):
        DynamicLayerwiseDistiller(**arguments(**changed))


def test_student_and_teacher_must_be_different_models() -> None:
    given = arguments()
    student = given["model"]

    for teacher in (student, nn.Sequential(*student)):
        with pytest.raises(ValueError, match=r"must be different models .* copy\.deepcopy"):
            DynamicLayerwiseDistiller(**{**given, "teacher_model": teacher})
