"""Spans of trials in the form of OpenTelemetry."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from svc_common.errors import FailedPreconditionError
from svc_common.telemetry.trace_ids import parse_traceparent, span_id, trial_trace_id
from svc_common.telemetry.tracing import (
    NoOpTracer,
    OtelTracer,
    TrialSpan,
    is_configured,
    open_tracer,
)


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_TRACES_EXPORTER", "OTEL_SDK_DISABLED"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
async def tracer(exporter: InMemorySpanExporter) -> AsyncIterator[OtelTracer]:
    made = OtelTracer("manager", "4.0", exporter)
    yield made
    await made.aclose()


def exported(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def test_spans_of_a_trial_are_one_trace(tracer: OtelTracer, exporter: InMemorySpanExporter) -> None:
    tracer.record(TrialSpan("queued", "e", 7, 1_000, 2_000, ("queued",)))
    tracer.record(TrialSpan("trial", "e", 7, 900, 5_000, parent=None, attributes={"n": 1}))

    spans = exported(exporter)
    whole, queued = spans["trial"], spans["queued"]
    assert whole.context is not None
    assert queued.context is not None
    assert whole.parent is None
    assert queued.parent is not None
    assert queued.parent.span_id == whole.context.span_id == span_id("e", 7)
    assert whole.context.trace_id == queued.context.trace_id == trial_trace_id("e", 7)
    assert (whole.start_time, whole.end_time) == (900_000_000, 5_000_000_000)
    assert dict(whole.attributes or {}) == {"n": 1}
    assert whole.resource.attributes["service.name"] == "nni-manager"


def test_failed_span_has_the_status_of_an_error(
    tracer: OtelTracer, exporter: InMemorySpanExporter
) -> None:
    tracer.record(TrialSpan("trial", "e", 7, 0, 1, parent=None, error="exit code 1"))

    status = exported(exporter)["trial"].status
    assert (status.is_ok, status.description) == (False, "exit code 1")


def test_the_context_of_a_span_leads_to_it(tracer: OtelTracer) -> None:
    parent = parse_traceparent(tracer.traceparent("e", 7, "attempt", 1))

    assert parent is not None
    assert (parent.trace_id, parent.span_id) == (
        trial_trace_id("e", 7),
        span_id("e", 7, "attempt", 1),
    )
    assert parent.sampled


def test_a_sampler_decides_for_all_services_alike(
    monkeypatch: pytest.MonkeyPatch, exporter: InMemorySpanExporter
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.25")
    one, other = OtelTracer("a", "4.0", exporter), OtelTracer("b", "4.0", exporter)

    kept = [bool(one.traceparent("e", number)) for number in range(200)]

    assert kept == [bool(other.traceparent("e", number)) for number in range(200)]
    # 200 draws with p = 0.25: mean 50, deviation 6.1; five deviations.
    assert 20 < sum(kept) < 80


def test_a_span_of_an_unsampled_trace_is_not_exported(
    monkeypatch: pytest.MonkeyPatch, exporter: InMemorySpanExporter
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    tracer = OtelTracer("a", "4.0", exporter)

    tracer.record(TrialSpan("trial", "e", 1, 0, 1, parent=None))

    assert exported(exporter) == {}
    assert tracer.traceparent("e", 1) == ""


async def test_without_an_endpoint_nothing_is_traced() -> None:
    async with AsyncExitStack() as stack:
        assert await open_tracer(stack, "manager", "4.0") is None
    assert NoOpTracer().traceparent("e", 1) == ""


def test_without_an_endpoint_nothing_is_imported() -> None:
    program = (
        "import asyncio, contextlib, sys\n"
        "from svc_common.telemetry.tracing import open_tracer\n"
        "asyncio.run(open_tracer(contextlib.AsyncExitStack(), 'x', '1'))\n"
        "print(any(name.startswith('opentelemetry') for name in sys.modules))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert done.stdout.strip() == "False", done.stderr


@pytest.mark.parametrize(
    ("name", "value"), [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")]
)
def test_the_standard_switches_turn_it_off(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")
    assert is_configured()

    monkeypatch.setenv(name, value)

    assert not is_configured()


def test_an_unsupported_protocol_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")

    with pytest.raises(FailedPreconditionError, match="set it to grpc"):
        OtelTracer("manager", "4.0")
