"""Networks that execute programs."""

import copy
import pickle
from typing import Any

import pytest
import torch

from nni.nas.space import GraphModelSpace
from nni.nas.space.graph_op import CHOSEN_INPUTS, InputSlot, Operation
from nni.nas.space.pytorch import PytorchGraphModelSpace
from nni.nas.space.pytorch.network import build_unit
from tests.unit.sdk.nni.nas.graph_models import SAMPLE, EverySpace


def network() -> Any:
    return PytorchGraphModelSpace.from_model(EverySpace()).freeze(SAMPLE).executable_model()


@pytest.mark.parametrize("again", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copy_computes_the_same_with_weights_of_its_own(again: Any) -> None:
    first = network().eval()
    second = again(first)
    inputs = torch.rand(2, 4)

    assert torch.equal(first(inputs), second(inputs))
    assert first.stem.weight.data_ptr() != second.stem.weight.data_ptr()


def test_network_is_named_as_its_graph() -> None:
    assert repr(network()).startswith("_model(")
    assert network().branch.graph_name == "_model__branch"


def test_calls_are_observed() -> None:
    seen: list[str] = []
    made = network()
    made.observer = lambda name, inputs, output: seen.append(name)

    made(torch.rand(2, 4))

    assert seen[:2] == ["stem", "layer"]


def test_arguments_that_are_no_inputs_of_the_graph_are_refused() -> None:
    inputs = torch.rand(2, 4)

    with pytest.raises(TypeError, match=r"takes the inputs \['inputs'\], got 2 by position"):
        network()(inputs, inputs)
    with pytest.raises(TypeError, match=r"got 1 by position and \['mask'\] by name"):
        network()(inputs, mask=inputs)
    with pytest.raises(TypeError, match="got 0 by position"):
        network()()


@pytest.mark.parametrize(
    ("reduction", "chosen", "expected"),
    [
        ("sum", [0, 2], [[5.0]]),
        ("mean", [0, 2], [[2.5]]),
        ("concat", [0, 2], [[1.0, 4.0]]),
        ("sum", [1], [[2.0]]),
        ("sum", [], None),
        ("none", [0, 1], [[[1.0]], [[2.0]]]),
    ],
)
def test_chosen_inputs_are_reduced(reduction: str, chosen: list[int], expected: object) -> None:
    model = PytorchGraphModelSpace()
    graph = model.add_graph("_model", ["a", "b", "c"])
    parameters = {"chosen": chosen, "reduction": reduction}
    node = graph.add_node("pick", CHOSEN_INPUTS, parameters)
    for slot in range(3):
        graph.add_edge((graph.input_node, slot), (node, slot))
    graph.add_edge((node, None), (graph.output_node, None))
    node.call = {"args": [[InputSlot(0), InputSlot(1), InputSlot(2)]], "kwargs": {}}
    output = model.build_model()(*(torch.tensor([[value]]) for value in (1.0, 2.0, 4.0)))

    found = [one.tolist() for one in output] if isinstance(output, list) else output
    assert (found.tolist() if isinstance(found, torch.Tensor) else found) == expected


def test_operation_of_no_framework_is_refused() -> None:
    with pytest.raises(TypeError, match="an operation of type '_special' cannot be executed"):
        build_unit(Operation.new("_special"))
    with pytest.raises(TypeError, match="a graph of no framework cannot be executed"):
        GraphModelSpace().build_model()
