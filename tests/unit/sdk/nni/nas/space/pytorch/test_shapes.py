"""Shapes of tensors in the attributes of nodes."""

import torch

from nni.nas.space.pytorch import PytorchGraphModelSpace
from nni.nas.space.pytorch.shapes import add_shapes
from tests.unit.sdk.nni.nas.graph_models import SAMPLE, EverySpace


def test_nodes_of_all_graphs_get_shapes() -> None:
    model = PytorchGraphModelSpace.from_model(EverySpace()).freeze({**SAMPLE, "every/skip": [0, 1]})
    # A branch on values cannot be decided without any: shapes need a network without one.
    cutoff = model.get_node_by_name("cutoff")
    assert cutoff is not None
    cutoff.update_operation("__torch__.torch.nn.ReLU")

    add_shapes(model, model.programs(), [3, 4])

    inner = model.get_node_by_name("branch.inner")
    assert inner is not None
    assert inner.operation.attributes == {"input_shape": [[3, 4]], "output_shape": [[3, 4]]}
    skip = model.get_node_by_name("skip")
    assert skip is not None
    assert skip.operation.attributes["input_shape"] == [[3, 4]] * 3


def test_nothing_is_computed() -> None:
    huge = 10**7
    model = PytorchGraphModelSpace.from_model(torch.nn.Sequential(torch.nn.ReLU()))
    model.root_graph.hidden_nodes[0].update_operation(
        "__torch__.torch.nn.Linear", {"in_features": huge, "out_features": huge}
    )

    add_shapes(model, model.programs(), [1, huge])

    assert model.get_nodes()[0].operation.attributes["output_shape"] == [[1, huge]]


def test_one_example_suffices_for_batch_normalization() -> None:
    network = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    model = PytorchGraphModelSpace.from_model(network)

    add_shapes(model, model.programs(), [1, 4])

    assert model.get_nodes()[1].operation.attributes["output_shape"] == [[1, 3]]
