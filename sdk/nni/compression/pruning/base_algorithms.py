"""Rankings by weights alone, which other algorithms prune by: NNI's `base_algo`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from torch import Tensor

from nni.compression.config.settings import Granularity
from nni.compression.masking.metrics import distance_sums, norms


@dataclass(frozen=True, slots=True)
class BaseAlgorithm:
    """Granularity of the masked blocks, and the metric that ranks them."""

    granularity: Granularity
    """Blocks that are masked as one."""
    metric: Callable[[Tensor], Tensor]
    """Takes `(*grid, elements)` and returns `grid`; the smallest are masked first."""


BASE_ALGORITHMS: Final[Mapping[str, BaseAlgorithm]] = {
    "level": BaseAlgorithm("default", partial(norms, p=1)),
    "l1": BaseAlgorithm("out_channel", partial(norms, p=1)),
    "l2": BaseAlgorithm("out_channel", partial(norms, p=2)),
    "fpgm": BaseAlgorithm("out_channel", distance_sums),
}
"""Rankings by name: single weights by magnitude, or output channels by norm or distance."""


def base_algorithm(name: str) -> BaseAlgorithm:
    """Return granularity and metric of an algorithm by name; raise if it is unknown.

    Args:
        name: `level`, `l1`, `l2` or `fpgm`.

    Raises:
        ValueError: it is another one.

    Examples:
        >>> base_algorithm("l2").granularity
        'out_channel'
    """
    if name not in BASE_ALGORITHMS:
        known = ", ".join(BASE_ALGORITHMS)
        raise ValueError(f"base_algo must be one of {known}, got {name!r}")
    return BASE_ALGORITHMS[name]
