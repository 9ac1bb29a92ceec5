import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import nni
from nni.integrations.tracking import TrackedTrial, ids_of_trial, is_tracked, secret_from
from tests.support.tracked_trials import run_trial
from tests.support.trial_metrics import Metrics, metrics

__all__ = ["metrics"]  # a fixture


class ListTracker:
    """Tracker that keeps what it gets; it fails at the calls of one kind."""

    name = "List"
    errors: tuple[type[Exception], ...] = (ConnectionError,)

    def __init__(self, fails_at: str = "") -> None:
        self.run: list[Any] = []
        self._fails_at = fails_at

    def log_parameters(self, values: Mapping[str, Any]) -> None:
        self._note("parameters", dict(values))

    def log_metrics(self, values: Mapping[str, float], step: int) -> None:
        self._note("metrics", (step, dict(values)))

    def log_result(self, values: Mapping[str, float]) -> None:
        self._note("result", dict(values))

    def log_outputs(self, path: Path) -> None:
        self._note("outputs", path.name)

    def finish(self, *, succeeded: bool) -> None:
        self._note("finish", succeeded)

    def _note(self, kind: str, value: object) -> None:
        if kind == self._fails_at:
            raise ConnectionError("no route to the tracker")
        self.run.append((kind, value))


def test_parameters_reports_and_end_go_to_the_tracker() -> None:
    tracker = ListTracker()

    tracked = run_trial(lambda: TrackedTrial(tracker))

    parameters = {"rate": 0.5, "layer/kind": "conv", "layer/width": 8, "stages": "[1, 2]"}
    assert tracked.run == [
        ("parameters", parameters),
        ("metrics", (0, {"default": 1.5})),
        ("metrics", (1, {"default": 0.5, "of/b": 2.0})),
        ("result", {"default": 0.25}),
        ("finish", True),
    ]


def test_a_trial_without_a_result_has_failed() -> None:
    tracked = run_trial(lambda: TrackedTrial(ListTracker()), result=None)

    assert tracked.run[-1] == ("finish", False)


def test_an_error_in_the_block_is_a_failure(metrics: Metrics) -> None:
    tracker = ListTracker()
    nothing: dict[str, int] = {}

    tracked = TrackedTrial(tracker)
    nni.report_final_result(1)
    with pytest.raises(KeyError), tracked:
        nni.report_final_result(nothing["rate"])

    assert tracker.run[-1] == ("finish", False)


def test_the_experiment_gets_every_report_and_a_closed_tracker_none(metrics: Metrics) -> None:
    tracker = ListTracker()
    with TrackedTrial(tracker):
        nni.report_intermediate_result(1)
    nni.report_final_result(2)

    assert metrics == [("PERIODICAL", 1), ("FINAL", 2)]
    assert tracker.run == [("metrics", (0, {"default": 1.0})), ("finish", False)]


def test_two_trackers_may_be_closed_in_any_order(metrics: Metrics) -> None:
    first, second = ListTracker(), ListTracker()
    outer, inner = TrackedTrial(first), TrackedTrial(second)
    nni.report_intermediate_result(1)
    outer.close()
    nni.report_final_result(2)
    inner.close()
    inner.close()

    assert [kind for kind, _ in first.run] == ["metrics", "finish"]
    assert [kind for kind, _ in second.run] == ["metrics", "result", "finish"]
    assert len(metrics) == 2


def test_parameters_from_before_the_call_are_sent() -> None:
    def start() -> TrackedTrial:
        nni.get_next_parameter()
        return TrackedTrial(ListTracker())

    tracked = run_trial(start)

    assert [kind for kind, _ in tracked.run].count("parameters") == 1
    assert tracked.run[0][1]["rate"] == 0.5


def test_a_failing_tracker_is_left_alone_and_the_trial_goes_on(
    metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    tracker = ListTracker(fails_at="metrics")

    with caplog.at_level(logging.WARNING), TrackedTrial(tracker):
        nni.report_intermediate_result(1)
        nni.report_intermediate_result(2)
        nni.report_final_result(3)

    assert tracker.run == []
    assert len(metrics) == 3
    assert [record.getMessage() for record in caplog.records] == [
        "List gets nothing more from trial STANDALONE, which goes on: no route to the tracker"
    ]


def test_outputs_are_sent_before_the_end(metrics: Metrics, tmp_path: Path) -> None:
    tracker = ListTracker()
    with TrackedTrial(tracker, outputs=tmp_path / "model.txt"):
        (tmp_path / "model.txt").write_text("weights")

    assert tracker.run == [("outputs", "model.txt"), ("finish", False)]


def test_missing_outputs_are_a_warning(metrics: Metrics, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), TrackedTrial(ListTracker(), "no-such-file"):
        pass

    assert "got no-such-file, which is missing" in caplog.text


def test_a_process_that_is_not_tracked_changes_nothing(metrics: Metrics) -> None:
    with TrackedTrial(None) as tracked:
        nni.report_final_result(1)

    assert tracked.run is None
    assert metrics == [("FINAL", 1)]


def test_the_first_rank_only_is_tracked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_tracked()
    monkeypatch.setenv("RANK", "1")
    assert not is_tracked()


def test_a_secret_comes_from_the_named_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_TOKEN", "s3cret")

    assert secret_from("TEAM_TOKEN", "token_variable") == "s3cret"
    assert secret_from(None, "token_variable") is None


def test_a_secret_instead_of_a_name_is_not_shown() -> None:
    with pytest.raises(ValueError, match="token_variable must be the name of an env") as error:
        secret_from("AB12SECRET", "token_variable")
    assert "AB12" not in str(error.value)


def test_ids_name_experiment_and_trial() -> None:
    ids = ids_of_trial()

    assert (ids.name, ids.group) == ("STANDALONE", "STANDALONE")
    assert ids.tags["nni.trial_id"] == "STANDALONE"
