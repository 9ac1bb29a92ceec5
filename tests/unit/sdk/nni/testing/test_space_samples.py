"""The samples of the suites of spaces are repeatable, and too few of them are an error."""

from typing import Any

import pytest
from torch import nn

from nni.mutable import RandomState, Sample
from nni.nas.nn.pytorch import LayerChoice, ModelSpace
from nni.testing.space_samples import SpaceConformance


class Chosen(ModelSpace):
    """Space of two networks."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = LayerChoice([nn.Linear(4, 2), nn.ReLU()], label="layer")


class Refusing(Chosen):
    """Space that has no valid sample."""

    def random_sample(
        self, memo: Sample | None = None, random_state: RandomState | None = None
    ) -> Sample:
        raise ValueError("no sample satisfies the constraints")


class Cases(SpaceConformance[Chosen]):
    """The part that suites share, of one space."""

    def __init__(self, space: Chosen) -> None:
        self._space = space

    def make(self) -> Chosen:
        return self._space

    def make_inputs(self) -> tuple[Any, ...]:
        return ()


def test_samples_are_the_same_each_time() -> None:
    cases = Cases(Chosen())

    samples = cases._samples(cases.make())

    assert len(samples) == Cases.draws
    assert cases._samples(cases.make()) == samples


def test_space_without_valid_samples_fails() -> None:
    cases = Cases(Refusing())

    with pytest.raises(AssertionError, match="fewer than 4 of 1000"):
        cases._samples(cases.make())
