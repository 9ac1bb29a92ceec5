"""Logs written by earlier versions, and their summaries."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import event_pb2
from nni_wire.values import from_value
from svc_manager.adapters.event_file import read_records
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import Trial
from svc_manager.event_log.reader import FoldedExperiment, fold_batch
from tests.support.simulation.replay import replay

HERE: Final = Path(__file__).parents[1] / "assets" / "logs"


def versions() -> list[Path]:
    """Return the folders of all versions with a recorded log."""
    return sorted(path.parent for path in HERE.glob("*/events.log"))


def folded(path: Path) -> Experiment:
    """Fold a log; return the experiment."""
    state = FoldedExperiment(Experiment())
    for sequence, payload in read_records(path):
        fold_batch(state, sequence, payload)
    return state.experiment


def summary_of(path: Path) -> dict[str, Any]:
    """Return the summary of a log as JSON; later versions must compute the same."""
    experiment = folded(path)
    return {
        "id": experiment.id,
        "state": experiment.state.name,
        "revision": experiment.revision,
        "executionTimeMs": experiment.execution_ms,
        "bestTrial": experiment.best_trial_id,
        "bestValue": experiment.best_value,
        "repeatable": experiment.repeatable,
        "generation": experiment.algorithm.generation,
        "counts": {
            state.name: count for state, count in sorted(experiment.counts.items()) if count
        },
        "trials": {trial.id: _trial(trial) for trial in experiment.trials.values()},
        "kinds": dict(sorted(kinds_in(list(read_records(path))).items())),
    }


def replay_summary_of(path: Path) -> dict[str, Any]:
    """Return the summary of a replay by the algorithms of this version as JSON."""
    result, _ = replay(read_records(path))
    return {
        "repeatable": result.repeatable,
        "suggestions": result.suggestions,
        "equal": result.equal,
        "generations": result.generations,
        "stops": result.stops,
    }


def kinds_in(records: list[tuple[int, bytes]]) -> Counter[str]:
    """Count the events of a log by their kind."""
    return Counter(
        event.WhichOneof("kind") or "none"
        for _, payload in records
        for event in event_pb2.EventBatch.FromString(payload).events
    )


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        "sequenceId": trial.sequence_id,
        "state": trial.state.name,
        "source": trial.source.name,
        "parameters": _decoded(trial.parameters),
        "final": None if trial.final is None else _decoded(trial.final.value),
        "intermediates": trial.intermediate_count,
    }


def _decoded(encoded: bytes) -> Any:
    return from_value(value_pb2.Value.FromString(encoded))
