"""Names of the OpenTelemetry SDK that `tracing` uses."""

import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

from svc_common.telemetry.otel_sdk import context_below, open_exporter


def test_context_has_the_parent() -> None:
    context = trace.get_current_span(context_below(7, 11)).get_span_context()

    assert (context.trace_id, context.span_id) == (7, 11)
    assert context.is_remote
    assert context.trace_flags.sampled


def test_context_without_a_parent_has_no_span() -> None:
    assert not trace.get_current_span(context_below(7, None)).get_span_context().is_valid


def test_exporter_sends_to_the_endpoint_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")

    exporter = open_exporter()

    assert isinstance(exporter, OTLPSpanExporter)
    exporter.shutdown()
