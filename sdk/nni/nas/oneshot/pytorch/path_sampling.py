"""Draws of architectures for a supernet that computes one path at a time."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import torch

from nni.mutable import LabeledMutable, Mutable, MutableAnnotation, Sample

ATTEMPTS = 100
"""Draws until one satisfies the constraints and the filter."""
SEEDS = 2**31


class UniformSampler:
    """Source of random samples of a space that satisfy its constraints and a condition.

    Candidates with weights are drawn by these, others uniformly. The draws repeat with the seed of
    torch at construction, and continue from a restored `state`.

    Args:
        space: mutable space; its leaves are read once.
        condition: function of a sample that says whether it takes part; None for all.
    """

    def __init__(self, space: Mutable, condition: Callable[[Sample], bool] | None = None) -> None:
        self._leaves: Sequence[LabeledMutable] = list(space.simplify().values())
        self._constraints = [one for one in self._leaves if isinstance(one, MutableAnnotation)]
        self._condition = condition
        self._random = random.Random(int(torch.randint(SEEDS, ())))

    @property
    def state(self) -> tuple[object, ...]:
        """State of the random generator; one that is set continues its draws."""
        return self._random.getstate()

    @state.setter
    def state(self, state: tuple[object, ...]) -> None:
        version, numbers, gauss = state
        assert isinstance(numbers, Sequence)
        self._random.setstate((version, tuple(numbers), gauss))

    def draw(self) -> Sample:
        """Return a random sample that satisfies constraints and condition; raise after many tries.

        Returns:
            Values by label.

        Raises:
            RuntimeError: none of `ATTEMPTS` draws does.
        """
        for _ in range(ATTEMPTS):
            sample: Sample = {}
            for leaf in self._leaves:
                leaf.add_random(sample, self._random)
            if self.admits(sample):
                return sample
        raise RuntimeError(
            f"none of {ATTEMPTS} random architectures satisfies the constraints of the space and "
            "the filter; widen the range of the filter"
        )

    def admits(self, sample: Sample) -> bool:
        """Return whether a sample satisfies the constraints and the condition.

        Args:
            sample: value of each label.
        """
        return all(one.check_contains(sample) is None for one in self._constraints) and (
            self._condition is None or self._condition(sample)
        )
