import pytest
from torch import Tensor, nn

from nni.compression.base.evaluator import Evaluator
from nni.compression.distillation import DynamicLayerwiseDistiller
from nni.compression.evaluators.torch_evaluator import TorchEvaluator
from nni.testing.evaluators import EvaluatorConformance
from tests.unit.sdk.nni.compression.distillation.students import (
    evaluator_of,
    network,
    predict,
)


class TestConformance(EvaluatorConformance):
    steps_per_epoch = 2

    def make(self) -> tuple[nn.Module, Evaluator]:
        student = network(0)
        plain = evaluator_of(student)

        def train(model: nn.Module, optimizer: object, step: object, *limits: int | None) -> None:
            _, max_steps, max_epochs = limits
            steps = min(one for one in (max_steps, 2 * (max_epochs or 9), 18) if one is not None)
            plain._training_func(model, optimizer, step, None, steps, None)

        evaluator = TorchEvaluator(
            train,
            plain._given_optimizers[0],
            plain._training_step,
            dummy_input=plain.get_dummy_input(),
            evaluating_func=plain._evaluating_func,
        )
        distiller = DynamicLayerwiseDistiller(
            student, [{"op_names": ["2"]}], evaluator, network(1), predict
        )
        return student, distiller.distilling_evaluator


def test_a_failed_binding_leaves_the_other_evaluator_free() -> None:
    student = network(0)
    evaluator = evaluator_of(student)
    distiller = DynamicLayerwiseDistiller(
        student, [{"op_names": ["2"]}], evaluator, network(1), predict
    )
    renamed = nn.Sequential(nn.ReLU())
    distilling = distiller.distilling_evaluator

    with pytest.raises((KeyError, ValueError)):
        distilling.bind_model(renamed)
    evaluator.bind_model(student)

    assert evaluator.bound_model is student
    assert distilling.can_evaluate
    assert isinstance(distilling.get_dummy_input(), Tensor)
