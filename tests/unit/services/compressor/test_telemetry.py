"""Metrics and traces of the compressor."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from nni.compression.job.steps import Step
from svc_common.clock import ManualClock
from svc_common.telemetry.metrics import Registry
from svc_common.telemetry.tracing import TrialSpan
from svc_compressor.domain.reports import Completed, GaveUp, Started, StepGenerated
from svc_compressor.telemetry import Telemetry


class RecordingTracer:
    """`Tracer` that records its spans."""

    def __init__(self) -> None:
        self.spans: list[TrialSpan] = []

    def record(self, span: TrialSpan) -> None:
        self.spans.append(span)

    def traceparent(self, experiment_id: str, parameter_id: int, *path: str | int) -> str:
        return ""


def metrics(registry: Registry) -> dict[tuple[str, tuple[str, ...]], float]:
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(registry.render())
        for sample in family.samples
    }


def test_a_step_is_counted_by_kind_and_is_a_part_of_its_trials_trace() -> None:
    clock, registry, tracer = ManualClock(), Registry(), RecordingTracer()
    telemetry = Telemetry(clock, registry, tracer)

    due_ms = telemetry.now_ms()
    clock.advance(0.25)
    telemetry.report_sent("e", StepGenerated("1-0", 7, Step(2, "prune")), due_ms)

    assert metrics(registry)["nni_compression_steps_total", ("prune",)] == 1
    (span,) = tracer.spans
    assert (span.name, span.parameter_id, span.parent) == ("parameters.generate", 7, ())
    assert span.end_ms - span.start_ms == 250
    assert (span.attributes["nni.step"], span.attributes["nni.step_kind"]) == (2, "prune")


def test_a_job_that_was_given_up_is_counted() -> None:
    registry = Registry()

    Telemetry(ManualClock(), registry).report_sent("e", GaveUp(1, "no model"), 0)

    assert metrics(registry)["nni_compression_failures_total", ()] == 1


@pytest.mark.parametrize("report", [Started(1), Completed("1-0")])
def test_other_reports_leave_no_span(report: Started | Completed) -> None:
    tracer = RecordingTracer()

    Telemetry(ManualClock(), None, tracer).report_sent("e", report, 0)

    assert tracer.spans == []
