"""Names of the OpenTelemetry SDK that `tracing` uses; imported only if traces are exported."""

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter
from opentelemetry.trace import Status, StatusCode

__all__ = [
    "BatchSpanProcessor",
    "Resource",
    "SimpleSpanProcessor",
    "Status",
    "StatusCode",
    "TracerProvider",
    "context_below",
    "open_exporter",
]


def open_exporter() -> SpanExporter:
    """Return the OTLP exporter with the settings of the environment (`OTEL_EXPORTER_OTLP_…`)."""
    return OTLPSpanExporter()


def context_below(trace_id: int, parent_span_id: int | None) -> Context:
    """Return an OpenTelemetry context with this trace and parent span; None: an empty one."""
    if parent_span_id is None:
        return Context()
    parent = trace.SpanContext(
        trace_id, parent_span_id, is_remote=True, trace_flags=trace.TraceFlags(1)
    )
    return trace.set_span_in_context(trace.NonRecordingSpan(parent), Context())
