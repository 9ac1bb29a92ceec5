"""Traces of single modules."""

from typing import Any

import pytest
from torch import Tensor, nn

from nni.nas.space import IllegalGraphError
from nni.nas.space.pytorch.tracing import CallShape, TrainingFlag, trace_calls
from tests.unit.sdk.nni.nas.graph_models import Branch, Branching, EverySpace, ModeBranching


class Several(nn.Module):
    """Module of any number of inputs."""

    def forward(self, *inputs: Tensor, weight: Tensor | None = None) -> Any:
        total = sum(inputs[1:], inputs[0])
        return total if weight is None else total * weight


def inputs_of(module: nn.Module, shape: CallShape | None) -> list[str]:
    return [node.target for node in trace_calls(module, "m", shape).nodes if node.op[0] == "p"]


def test_modules_inside_are_single_calls() -> None:
    graph = trace_calls(EverySpace(), "m", None)

    called = [node.target for node in graph.nodes if node.op == "call_module"]
    assert called == ["stem", "layer", "body", "branch", "skip", "cutoff"]


@pytest.mark.parametrize(
    ("shape", "names"),
    [
        (None, ["inputs"]),
        (CallShape(1), ["inputs"]),
        (CallShape(2), ["inputs", "scale"]),
        (CallShape(1, ("shift",)), ["inputs", "shift"]),
    ],
)
def test_arguments_that_are_not_passed_have_their_defaults(
    shape: CallShape | None, names: list[str]
) -> None:
    assert inputs_of(Branch(4), shape) == names


def test_any_number_of_arguments_is_traced() -> None:
    assert inputs_of(Several(), CallShape(3, ("weight",))) == [
        *("inputs_0", "inputs_1", "inputs_2", "weight")
    ]


def test_mode_is_kept_as_such() -> None:
    graph = trace_calls(EverySpace(), "m", None)

    (dropout,) = [node for node in graph.nodes if node.name.startswith("dropout")]
    assert isinstance(dropout.kwargs["training"], TrainingFlag)


def test_module_has_its_mode_again_after_the_trace() -> None:
    module = EverySpace().eval()

    trace_calls(module, "m", None)

    assert module.training is False


@pytest.mark.parametrize("module", [Branching(), ModeBranching()])
def test_branch_on_values_or_mode_is_refused(module: nn.Module) -> None:
    with pytest.raises(IllegalGraphError, match="decorate the class with"):
        trace_calls(module, "m", None)
