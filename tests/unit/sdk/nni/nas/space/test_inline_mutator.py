"""Choices that are written into a model, as a mutator."""

from typing import Any

import pytest

from nni.common.serializer import dump, load
from nni.mutable import SampleMissingError
from nni.nas.space import InvalidMutation, MutationSampler
from nni.nas.space.inline_mutator import InlineMutator, used_graphs
from nni.nas.space.pytorch import PytorchGraphModelSpace
from tests.unit.sdk.nni.nas.graph_models import SAMPLE, EverySpace


@pytest.fixture(scope="module")
def space() -> PytorchGraphModelSpace:
    return PytorchGraphModelSpace.from_model(EverySpace())


class Last(MutationSampler):
    """Sampler of the last candidates."""

    def choice(self, candidates: Any, mutator: Any, model: Any, index: int) -> Any:
        return candidates[-1]


def test_dimensions_are_those_of_the_network(space: PytorchGraphModelSpace) -> None:
    assert list(space.simplify()) == list(EverySpace().simplify())


def test_chosen_layer_takes_the_place_of_the_choice(space: PytorchGraphModelSpace) -> None:
    node = space.freeze({**SAMPLE, "every/layer": 1}).get_node_by_name("layer")

    assert node is not None
    assert node.operation.type == "__torch__.torch.nn.modules.linear.Linear"
    assert node.python_name == "layer.1"


def test_expression_of_an_argument_has_its_value(space: PytorchGraphModelSpace) -> None:
    node = space.freeze(SAMPLE).get_node_by_name("stem")

    assert node is not None
    assert node.operation.parameters == {"in_features": 4, "out_features": 6}


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_repetition_becomes_as_many_blocks_as_chosen(
    space: PytorchGraphModelSpace, depth: int
) -> None:
    frozen = space.freeze({**SAMPLE, "every/depth": depth})

    names = [node.name for node in frozen.get_nodes() if node.name.startswith("body")]
    assert names == [f"body.blocks.{index}" for index in range(depth)]


def test_graphs_of_candidates_that_are_not_chosen_are_removed(
    space: PytorchGraphModelSpace,
) -> None:
    frozen = space.freeze({**SAMPLE, "every/layer": 1})

    assert sorted(frozen.graphs) == ["_model", "_model__branch"]
    assert used_graphs(frozen) == ["_model", "_model__branch"]


def test_sampler_decides_on_each_dimension(space: PytorchGraphModelSpace) -> None:
    (mutator,) = space.mutators
    mutator.bind_sampler(Last())

    model = mutator.apply(space)

    assert model.parent.samples == [2, 1, "tanh", 2, [0, 1, 2]]


def test_choices_that_break_a_rule_are_invalid(space: PytorchGraphModelSpace) -> None:
    class Wrong(MutationSampler):
        def choice(self, candidates: Any, mutator: Any, model: Any, index: int) -> Any:
            return "nothing"

    with pytest.raises(InvalidMutation, match="the value of 'every/ratio' must be"):
        space.mutators[0].apply_with(Wrong(), space)


def test_missing_label_is_named(space: PytorchGraphModelSpace) -> None:
    with pytest.raises(SampleMissingError, match="no value for label 'every/ratio'"):
        space.freeze({})


def test_mutator_has_the_same_dimensions_after_a_dump(space: PytorchGraphModelSpace) -> None:
    loaded = load(dump(space.mutators[0]))

    assert isinstance(loaded, InlineMutator)
    assert list(loaded.mutables) == list(space.simplify())
