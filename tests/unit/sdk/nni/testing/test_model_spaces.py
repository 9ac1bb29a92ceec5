"""The conformance suite of model spaces finds faulty spaces."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.mutable import Sample
from nni.nas.nn.pytorch import LayerChoice, ModelSpace
from nni.testing.model_spaces import ModelSpaceConformance


class Fixed(ModelSpace):
    """Space without a choice."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)


class Sharing(ModelSpace):
    """Space that is correct but for what a subclass breaks."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = LayerChoice([nn.Linear(4, 2), nn.Linear(4, 2, bias=False)], label="layer")

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.layer(inputs)
        return output


class Shrinking(Sharing):
    """Space that a freeze changes."""

    def freeze(self, sample: Sample) -> Any:
        network = super().freeze(sample)
        self.add_module("layer", nn.Identity())
        return network


class Careless(Sharing):
    """Space that takes any sample."""

    def freeze(self, sample: Sample) -> Any:
        return super().freeze({"layer": 0, **sample})


class NotANumber(Sharing):
    """Space whose networks compute nothing useful."""

    def forward(self, inputs: Tensor) -> Tensor:
        return super().forward(inputs) * torch.nan


def suite(space: Callable[[], ModelSpace]) -> ModelSpaceConformance:
    class Suite(ModelSpaceConformance):
        def make(self) -> ModelSpace:
            return space()

        def make_inputs(self) -> tuple[Tensor]:
            return (torch.ones(1, 4),)

    return Suite()


def test_space_without_a_choice_fails() -> None:
    with pytest.raises(AssertionError):
        suite(Fixed).test_labels_are_the_same_in_each_instance()


def test_space_that_a_freeze_changes_fails() -> None:
    with pytest.raises(AssertionError):
        suite(Shrinking).test_freezing_leaves_the_space_as_it_was()


def test_space_that_takes_any_sample_fails() -> None:
    with pytest.raises(AssertionError, match="must raise SampleMissingError"):
        suite(Careless).test_incomplete_sample_is_refused_with_the_missing_label()


def test_space_whose_output_is_not_finite_fails() -> None:
    with pytest.raises(AssertionError):
        suite(NotANumber).test_networks_of_random_samples_compute()
