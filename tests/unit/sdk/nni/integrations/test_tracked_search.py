"""Trials of `optimize` in a tracker in memory."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nni.hpo import TrialPruned, optimize
from nni.integrations._tracked_search import TrackedSearch
from nni.integrations.tracking import RunIds

WIDTH = {"_type": "choice", "_value": [8]}
SPACE = {
    "layer": {"_type": "choice", "_value": [{"_name": "conv", "width": WIDTH}, {"_name": "none"}]}
}


class MemoryRun:
    """Run that keeps what it is sent."""

    name = "memory"
    errors = (OSError,)

    def __init__(self, ids: RunIds) -> None:
        self.run = self
        self.ids = ids
        self.parameters: dict[str, Any] = {}
        self.metrics: list[tuple[int, dict[str, float]]] = []
        self.result: dict[str, float] = {}
        self.outputs: list[Path] = []
        self.succeeded: bool | None = None

    def log_parameters(self, values: Mapping[str, Any]) -> None:
        """See `RunTracker`."""
        self.parameters.update(values)

    def log_metrics(self, values: Mapping[str, float], step: int) -> None:
        """See `RunTracker`."""
        self.metrics.append((step, dict(values)))

    def log_result(self, values: Mapping[str, float]) -> None:
        """See `RunTracker`."""
        self.result.update(values)

    def log_outputs(self, path: Path) -> None:
        """See `RunTracker`."""
        self.outputs.append(path)

    def finish(self, *, succeeded: bool) -> None:
        """See `RunTracker`."""
        self.succeeded = succeeded


class Memory:
    """Tracker in memory."""

    def __init__(self) -> None:
        self.runs: list[MemoryRun] = []

    def open_run(self, ids: RunIds) -> MemoryRun:
        """Return a new run."""
        self.runs.append(MemoryRun(ids))
        return self.runs[-1]


def search(objective: Any, track: TrackedSearch) -> None:
    optimize(objective, SPACE, tuner="GridSearch", callbacks=[track])


def test_each_trial_is_a_run_with_parameters_metrics_result_and_outputs(tmp_path: Path) -> None:
    memory = Memory()
    (tmp_path / "0").write_text("weights")

    def objective(parameters: Any) -> Any:
        yield 1
        yield {"default": 2, "loss": 0.5, "note": "text"}
        return {"default": parameters["layer"].get("width", 0), "size": 3}

    search(
        objective,
        TrackedSearch(
            memory.open_run,
            (OSError,),
            "first",
            lambda record: tmp_path / "0" if record.id == 0 else None,
        ),
    )

    one, other = memory.runs
    assert one.ids == RunIds(
        "trial-0",
        "first",
        {"nni.search": "first", "nni.trial_id": "0", "nni.status": "SUCCEEDED"},
    )
    assert one.parameters == {"layer/_name": "conv", "layer/width": 8}
    assert one.metrics == [(0, {"default": 1.0}), (1, {"default": 2.0, "loss": 0.5})]
    assert one.result == {"default": 8.0, "size": 3.0}
    assert one.outputs == [tmp_path / "0"]
    assert other.outputs == []
    assert one.succeeded
    assert other.succeeded


def test_only_a_trial_that_raises_has_failed() -> None:
    memory = Memory()

    def objective(parameters: Any, trial: Any) -> float:
        trial.report(0.5)
        if trial.id == 0:
            raise ValueError("diverged")
        if trial.id == 1:
            raise TrialPruned
        return 1.0

    space = {"x": {"_type": "choice", "_value": [1, 2, 3]}}
    optimize(
        objective,
        space,
        tuner="GridSearch",
        callbacks=[TrackedSearch(memory.open_run, (OSError,), None)],
    )

    statuses = [run.ids.tags["nni.status"] for run in memory.runs]
    assert statuses == ["FAILED", "EARLY_STOPPED", "SUCCEEDED"]
    assert [run.succeeded for run in memory.runs] == [False, True, True]
    assert [run.result for run in memory.runs] == [{}, {}, {"default": 1.0}]
    assert all(run.metrics == [(0, {"default": 0.5})] for run in memory.runs)


def test_a_search_without_a_name_gets_one_of_its_own() -> None:
    names = {TrackedSearch(Memory().open_run, (), None).search for _ in range(3)}

    assert len(names) == 3
    assert all(name.startswith("search-") for name in names)


def test_a_tracker_that_fails_does_not_fail_the_search(caplog: pytest.LogCaptureFixture) -> None:
    opened: list[RunIds] = []

    def unreachable(ids: RunIds) -> MemoryRun:
        opened.append(ids)
        raise ConnectionError("no server")

    with caplog.at_level(logging.WARNING, "nni.integrations"):
        search(lambda parameters: 1.0, TrackedSearch(unreachable, (OSError,), "lost"))

    assert [record.getMessage() for record in caplog.records] == [
        "the tracker gets nothing more of lost, which goes on, from trial 0 on: no server"
    ]
    assert len(opened) == 1


def test_missing_outputs_are_a_warning(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    memory = Memory()
    gone = tmp_path / "gone"

    with caplog.at_level(logging.WARNING, "nni.integrations"):
        search(
            lambda parameters: 1.0,
            TrackedSearch(memory.open_run, (OSError,), "lost", lambda _: gone),
        )

    assert str(gone) in caplog.text
    assert all(run.succeeded for run in memory.runs)
