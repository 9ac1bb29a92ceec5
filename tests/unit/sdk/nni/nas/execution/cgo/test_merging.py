"""One model of several."""

import pytest
import torch
from torch import Tensor, nn

from nni.common.serializer import dump, load
from nni.nas.execution.cgo import merged_model
from nni.nas.space import GraphModelSpace
from tests.unit.sdk.nni.nas.graph_models import SAMPLE, EverySpace


class Pair(nn.Module):
    """Network of two inputs and two outputs."""

    def forward(self, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        return first + second, first - second


def models() -> list[GraphModelSpace]:
    space = GraphModelSpace.from_model(EverySpace())
    return [space.freeze({**SAMPLE, "every/layer": layer}) for layer in (0, 1)]


def test_merged_model_computes_what_each_computes() -> None:
    parts = models()
    networks = [model.executable_model().eval() for model in parts]

    merged = merged_model(parts).build_model().eval()
    for position, network in enumerate(networks):
        target = {
            name: value
            for name, value in merged.state_dict().items()
            if name.startswith(f"M_{position}")
        }
        values = dict(zip(target, network.state_dict().values(), strict=True))
        merged.load_state_dict(values, strict=False)
    inputs = torch.rand(3, 4)

    for output, network in zip(merged(inputs), networks, strict=True):
        assert torch.equal(output, network(inputs))


def test_names_begin_with_the_position_of_their_model() -> None:
    merged = merged_model(models())

    assert "M_0__model__branch" in merged.graphs
    assert {node.name[:4] for node in merged.get_nodes()} == {"M_0_", "M_1_"}
    assert list(merged.root_graph.input_names) == ["inputs"]


def test_models_share_no_parameters() -> None:
    part = models()[0]

    network = merged_model([part, part]).build_model()

    assert len(list(network.parameters())) == 2 * len(list(part.build_model().parameters()))


def test_each_output_may_be_a_tuple() -> None:
    pair = GraphModelSpace.from_model(Pair()).freeze({})

    outputs = merged_model([pair, pair]).build_model()(torch.ones(1), torch.ones(1))

    assert outputs == ((torch.full((1,), 2.0), torch.zeros(1)),) * 2


def test_merged_model_travels_as_json() -> None:
    merged = merged_model(models())

    assert load(dump(merged)).to_code() == merged.to_code()


def test_models_of_different_inputs_are_refused() -> None:
    pair = GraphModelSpace.from_model(Pair()).freeze({})

    with pytest.raises(ValueError, match="must take the same inputs"):
        merged_model([models()[0], pair])
    with pytest.raises(ValueError, match="models must not be empty"):
        merged_model([])
