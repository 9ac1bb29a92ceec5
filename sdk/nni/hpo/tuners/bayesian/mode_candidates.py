"""Candidates of each mode of a Bayesian search: in the trust region, with one option, or anywhere.

Shapes: n results, m candidates, d axes.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import EncodedSpace
from nni.hpo.models.space_prior import SpacePrior
from nni.hpo.tuners.bayesian.candidates import (
    Region,
    global_candidates,
    local_candidates,
    option_candidates,
    region_around,
    whole_region,
)
from nni.hpo.tuners.bayesian.search_modes import SearchMode, option_weights

_GOOD: Final = 5
"""Best results near which candidates are drawn."""


@dataclass(frozen=True, slots=True)
class KnownResults:
    """Configurations with results, and what the model says about the region around the best one."""

    vectors: Floats
    """`(n, d)`, n >= 1."""
    losses: Floats
    """`(n,)`, on the model's scale; of equal ones the first is better."""
    lengthscales: Floats
    """`(d,)`"""
    region_size: float
    """Geometric mean of the sides of the trust region, in coordinates."""
    least_reach: Floats
    """`(d,)`, least distance of a side of the trust region from the best configuration."""


def mode_candidates(
    space: EncodedSpace,
    mode: SearchMode,
    known: KnownResults,
    count: int,
    rng: np.random.Generator,
    prior: SpacePrior | None,
) -> tuple[Floats, Region]:
    """Return the candidates `(m, d)` of a mode, allowed or not, and the region of ascents.

    Args:
        space: of the candidates.
        mode: `local`, `option`, or another one for candidates anywhere.
        known: results so far.
        count: of the candidates, >= 1.
        rng: of the draws.
        prior: user priors, for candidates anywhere; None for none.
    """
    order = np.argsort(known.losses, kind="stable")
    if mode == "local":
        centre, size = known.vectors[order[0]], known.region_size
        region = region_around(centre, known.lengthscales, size, known.least_reach)
        return local_candidates(space, centre, region, size, count, rng), region
    if mode == "option":
        found = _of_an_option(space, known.vectors, known.losses, count, rng)
    else:
        found = global_candidates(space, known.vectors[order[:_GOOD]], count, rng, prior)
    return found, whole_region(space)


def _of_an_option(
    space: EncodedSpace, vectors: Floats, losses: Floats, count: int, rng: np.random.Generator
) -> Floats:
    """Return candidates with an option that is drawn by its merits and its rareness."""
    options = [
        (index, option)
        for index, axis in enumerate(space.axes)
        for option in range(axis.categories)
    ]
    masks = [vectors[:, index] == option for index, option in options]
    weights = option_weights(losses, masks)
    place = int(rng.choice(len(options), p=weights))
    having = np.flatnonzero(masks[place])
    good = vectors[having[np.argsort(losses[having], kind="stable")[:_GOOD]]]
    return option_candidates(space, good, options[place], count, rng)
