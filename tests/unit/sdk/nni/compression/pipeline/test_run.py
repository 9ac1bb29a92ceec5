"""Runs of pipelines."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from nni.compression.pipeline.budget import Budget, BudgetError
from nni.compression.pipeline.run import StepReport, run_pipeline
from nni.compression.pipeline.steps import FineTuneStep, PipelineStep, PruneStep

INPUTS = torch.ones(1, 4)


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))


def evaluate(model: nn.Module) -> float:
    assert not model.training
    with torch.no_grad():
        return -float(model(INPUTS).abs().sum())


def zero_outputs(model: Any) -> None:
    nn.init.zeros_(model[3].weight)
    nn.init.zeros_(model[3].bias)


def test_each_step_is_measured_and_reported() -> None:
    model = network()
    seen: list[StepReport] = []

    result = run_pipeline(
        model, INPUTS, [PruneStep(0.5), FineTuneStep(zero_outputs)], evaluate, repeats=1,
        on_report=seen.append,
    )  # fmt: skip

    assert tuple(seen) == result.reports
    assert [one.step for one in result.reports] == ["original", "prune 0.5", "fine-tune"]
    assert [one.found.parameters for one in result.reports] == [65, 33, 33]
    assert [one.found.size_bytes for one in result.reports] == [
        4 * (65 + 16) + 8, 4 * (33 + 8) + 8, 4 * (33 + 8) + 8,
    ]  # fmt: skip
    assert result.reports[-1].found.metric == 0
    assert all(one.found.latency_ms > 0 for one in result.reports)
    assert not result.model.training
    assert str(result).splitlines()[2].startswith("prune 0.5")


def test_model_of_the_user_is_left_as_it_is() -> None:
    model = network()
    before = {key: value.clone() for key, value in model.state_dict().items()}

    run_pipeline(model, INPUTS, [FineTuneStep(zero_outputs)], evaluate, repeats=1)

    assert model.training
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


def test_metric_may_fall_before_the_training_that_mends_it() -> None:
    steps = [PruneStep(0.5), FineTuneStep(zero_outputs)]

    result = run_pipeline(network(), INPUTS, steps, evaluate, Budget(metric=0), repeats=1)

    assert result.reports[1].found.metric < 0


def test_pipeline_ends_at_the_step_where_the_budget_cannot_be_kept() -> None:
    reports: list[StepReport] = []
    steps = [PruneStep(0.25), FineTuneStep(zero_outputs)]

    with pytest.raises(BudgetError) as refusal:
        run_pipeline(
            network(), INPUTS, steps, evaluate, Budget(parameters=40), repeats=1,
            on_report=reports.append,
        )  # fmt: skip

    assert (refusal.value.step, refusal.value.found) == ("prune 0.25", 49)
    assert [one.step for one in reports] == ["original", "prune 0.25"]


def test_steps_need_names_of_their_own() -> None:
    with pytest.raises(ValueError, match="'fine-tune' twice"):
        run_pipeline(network(), INPUTS, [FineTuneStep(print), FineTuneStep(print)], evaluate)
    with pytest.raises(ValueError, match="at least one step"):
        run_pipeline(network(), INPUTS, [], evaluate)


def test_evaluation_must_give_a_number() -> None:
    with pytest.raises(TypeError, match="evaluate must return a number, got NoneType"):
        run_pipeline(network(), INPUTS, [PruneStep(0.5)], lambda _: None)  # type: ignore[arg-type,return-value] # as in the message


def test_step_must_give_a_module() -> None:
    class Nothing(PipelineStep):
        kind = "nothing"
        improves = frozenset()

        def run(self, model: nn.Module, original: nn.Module, example_inputs: object) -> Any:
            return None

    with pytest.raises(TypeError, match="step 'nothing' must return a module, got NoneType"):
        run_pipeline(network(), INPUTS, [Nothing()], evaluate, repeats=1)
