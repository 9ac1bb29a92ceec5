from dataclasses import replace

import pytest
import torch
from torch import nn

from nni.compression import TorchEvaluator
from nni.compression.job.description import JobDescription
from nni.compression.job.measuring import check_step, evaluated, model_bytes, parameter_count
from nni.compression.job.step_files import StepResult
from nni.compression.job.steps import Step
from nni.compression.pipeline import BudgetError
from tests.support.compression_job import description

RESULT = StepResult(2, "speedup", 0.5, parameters=10, flops=10, latency_ms=2.0, size_bytes=40)
SPEEDUP = Step(2, "speedup")


def job(**limits: float) -> JobDescription:
    return JobDescription.of(
        description(schedule={"iterations": 1}, budget=limits or None, export=True)
    )


def test_buffers_count_as_bytes_and_not_as_parameters() -> None:
    model = nn.BatchNorm1d(2)

    assert parameter_count(model) == 4
    assert model_bytes(model) == 4 * 4 + 2 * 2 * 4 + 8  # statistics, a counter of 64 bits


def test_the_evaluator_has_no_model_afterwards() -> None:
    model = nn.Linear(1, 1)
    sgd = torch.optim.SGD(model.parameters(), 0.1)
    evaluator = TorchEvaluator(print, sgd, print, evaluating_func=lambda model: 3)

    assert evaluated(evaluator, model) == evaluated(evaluator, model) == 3


def test_a_broken_limit_names_the_step() -> None:
    with pytest.raises(BudgetError, match=r"the step '2 \(speedup\)' flops is 10"):
        check_step(job(flops=9), SPEEDUP, RESULT)


@pytest.mark.parametrize("limits", [{}, {"flops": 10, "metric": 0.5}, {"size_bytes": 39}])
def test_a_limit_that_is_kept_or_that_a_later_step_may_mend_passes(
    limits: dict[str, float],
) -> None:
    check_step(job(**limits), SPEEDUP, RESULT)


def test_an_iteration_may_break_what_the_speedup_mends() -> None:
    pruned = replace(RESULT, number=1, kind="prune", parameters=99)

    check_step(job(parameters=10), Step(1, "prune"), pruned)
