"""Models as graphs, without a framework."""

import pytest

from nni.nas.space import (
    GraphModelSpace,
    IllegalGraphError,
    ModelStatus,
    MutationSampler,
)
from nni.nas.space.graph_op import Operation
from nni.nas.space.pytorch import PytorchGraphModelSpace
from tests.unit.sdk.nni.nas.graph_models import AnchorNet, OperationMutator, linear
from tests.unit.sdk.nni.nas.space_models import FixedRate, RateEvaluator, TinySpace

TINY = {"tiny/width": 16, "tiny/activation": "tanh", "tiny/head": 0}


def two_graphs() -> GraphModelSpace:
    model = GraphModelSpace()
    root, block = model.add_graph("_model", ["x"]), model.add_graph("block", ["x"])
    root.add_node("first", Operation.new("_cell", cell_name="block"))
    inner = block.add_node("inner", "Function.torch.relu")
    inner.label, inner.python_name = "here", "body.inner"
    return model


def test_graphs_of_a_network_are_made_by_its_framework() -> None:
    assert isinstance(GraphModelSpace.from_model(TinySpace()), PytorchGraphModelSpace)


def test_nodes_of_all_graphs_are_found() -> None:
    model = two_graphs()
    inner = model.graphs["block"].hidden_nodes[0]

    assert [node.name for node in model.get_nodes()] == ["first", "inner"]
    assert model.get_nodes_by_label("here") == [inner]
    assert model.get_nodes_by_type("Function.torch.relu") == [inner]
    assert model.get_node_by_name("inner") is inner
    assert model.get_node_by_python_name("body.inner") is inner
    assert model.get_cell_nodes() == model.root_graph.hidden_nodes


def test_graph_of_the_same_name_is_refused() -> None:
    with pytest.raises(IllegalGraphError, match="has a graph of this name"):
        two_graphs().add_graph("block")


def test_model_without_an_outermost_graph_is_refused() -> None:
    with pytest.raises(IllegalGraphError, match="convert one by from_model"):
        _ = GraphModelSpace().root_graph


def test_fork_has_the_same_names_and_ids_and_is_apart() -> None:
    model = two_graphs()
    forked = model.fork()
    forked.root_graph.add_node("second", "Function.torch.relu")

    assert forked.status is ModelStatus.Mutating
    assert forked.get_nodes()[0].id == model.get_nodes()[0].id
    assert len(model.root_graph.hidden_nodes) == 1
    assert forked.new_id() not in {node.id for node in forked.get_nodes()}


@pytest.mark.claim("nas", 36)
def test_history_grows_by_one_with_each_mutation() -> None:
    base = PytorchGraphModelSpace.from_model(AnchorNet())
    mutators = [OperationMutator(name, [linear(4)]) for name in ("first", "second")]

    first = mutators[0].bind_sampler(MutationSampler()).apply(base)
    second = mutators[1].bind_sampler(MutationSampler()).apply(first)

    assert [len(model.history) for model in (base, first, second)] == [0, 1, 2]
    assert second.history == [base, first]
    assert [node.operation.params for node in base.get_nodes()] == [
        *({"label": name, "features": 4} for name in ("first", "second"))
    ]


def test_frozen_model_has_sample_status_and_evaluator_of_its_own() -> None:
    space = PytorchGraphModelSpace.from_model(TinySpace(), RateEvaluator())

    model = space.freeze({**TINY, "rate": 0.2})

    assert list(space.simplify()) == [*TINY, "rate"]
    assert model.sample == {**TINY, "rate": 0.2}
    assert model.status is ModelStatus.Frozen
    assert isinstance(model.evaluator, FixedRate)
    assert model.simplify() == {}
    with pytest.raises(RuntimeError, match="only a space whose status is initialized"):
        model.freeze(TINY)


def test_intermediate_metrics_are_those_that_were_reported() -> None:
    model = two_graphs()
    model.metrics.add_intermediate(0.5)

    assert model.intermediate_metrics == [0.5]


def test_placement_of_nodes_becomes_a_constraint() -> None:
    model = two_graphs()
    none = model.export_placement_constraint()
    for node in model.get_nodes():
        node.placement = ("host", 1)

    assert none == {"type": "None", "gpus": []}
    assert model.export_placement_constraint() == {"type": "Device", "gpus": [["host", 1]]}


def test_graphs_of_no_framework_have_no_code() -> None:
    with pytest.raises(TypeError, match="use PytorchGraphModelSpace"):
        two_graphs().to_code()
