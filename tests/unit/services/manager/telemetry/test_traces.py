"""Spans of the manager in a trial's trace."""

from __future__ import annotations

from svc_common.telemetry.tracing import TrialSpan
from svc_manager.domain import inputs
from svc_manager.domain.experiment import Budget
from svc_manager.telemetry.traces import TrialTraces
from tests.unit.services.manager.building import EXPERIMENT_ID, Lab, exited


class Notebook:
    """`Tracer` that keeps the spans."""

    def __init__(self) -> None:
        self.spans: list[TrialSpan] = []

    def record(self, span: TrialSpan) -> None:
        self.spans.append(span)

    def traceparent(self, experiment_id: str, parameter_id: int, *path: str | int) -> str:
        return f"{experiment_id}/{parameter_id}"


class Traced:
    """Experiment whose events are traced."""

    def __init__(self, concurrency: int = 1) -> None:
        self.lab = Lab(Budget(trial_concurrency=concurrency), started=True)
        self.notebook = Notebook()
        self.traces = TrialTraces(self.notebook)
        self.see()

    def see(self) -> None:
        self.traces.record_events(self.lab.experiment, self.lab.last, self.lab.now_ms)


def test_a_trial_lasts_from_the_request_for_its_parameters_to_its_end() -> None:
    traced = Traced()
    lab = traced.lab
    lab.now_ms = 2_000
    lab.answer()
    traced.see()
    lab.now_ms = 3_000
    trial = lab.running()
    traced.see()
    lab.now_ms = 9_500
    lab.finish(trial)
    traced.see()

    queued, whole = traced.notebook.spans
    assert (queued.name, queued.start_ms, queued.end_ms) == ("trial.queued", 2_000, 3_000)
    assert queued.parent == ()
    assert (whole.name, whole.start_ms, whole.end_ms) == ("trial", 1_000, 9_500)
    assert (whole.parent, whole.error) == (None, "")
    assert whole.attributes["nni.experiment_id"] == EXPERIMENT_ID
    assert whole.attributes["nni.state"] == "SUCCEEDED"
    assert whole.attributes["nni.result_count"] == 1


def test_a_failure_is_an_error_with_its_first_line() -> None:
    traced = Traced()
    trial = traced.lab.running()
    traced.lab.report(trial, 1, exited(1, detail="Traceback\nValueError"))
    traced.see()

    assert traced.notebook.spans[-1].error == "exit code 1: Traceback"


def test_after_a_restart_a_trial_begins_when_it_was_made() -> None:
    lab, notebook = Lab(Budget(trial_concurrency=1)), Notebook()
    lab.now_ms = 2_000
    trial = lab.running()
    lab.finish(trial)
    TrialTraces(notebook).record_events(lab.experiment, lab.last, 9_000)

    assert notebook.spans[-1].start_ms == 2_000


def test_what_was_requested_is_forgotten_with_the_experiment() -> None:
    traced = Traced()
    traced.lab.command(inputs.Stop())
    traced.see()

    assert traced.traces._requested_ms == {}


def test_requests_to_a_replaced_tuner_are_forgotten_and_those_of_its_trials_kept() -> None:
    traced = Traced(concurrency=2)
    traced.lab.answer(deferred=1)
    traced.see()
    trial = traced.lab.waiting()

    traced.lab.command(inputs.ChangeTuner(b"tuner"))
    traced.see()

    assert traced.traces._requested_ms == {EXPERIMENT_ID: {trial.parameter_id: 1_000}}


def test_a_failure_is_the_error_of_its_span() -> None:
    traced = Traced()
    trial = traced.lab.running()
    traced.lab.report(trial, 1, exited(3, detail="boom\nValueError"))

    traced.see()

    assert traced.notebook.spans[-1].error == "exit code 3: boom"
