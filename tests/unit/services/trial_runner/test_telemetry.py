"""Metrics and traces of the agent."""

from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from svc_common.clock import ManualClock
from svc_common.experiment_events.causes import LossCause, LossReason
from svc_common.telemetry.metrics import Registry
from svc_common.telemetry.trace_ids import TraceParent, span_id, trial_trace_id
from svc_common.telemetry.tracing import TrialSpan
from svc_trial_runner.domain.claims import AttemptKey, TaskDecision
from svc_trial_runner.domain.reports import (
    AttemptLost,
    ExitCause,
    MetricReported,
    ProcessExited,
    ProcessStarted,
)
from svc_trial_runner.domain.tasks import TrialSpec, TrialWork
from svc_trial_runner.telemetry import Telemetry

PARENT = TraceParent(trial_trace_id("e", 5), span_id("e", 5), True).text()
WORK = TrialWork(
    AttemptKey("e", "t", 2), 0, 5, {}, "algorithm", TrialSpec("true"), b"", traceparent=PARENT
)


class RecordingTracer:
    """`Tracer` that records its spans."""

    def __init__(self) -> None:
        self.spans: dict[str, TrialSpan] = {}

    def record(self, span: TrialSpan) -> None:
        self.spans[span.name] = span

    def traceparent(self, experiment_id: str, parameter_id: int, *path: str | int) -> str:
        return f"{experiment_id}-{parameter_id}-{'-'.join(map(str, path))}"


class Watched:
    """Telemetry with the events of one attempt."""

    def __init__(self, work: TrialWork = WORK) -> None:
        self.clock = ManualClock()
        self.registry = Registry()
        self.tracer = RecordingTracer()
        self.work = work
        self.telemetry = Telemetry(self.clock, self.registry, self.tracer)

    def start(self) -> None:
        self.telemetry.task_pulled(TaskDecision.TAKE, self.work)
        self.clock.advance(0.5)
        self.telemetry.reported(self.work, ProcessStarted(self.clock.now(), 1, (), warm=True))

    def exit(self, code: int = 0) -> None:
        self.clock.advance(2.0)
        end = ProcessExited(self.clock.now(), ExitCause.ENDED, code, 0, "")
        self.telemetry.reported(self.work, end)

    def figures(self) -> dict[tuple[str, tuple[str, ...]], float]:
        return {
            (sample.name, tuple(sample.labels.values())): sample.value
            for family in text_string_to_metric_families(self.registry.render())
            for sample in family.samples
        }


def test_an_attempt_is_counted_and_timed() -> None:
    watched = Watched()
    watched.start()
    watched.telemetry.reported(WORK, MetricReported(True, 0, 1.0, watched.clock.now()))
    watched.exit()

    found = watched.figures()
    assert found["nni_tasks_pulled_total", ("take",)] == 1
    assert found["nni_attempt_start_seconds_sum", ("yes",)] == pytest.approx(0.5)
    assert found["nni_attempt_duration_seconds_sum", ()] == pytest.approx(2.0)
    assert found["nni_attempts_ended_total", ("ended",)] == 1
    assert found["nni_trial_results_total", ("final",)] == 1


def test_an_attempt_has_its_parts_in_the_trace_of_its_trial() -> None:
    watched = Watched()
    watched.start()
    watched.exit(3)

    spans = watched.tracer.spans
    assert {name: (span.path, span.parent) for name, span in spans.items()} == {
        "attempt.prepare": (("attempt", 2, "prepare"), ("attempt", 2)),
        "attempt.run": (("attempt", 2, "run"), ("attempt", 2)),
        "attempt": (("attempt", 2), ()),
    }
    assert spans["attempt.run"].attributes["process.exit.code"] == 3
    assert spans["attempt"].end_ms - spans["attempt"].start_ms == 2500


def test_a_lost_attempt_is_an_error_with_its_reason() -> None:
    watched = Watched()
    watched.start()
    watched.telemetry.reported(WORK, AttemptLost(LossReason(LossCause.AGENT_STOPPED)))

    assert watched.tracer.spans["attempt"].error == "its agent was stopped"
    assert watched.figures()["nni_attempts_ended_total", ("lost",)] == 1


def test_run_that_a_signal_has_killed_has_the_signal_and_no_exit_code() -> None:
    watched = Watched()
    watched.start()
    exited = watched.tracer.spans
    watched.exit()
    by_itself = exited["attempt.run"].attributes
    watched.start()
    end = ProcessExited(watched.clock.now(), ExitCause.TIME_LIMIT, None, 9, "")
    watched.telemetry.reported(WORK, end)
    killed = watched.tracer.spans["attempt.run"].attributes

    identity = {"nni.experiment_id": "e", "nni.trial_id": "t", "nni.attempt": 2}
    assert by_itself == identity | {"nni.cause": "ended", "process.exit.code": 0}
    assert killed == identity | {"nni.cause": "time limit", "nni.signal": 9}
    assert watched.figures()["nni_attempts_ended_total", ("time_limit",)] == 1


def test_a_trial_hangs_its_own_spans_below_its_run() -> None:
    assert Watched().telemetry.traceparent(WORK) == "e-5-attempt-2-run"


def test_an_agent_that_traces_nothing_passes_the_context_on() -> None:
    assert Telemetry(ManualClock()).traceparent(WORK) == PARENT


@pytest.mark.parametrize("context", ["", "nonsense", PARENT[:-2] + "00"])
def test_a_trial_that_is_not_traced_has_no_context(context: str) -> None:
    watched = Watched(replace(WORK, traceparent=context))
    watched.start()
    watched.exit()

    assert watched.telemetry.traceparent(watched.work) == ""


def test_a_trial_that_no_task_asks_to_trace_is_not_traced() -> None:
    watched = Watched(replace(WORK, traceparent=""))
    watched.start()
    watched.exit()

    assert watched.tracer.spans == {}


def test_gauges_are_read_on_demand() -> None:
    watched = Watched()
    watched.telemetry.register_gauges(lambda: 3, lambda: 2)

    found = watched.figures()
    assert (found["nni_attempts_held", ()], found["nni_warm_interpreters", ()]) == (3, 2)
