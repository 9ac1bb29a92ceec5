"""Metrics and traces of the dispatcher."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from svc_common.clock import ManualClock
from svc_common.telemetry.metrics import Registry
from svc_common.telemetry.tracing import TrialSpan
from svc_dispatcher.domain import answers
from svc_dispatcher.domain.commands import Generate
from svc_dispatcher.domain.values import Position, Suggestion
from svc_dispatcher.telemetry import Telemetry

AT = Position(3, 0)


class RecordingTracer:
    """`Tracer` that records its spans."""

    def __init__(self) -> None:
        self.spans: list[TrialSpan] = []

    def record(self, span: TrialSpan) -> None:
        self.spans.append(span)

    def traceparent(self, experiment_id: str, parameter_id: int, *path: str | int) -> str:
        return ""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def tracer() -> RecordingTracer:
    return RecordingTracer()


@pytest.fixture
def telemetry(clock: ManualClock, registry: Registry, tracer: RecordingTracer) -> Telemetry:
    return Telemetry(clock, registry, tracer)


def metrics(registry: Registry) -> dict[tuple[str, tuple[str, ...]], float]:
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(registry.render())
        for sample in family.samples
    }


def answer(request_id: str, *ids: int) -> answers.Generated:
    return answers.Generated(AT, request_id, tuple(Suggestion(n, {"x": n}, None) for n in ids))


def test_an_answer_is_timed_and_is_a_part_of_each_trial(
    telemetry: Telemetry, clock: ManualClock, registry: Registry, tracer: RecordingTracer
) -> None:
    telemetry.commands_sent("e", [Generate(AT, "1-0", (7, 8))])
    clock.advance(0.25)
    telemetry.outputs_received("e", [answer("1-0", 7, 8)])

    found = metrics(registry)
    assert found["nni_algorithm_ask_seconds_sum", ()] == pytest.approx(0.25)
    assert found["nni_parameters_generated_total", ()] == 2
    assert [(span.parameter_id, span.end_ms - span.start_ms) for span in tracer.spans] == [
        (7, 250),
        (8, 250),
    ]
    assert {span.parent for span in tracer.spans} == {()}


def test_answers_that_the_log_has_are_not_counted_again(
    telemetry: Telemetry, registry: Registry, tracer: RecordingTracer
) -> None:
    telemetry.commands_sent("e", [Generate(AT, "1-0", (7,), replayed=True)])
    telemetry.outputs_received("e", [answer("1-0", 7)])

    assert metrics(registry)["nni_parameters_generated_total", ()] == 0
    assert tracer.spans == []


def test_parameters_that_come_later_are_counted_but_not_timed(
    telemetry: Telemetry, registry: Registry
) -> None:
    telemetry.outputs_received("e", [answer("", 7)])

    found = metrics(registry)
    assert found["nni_parameters_generated_total", ()] == 1
    assert ("nni_algorithm_ask_seconds_count", ()) not in found


def test_advice_and_failures_are_counted(telemetry: Telemetry, registry: Registry) -> None:
    telemetry.outputs_received(
        "e",
        [
            answers.StopAdvised(AT, "t"),
            answers.CallFailed(AT, "receive_trial_result", "Traceback", skipped=True),
        ],
    )

    found = metrics(registry)
    assert found["nni_stops_advised_total", ()] == 1
    assert found["nni_algorithm_failures_total", ("receive_trial_result",)] == 1


def test_hosts_are_counted_as_they_come_and_go(telemetry: Telemetry, registry: Registry) -> None:
    telemetry.host_started()
    telemetry.host_started()
    telemetry.commands_sent("e", [Generate(AT, "1-0", (7,))])
    telemetry.host_died()
    telemetry.host_closed("e")
    telemetry.outputs_received("e", [answer("1-0", 7)])

    found = metrics(registry)
    assert found["nni_algorithm_hosts", ()] == 1
    assert found["nni_algorithm_host_starts_total", ()] == 2
    assert found["nni_algorithm_host_deaths_total", ()] == 1
    assert ("nni_algorithm_ask_seconds_count", ()) not in found, "the pending request was dropped"
