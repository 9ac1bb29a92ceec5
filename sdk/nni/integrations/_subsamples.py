"""Cross-validation on a part of the training samples, and the sizes of successive halving."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Split = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Positions of the samples for training and of those for the test."""


class RepeatedSplits:
    """Splitter that makes its splits once, and gives the same ones to all candidates.

    Args:
        splitter: of scikit-learn, which may draw others at every call.
    """

    def __init__(self, splitter: Any) -> None:  # noqa: ANN401 - ships no types
        self._splitter = splitter
        self._splits: list[Split] | None = None

    def split(self, X: Any, y: Any = None, **params: Any) -> list[Split]:  # noqa: ANN401 - of scikit-learn
        """Return the splits of the first call; later arguments are ignored."""
        if self._splits is None:
            self._splits = list(self._splitter.split(X, y, **params))
        return self._splits


class SubsampledSplits:
    """Splitter that trains on a part of the samples; the tests keep all of theirs.

    A smaller part of a seed is within each larger one, so that scores are comparable.

    Args:
        splits: to take a part of.
        fraction: of the training samples, in (0, 1]. At least one sample stays.
        seed: of the order in which samples are taken.
    """

    def __init__(self, splits: RepeatedSplits, fraction: float, seed: int) -> None:
        self._splits = splits
        self._fraction = fraction
        self._seed = seed

    def split(self, X: Any, y: Any = None, **params: Any) -> Iterator[Split]:  # noqa: ANN401 - of scikit-learn
        """Yield the splits with a random part of the training samples, the same for one seed."""
        for number, (train, test) in enumerate(self._splits.split(X, y, **params)):
            order = np.random.default_rng([self._seed, number]).permutation(len(train))
            size = max(1, round(self._fraction * len(train)))
            yield np.sort(np.asarray(train)[order[:size]]), test


def halving_sizes(candidates: int, least: int, most: int, factor: float) -> list[int]:
    """Return the resource of each round of successive halving, in rising order.

    The last one is `most`. There are as many rounds as leave a candidate for it, and as `least`
    allows.

    Args:
        candidates: number of candidates in the first round.
        least: smallest resource of a round.
        most: resource of the last round.
        factor: quotient of the resources of two rounds.
    """
    sizes = [most]
    while len(sizes) < _rounds(candidates, factor) and sizes[0] / factor >= least:
        sizes.insert(0, int(sizes[0] / factor))
    return sizes


def _rounds(candidates: int, factor: float) -> int:
    """Return in how many rounds `factor` leaves one of the candidates."""
    rounds = 1
    while candidates > 1:
        candidates = remaining(candidates, factor)
        rounds += 1
    return rounds


def remaining(candidates: int, factor: float) -> int:
    """Return how many candidates go on to the next round: at least one, and fewer than before."""
    return max(1, min(candidates - 1, int(candidates / factor)))
