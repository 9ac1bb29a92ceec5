"""Base of the conformance suites of model spaces: instances, inputs and samples of a space."""

import random
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

from nni.mutable import Mutable, Sample
from nni.nas.space import InvalidMutation

_SEED = 0
_TRIES = 1000
"""Largest number of draws for the samples of a test."""


Space_co = TypeVar("Space_co", covariant=True)


class SpaceConformance(ABC, Generic[Space_co]):
    """Base of the suites of spaces; a subclass of a suite builds the space under test."""

    draws: ClassVar[int] = 4
    """Number of random samples that a test draws."""

    @abstractmethod
    def make(self) -> Space_co:
        """Return a new space, always constructed with the same arguments."""

    @abstractmethod
    def make_inputs(self) -> tuple[Any, ...]:
        """Return inputs of the network, a small batch."""

    def _samples(self, space: Mutable) -> list[Sample]:
        """Return valid random samples, always the same; raise if too few are valid."""
        state = random.Random(_SEED)
        samples: list[Sample] = []
        for _ in range(_TRIES):
            if len(samples) == self.draws:
                return samples
            try:
                samples.append(space.random_sample(random_state=state))
            except (ValueError, InvalidMutation):  # a draw may break a constraint
                continue
        raise AssertionError(f"fewer than {self.draws} of {_TRIES} random samples are valid")
