"""Document of an exploration: space with evaluator, and strategy, for another process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

import nni
from nni.common.serializer.submission import dump_submission
from nni.nas.execution.construction import Reconstructible, construction_of
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.strategy.base import Strategy, StrategyStatus

_SPACE: Final = "space"
_STRATEGY: Final = "strategy"
_VERSION: Final = "nni_version"


@dataclass(frozen=True, slots=True)
class ExplorationParts:
    """Parts of an exploration that the process of its strategy works with."""

    space: ExecutableModelSpace
    """Space with evaluator."""
    strategy: Strategy
    """Strategy that was not used yet."""


def dump_exploration(space: ExecutableModelSpace, strategy: Strategy) -> str:
    """Return the document of an exploration.

    Args:
        space: space with evaluator, in a format that travels.
        strategy: strategy that was not used yet; it travels as the call that constructed it.

    Raises:
        ValueError: the strategy was used.
        TypeError: a part cannot be written, or the strategy does not call the constructor of its
            base class.
        nni.common.serializer.PayloadTooLarge: a part is no traced call, and too large.
    """
    if strategy.status is not StrategyStatus.Empty:
        raise ValueError(
            f"strategy must not have been used, it is {strategy.status}; build a new one"
        )
    if not isinstance(strategy, Reconstructible):
        raise TypeError(f"strategy must be a Strategy, got {strategy!r:.200}")
    parts = {_VERSION: nni.__version__, _SPACE: space, _STRATEGY: construction_of(strategy)}
    return dump_submission(parts)


def load_exploration(text: str) -> ExplorationParts:
    """Return the parts of a document; only the process of a strategy calls this.

    Args:
        text: what `dump_exploration` returned. Reading it runs code of its author.

    Raises:
        ValueError: it was written by another version of nni.
        TypeError: it holds no space or no strategy.
        ImportError: a class or function cannot be imported here.
    """
    version = json.loads(text).get(_VERSION)
    if version != nni.__version__:
        raise ValueError(
            f"the exploration was created by nni {version} and this process has {nni.__version__}; "
            "install the same version for client and service"
        )
    parts = nni.load(text)
    space, strategy = parts.get(_SPACE), parts.get(_STRATEGY)
    if not isinstance(space, ExecutableModelSpace) or not isinstance(strategy, Strategy):
        raise TypeError(f"the document must hold a space and a strategy, got {sorted(parts)}")
    return ExplorationParts(space, strategy)
