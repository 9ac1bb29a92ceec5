"""In-process OTLP collector over gRPC that stores the spans it receives."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Spans by the name of the service that sent them."""

    address: str = ""
    spans: list[tuple[str, Span]] = field(default_factory=list)

    def Export(
        self, request: trace_service_pb2.ExportTraceServiceRequest, context: Any
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        for resource in request.resource_spans:
            service = next(
                item.value.string_value
                for item in resource.resource.attributes
                if item.key == "service.name"
            )
            for scope in resource.scope_spans:
                self.spans.extend((service, span) for span in scope.spans)
        return trace_service_pb2.ExportTraceServiceResponse()

    def traces(self) -> dict[bytes, dict[str, tuple[str, Span]]]:
        """Return service and span by trace id and name of the span."""
        found: dict[bytes, dict[str, tuple[str, Span]]] = {}
        for service, span in list(self.spans):
            found.setdefault(span.trace_id, {})[span.name] = (service, span)
        return found


@contextmanager
def otlp_collector() -> Iterator[Collector]:
    """Serve a collector on a free port."""
    collector = Collector()
    server = grpc.server(ThreadPoolExecutor(4))
    add: Any = trace_service_pb2_grpc.add_TraceServiceServicer_to_server  # untyped
    add(collector, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    collector.address = f"http://127.0.0.1:{port}"
    try:
        yield collector
    finally:
        server.stop(None)
