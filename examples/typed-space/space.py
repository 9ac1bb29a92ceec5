"""What is tuned, as types: the search space, the defaults and the configuration in one place."""

from dataclasses import dataclass
from typing import Annotated

from nni.hpo import Choice, LogUniform, RandInt


@dataclass(frozen=True)
class Newton:
    """Steps along the gradient over the curvature."""

    damping: Annotated[float, LogUniform(0.1, 1.0)] = 0.5


@dataclass(frozen=True)
class Descent:
    """Steps along the gradient, with momentum."""

    rate: Annotated[float, LogUniform(0.001, 0.5)] = 0.05
    momentum: Annotated[float, Choice(0.0, 0.5, 0.9)] = 0.0


@dataclass(frozen=True)
class Training:
    """One way to find the minimum."""

    method: Newton | Descent = Descent()
    steps: Annotated[int, RandInt(5, 31)] = 10
    start: float = 4.0
    """Not tuned: it keeps its value, unless the command line changes it."""
