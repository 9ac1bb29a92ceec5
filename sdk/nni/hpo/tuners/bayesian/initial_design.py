"""Initial designs: configurations that are tried before a model is used.

With user priors, every second configuration of a hypercube follows them, the first is the expected
best one.

Source of the space-filling design: McKay, Beckman and Conover, A Comparison of Three Methods for
Selecting Values of Input Variables, Technometrics 21, 1979 (Latin hypercubes); Johnson, Moore and
Ylvisaker, Minimax and Maximin Distance Designs, 1990 (the choice among them).
"""

from typing import Final, Protocol

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import EncodedSpace
from nni.hpo.json_value import JsonValue
from nni.hpo.models.space_prior import space_prior

_FEWEST: Final = 5
_MOST: Final = 10
_PER_AXIS: Final = 2
"""Size of a Latin hypercube: at least, at most, per axis."""
_MIDDLE: Final = 0.5
_HYPERCUBES: Final = 20
"""Latin hypercubes of which the one with the greatest least distance is taken."""


class InitialDesign(Protocol):
    """Interface of initial designs: the configurations to try before a model proposes."""

    @property
    def size(self) -> int:
        """Number of results that count as initial, >= 1 in a space with parameters."""
        ...

    def reset(self, space: EncodedSpace, rng: np.random.Generator) -> None:
        """Start again in a new space."""
        ...

    def is_complete(self, results: int) -> bool:
        """Return whether a model may propose after so many results."""
        ...

    def next_vector(self) -> Floats | None:
        """Return the next vector `(d,)`; None for a draw of the prior."""
        ...

    def state(self) -> dict[str, JsonValue]:
        """Return the state for `load_state`, as JSON."""
        ...

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Restore the state that `state` returned; other keys of the dict are ignored."""
        ...


class RandomDesign:
    """Initial design of draws from the prior.

    Args:
        size: number of results, >= 1.
    """

    def __init__(self, size: int) -> None:
        self.size: Final = size

    def reset(self, space: EncodedSpace, rng: np.random.Generator) -> None:
        """Do nothing: random draws need no design."""

    def is_complete(self, results: int) -> bool:
        """Return whether there are `size` results or more."""
        return results >= self.size

    def next_vector(self) -> Floats | None:
        """Return None: the search draws a random vector instead."""
        return None

    def state(self) -> dict[str, JsonValue]:
        """Return an empty state."""
        return {}

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Do nothing: the state is empty."""


class LatinHypercubeDesign:
    """Maximin Latin hypercube; in a flat space its first vector is the middle of all ranges."""

    def __init__(self) -> None:
        self._axes = 0
        self._design: Floats = np.empty((0, 0))
        self._proposed = 0

    @property
    def size(self) -> int:
        """Number of vectors in the design."""
        return len(self._design)

    def reset(self, space: EncodedSpace, rng: np.random.Generator) -> None:
        """Draw a new Latin hypercube for a space, and start at its first vector."""
        self._axes = len(space)
        self._design = latin_hypercube(space, rng)
        self._proposed = 0

    def is_complete(self, results: int) -> bool:
        """Return whether all vectors have results; few are enough once all are started.

        Until then `next_vector` is asked for draws.
        """
        started = self._proposed == self.size
        return results >= self.size or (started and results >= _FEWEST)

    def next_vector(self) -> Floats | None:
        """Return the next vector of the hypercube; None after the last."""
        if self._proposed == self.size:
            return None
        vector: Floats = self._design[self._proposed]
        self._proposed += 1
        return vector

    def state(self) -> dict[str, JsonValue]:
        """Return the design and the number of its vectors that were proposed, as JSON."""
        return {"design": self._design.tolist(), "handed_out": self._proposed}

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Restore the hypercube and the number of its vectors already proposed."""
        design = state["design"]
        self._design = np.array(design, dtype=np.float64).reshape(len(design), self._axes)
        self._proposed = int(state["handed_out"])


def latin_hypercube(space: EncodedSpace, rng: np.random.Generator) -> Floats:
    """Return the vectors `(k, d)` of a maximin Latin hypercube; none in a space without axes."""
    axes = len(space)
    if not axes:
        return np.empty((0, 0))
    count = min(max(_PER_AXIS * axes + 1, _FEWEST), _MOST)
    hypercubes = [_random_hypercube(count, axes, rng) for _ in range(_HYPERCUBES)]
    shares = max(hypercubes, key=_least_distance)
    if not space.has_branches:
        # The user of a range expects a good value in its middle.
        shares[0] = np.where(space.ordered, _MIDDLE, shares[0])
    vectors = space.from_unit_cube(shares)
    prior = space_prior(space)
    if prior is not None:
        filled = prior.filled_from(shares)
        vectors[::2] = space.snap(filled[::2])
        vectors[0] = prior.mode(filled[0])
    return vectors


def _random_hypercube(count: int, axes: int, rng: np.random.Generator) -> Floats:
    cells = np.stack([rng.permutation(count) for _ in range(axes)], axis=1)
    shares: Floats = (cells + rng.random((count, axes))) / count
    return shares


def _least_distance(shares: Floats) -> float:
    """Return the least squared distance between two of `(k, d)` shares."""
    gaps = ((shares[:, None, :] - shares[None, :, :]) ** 2).sum(axis=-1)
    return float(gaps[np.triu_indices(len(shares), 1)].min())
