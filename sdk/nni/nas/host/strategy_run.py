"""Run of one strategy in a process of its own, over the pipes of the NAS service."""

from __future__ import annotations

import logging
import random
import sys
import traceback
from typing import Any, Final

from nni.hpo.host.command_pipe import CommandPipe
from nni.nas.execution.training_service import TrainingServiceExecutionEngine
from nni.nas.host.document import ExplorationParts, load_exploration
from nni.nas.host.pipe_trials import PipeTrials
from nni.nas.strategy.base import Strategy

_logger = logging.getLogger(__name__)

FAILED: Final = 1
"""Exit code after a document or strategy that raised."""


def run_strategy(pipe: CommandPipe) -> int:
    """Run the strategy of the first line's document; send its outcome; return 0, or 1 if it fails.

    Args:
        pipe: lines of the service, and what it is sent.
    """
    lines = pipe.commands()
    first = next(lines, None)
    if first is None:
        return 0  # the service has ended
    try:
        _prepare(first)
        parts = load_exploration(first["document"])
        pipe.write({"ready": True})
        if _search(parts, first, PipeTrials(pipe, lines)):
            pipe.write({"exhausted": True})
    except Exception as error:
        _logger.exception("the search has failed")
        reason = traceback.format_exception_only(error)[-1].strip()
        pipe.write({"failed": reason, "traceback": traceback.format_exc()})
        return FAILED
    return 0


def _prepare(first: dict[str, Any]) -> None:
    logging.getLogger("nni").setLevel(first.get("log_level", "info").upper())
    folder = first.get("code_directory", "")
    if folder and folder not in sys.path:
        sys.path.insert(0, folder)  # as in a trial, whose working directory it is
    random.seed(first.get("seed", 0))


def _search(parts: ExplorationParts, first: dict[str, Any], trials: PipeTrials) -> bool:
    """Run the strategy and wait for its models; return whether it ended before its budget.

    False where the experiment takes no more of them: its limit may be raised later.
    """
    engine = TrainingServiceExecutionEngine(
        trials, max(1, first["concurrency"]), payloads=parts.payloads
    )
    # What the log holds already answers the first models.
    engine.load_state_dict({"experiment_id": first["experiment_id"]})
    strategy = _submitting(parts.strategy)
    strategy.initialize(parts.space, engine)
    engine.start()
    strategy.run()
    is_exhausted = engine.budget_available()
    strategy.engine.wait_models()
    return is_exhausted


def _submitting(strategy: Strategy) -> Strategy:
    """Return the strategy for this process; a one-shot one is wrapped to train in one trial."""
    if not strategy.is_one_shot:
        return strategy
    from nni.nas.strategy.oneshot.base import OneShotStrategy
    from nni.nas.strategy.oneshot.trial_search import OneTrialStrategy

    assert isinstance(strategy, OneShotStrategy)
    return OneTrialStrategy(strategy)
