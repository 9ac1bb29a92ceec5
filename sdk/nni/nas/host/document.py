"""Document of an exploration: space with evaluator, and strategy, for another process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import nni
from nni.common.serializer.submission import dump_submission, submission_limit_bytes
from nni.nas.execution.construction import construction_of
from nni.nas.execution.payload_files import PayloadFiles
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.strategy.base import Strategy, StrategyStatus

_SPACE: Final = "space"
_STRATEGY: Final = "strategy"
_VERSION: Final = "nni_version"
_PAYLOADS: Final = "payloads"
"""Key of the folder of large parts; absent if there are none."""
_NO_LIMIT: Final = 0


@dataclass(frozen=True, slots=True)
class ExplorationParts:
    """Executable space, strategy and store of payloads, as an exploration's document has them."""

    space: ExecutableModelSpace
    """Space with evaluator."""
    strategy: Strategy
    """Strategy that was not used yet."""
    payloads: PayloadFiles | None = None
    """Store of large parts of candidates; None: they are refused."""


def dump_exploration(
    space: ExecutableModelSpace, strategy: Strategy, payload_folder: Path | None = None
) -> str:
    """Return space and unused strategy as text; with a folder, large payloads go to files.

    Args:
        space: space with evaluator, in a format that travels.
        strategy: strategy that was not used yet; it travels as the call that constructed it.
        payload_folder: folder of large parts of candidates, which the machines of the trials share;
            the document holds such parts itself. None: they are refused.

    Raises:
        ValueError: the strategy was used.
        TypeError: a part cannot be written.
        nni.common.serializer.PayloadTooLarge: a part is no traced call, and too large.
    """
    if strategy.status is not StrategyStatus.Empty:
        raise ValueError(
            f"strategy must not have been used, it is {strategy.status}; build a new one"
        )
    parts: dict[str, Any] = {
        _VERSION: nni.__version__,
        _SPACE: space,
        _STRATEGY: construction_of(strategy),
    }
    if payload_folder is None:
        return dump_submission(parts)
    parts[_PAYLOADS] = str(payload_folder)
    return dump_submission(parts, limit_bytes=_NO_LIMIT)


def load_exploration(text: str) -> ExplorationParts:
    """Load the parts of an exploration; raise for another version of nni or other content.

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
    folder = parts.get(_PAYLOADS)
    payloads = None if folder is None else PayloadFiles(Path(folder), submission_limit_bytes())
    return ExplorationParts(space, strategy, payloads)
