"""OpenTelemetry traces of trials, exported by OTLP if the standard variables ask for it.

Without `OTEL_EXPORTER_OTLP_ENDPOINT` (or its form for traces) nothing is imported or recorded. A
span is recorded when it has ended, with its times and with ids that are derived from the trial
(`telemetry.trace_ids`), so a restarted service continues the traces of its predecessor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from svc_common import environment
from svc_common.errors import FailedPreconditionError
from svc_common.telemetry.trace_ids import TraceParent, span_id, trial_trace_id

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_SHUTDOWN_TIMEOUT_S: Final = 3.0
"""Longest export of the last spans when a service stops."""
_NS_PER_MS: Final = 1_000_000

Attribute = str | int | float | bool


@dataclass(frozen=True, slots=True)
class TrialSpan:
    """Ended span of a trial's trace: name, times, parent, attributes and error."""

    name: str
    experiment_id: str
    parameter_id: int
    start_ms: int
    """Milliseconds since 1970."""
    end_ms: int
    path: tuple[str | int, ...] = ()
    """Name of the span, see `trace_ids.span_id`; empty: the whole trial."""
    parent: tuple[str | int, ...] | None = ()
    """Path of the parent span; None: it has none."""
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    error: str = ""
    """Error message; empty: no error."""


class Tracer(Protocol):
    """Interface of a tracer of trials: records spans, and returns W3C trace contexts."""

    def record(self, span: TrialSpan) -> None:
        """Record a span if its trace is sampled."""
        ...

    def traceparent(self, experiment_id: str, parameter_id: int, *path: str | int) -> str:
        """Return the W3C trace context of a span; empty: its trace is not sampled."""
        ...


class NoOpTracer:
    """Null `Tracer`: records nothing and returns an empty trace context."""

    def record(self, span: TrialSpan) -> None:
        """Do nothing: no span is recorded."""

    def traceparent(self, experiment_id: str, parameter_id: int, *path: str | int) -> str:
        """Return an empty trace context: no trace is sampled."""
        del experiment_id, parameter_id, path
        return ""


def is_configured() -> bool:
    """Return whether environment variables set an OTLP endpoint and do not turn traces off."""
    if environment.text("OTEL_SDK_DISABLED", "false").lower() == "true":
        return False
    if environment.text("OTEL_TRACES_EXPORTER", "otlp") != "otlp":
        return False
    return any(environment.text(name, "") for name in _ENDPOINTS)


class OtelTracer:
    """`Tracer` that exports sampled spans through the OpenTelemetry SDK.

    Args:
        service: name of the service, unless `OTEL_SERVICE_NAME` sets another one.
        version: of NNI.
        exporter: receives the spans; None: the one that the environment describes.

    Raises:
        FailedPreconditionError: the packages are not installed, or the protocol is not gRPC.
    """

    def __init__(self, service: str, version: str, exporter: Any = None) -> None:  # noqa: ANN401 - a SpanExporter; its package is optional
        sdk = _sdk()
        self._sdk = sdk
        self._ids = _PresetIds()
        name = environment.text("OTEL_SERVICE_NAME", f"nni-{service}")
        self._provider = sdk.TracerProvider(
            resource=sdk.Resource.create({"service.name": name, "service.version": version}),
            id_generator=self._ids,
            shutdown_on_exit=False,
        )
        if exporter is None:
            self._provider.add_span_processor(sdk.BatchSpanProcessor(sdk.open_exporter()))
        else:
            self._provider.add_span_processor(sdk.SimpleSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("nni", version)

    def record(self, span: TrialSpan) -> None:
        """Export a trial's span with its computed ids and times, if its trace is sampled."""
        key = (span.experiment_id, span.parameter_id)
        trace_id = trial_trace_id(*key)
        if not self._sampled(trace_id):
            return
        self._ids.trace_id, self._ids.span_id = trace_id, span_id(*key, *span.path)
        parent = None if span.parent is None else span_id(*key, *span.parent)
        made = self._tracer.start_span(
            span.name,
            context=self._sdk.context_below(trace_id, parent),
            attributes=dict(span.attributes),
            start_time=span.start_ms * _NS_PER_MS,
        )
        if span.error:
            made.set_status(self._sdk.Status(self._sdk.StatusCode.ERROR, span.error))
        made.end(max(span.start_ms, span.end_ms) * _NS_PER_MS)

    def traceparent(self, experiment_id: str, parameter_id: int, *path: str | int) -> str:
        """Return the `traceparent` of a trial's span; empty: its trace is not sampled."""
        trace_id = trial_trace_id(experiment_id, parameter_id)
        if not self._sampled(trace_id):
            return ""
        return TraceParent(trace_id, span_id(experiment_id, parameter_id, *path), True).text()  # noqa: FBT003 - sampled

    async def aclose(self) -> None:
        """Shut down the exporter, which sends the remaining spans, within a time limit."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SHUTDOWN_TIMEOUT_S):
                await asyncio.to_thread(self._provider.shutdown)

    def _sampled(self, trace_id: int) -> bool:
        """Return whether the environment's sampler samples a trace; all services decide alike."""
        result = self._provider.sampler.should_sample(None, trace_id, "trial")
        return bool(result.decision.is_sampled())


async def open_tracer(adapters: AsyncExitStack, service: str, version: str) -> Tracer | None:
    """Start the OpenTelemetry tracer of the environment; None: traces are off.

    Args:
        adapters: exit stack that closes it.
        service: name of the service.
        version: of NNI.

    Raises:
        FailedPreconditionError: see `OtelTracer`.
    """
    if not is_configured():
        return None
    # Its imports take up to a third of a second.
    tracer = await asyncio.to_thread(OtelTracer, service, version)
    adapters.push_async_callback(tracer.aclose)
    return tracer


class _PresetIds:
    """OpenTelemetry id generator that returns the ids set just before a span starts."""

    def __init__(self) -> None:
        self.trace_id = 1
        self.span_id = 1

    def generate_trace_id(self) -> int:
        """Return the preset trace id."""
        return self.trace_id

    def generate_span_id(self) -> int:
        """Return the preset span id."""
        return self.span_id

    def is_trace_id_random(self) -> bool:
        """Return False: trace ids are derived, not random."""
        return False


def _sdk() -> Any:  # noqa: ANN401 - a module, imported only where traces are wanted
    try:
        from svc_common.telemetry import otel_sdk
    except ImportError as error:
        raise FailedPreconditionError(
            "the environment asks for traces (OTEL_EXPORTER_OTLP_…), and the packages for them are "
            "missing; install them with: pip install 'nni-svc-common[otel]'"
        ) from error
    protocol = next((text for name in _PROTOCOLS if (text := environment.text(name, ""))), "grpc")
    if protocol != "grpc":
        raise FailedPreconditionError(
            f"{_PROTOCOLS[1]} is {protocol!r}: traces are sent by grpc only; set it to grpc"
        )
    return otel_sdk
