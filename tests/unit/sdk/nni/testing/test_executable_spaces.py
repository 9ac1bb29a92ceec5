"""The conformance suite of executable spaces finds faulty spaces."""

from typing import Any

import pytest
import torch
from torch import Tensor

from nni.mutable import Sample
from nni.nas.space import GraphModelSpace, Mutator
from nni.nas.space.pytorch import PytorchGraphModelSpace
from nni.testing.executable_spaces import ExecutableSpaceConformance
from tests.unit.sdk.nni.nas.graph_models import AnchorNet, OperationMutator, linear


class Careless(PytorchGraphModelSpace):
    """Space that takes any sample."""

    def freeze(self, sample: Sample) -> Any:
        return super().freeze({**self.default_sample(), **sample})


class Growing(PytorchGraphModelSpace):
    """Space that a freeze changes."""

    def freeze(self, sample: Sample) -> Any:
        self.add_graph(f"graph_{len(self.graphs)}")
        return super().freeze(sample)


def suite(space: GraphModelSpace) -> ExecutableSpaceConformance:
    class Suite(ExecutableSpaceConformance):
        def make(self) -> GraphModelSpace:
            return space

        def make_inputs(self) -> tuple[Tensor]:
            return (torch.ones(1, 4),)

    return Suite()


@pytest.fixture
def mutators() -> list[Mutator]:
    return [OperationMutator(name, [linear(4)], name) for name in ("first", "second")]


def test_space_without_a_choice_fails() -> None:
    space = GraphModelSpace.from_model(AnchorNet())

    with pytest.raises(AssertionError):
        suite(space).test_labels_are_the_same_in_each_instance()


def test_space_that_takes_any_sample_fails(mutators: list[Mutator]) -> None:
    space = Careless.from_model(AnchorNet(), mutators=mutators)

    with pytest.raises(AssertionError, match="must raise SampleMissingError"):
        suite(space).test_incomplete_sample_is_refused_with_the_missing_label()


def test_space_that_a_freeze_changes_fails(mutators: list[Mutator]) -> None:
    space = Growing.from_model(AnchorNet(), mutators=mutators)

    with pytest.raises(AssertionError):
        suite(space).test_freezing_leaves_the_space_as_it_was()
