"""Telemetry of gRPC calls: ids in log lines, counts by status code, durations."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import grpc
import grpc.aio

from svc_common.logs import bound
from svc_common.telemetry.metrics import Counter, Histogram, Registry

REQUEST_ID_KEY: Final = "x-request-id"
"""Metadata key of the request id of a call, which stands in the logs of client and server."""
_REQUEST_ID_LIMIT: Final = 64
_IDS: Final = {"experiment": "experiment_id", "trial": "trial_id", "runner": "runner_id"}
"""Fields of requests by the log keys that they are bound to."""

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class CallMetrics:
    """Prometheus counter and histogram of the gRPC calls of a process.

    Args:
        registry: renders them.
    """

    def __init__(self, registry: Registry) -> None:
        self.calls: Counter = registry.counter(
            "nni_grpc_requests_total", "gRPC calls that have ended", ("method", "code")
        )
        self.seconds: Histogram = registry.histogram(
            "nni_grpc_request_seconds",
            "Time to answer a gRPC call; streams left out",
            labels=("method",),
        )


class CallTelemetryInterceptor(grpc.aio.ServerInterceptor):
    """gRPC server interceptor that counts and times calls, and binds ids to their log lines.

    Args:
        metrics: counts the calls; None: they are not counted.
    """

    def __init__(self, metrics: CallMetrics | None) -> None:
        self._metrics = metrics

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Return a handler that measures the call; health and request streams keep theirs."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or method.startswith("/grpc."):
            return handler
        return self._one(handler, method) if handler.unary_unary else self._many(handler, method)

    def _one(self, handler: Handler, method: str) -> Handler:
        inner: Any = handler.unary_unary

        async def call(request: Any, context: Context) -> Any:  # noqa: ANN401 - any message
            with self._noted(method, request, context, timed=True):
                return await inner(request, context)

        made: Handler = grpc.unary_unary_rpc_method_handler(
            call,
            handler.request_deserializer,
            handler.response_serializer,
        )
        return made

    def _many(self, handler: Handler, method: str) -> Handler:
        inner: Any = handler.unary_stream
        if inner is None:
            return handler  # takes a stream: ours have a context of their own

        async def call(request: Any, context: Context) -> AsyncIterator[Any]:  # noqa: ANN401 - as above
            with self._noted(method, request, context, timed=False):
                async for answer in inner(request, context):
                    yield answer

        made: Handler = grpc.unary_stream_rpc_method_handler(
            call,
            handler.request_deserializer,
            handler.response_serializer,
        )
        return made

    @contextmanager
    def _noted(self, method: str, request: Any, context: Context, *, timed: bool) -> Iterator[None]:  # noqa: ANN401 - any message
        begun_s = time.perf_counter()
        try:
            with bound(**log_fields(request, context)):
                yield
        finally:
            if self._metrics is not None:
                self._metrics.calls.inc(method, _code_name(context))
                if timed:
                    self._metrics.seconds.observe(time.perf_counter() - begun_s, method)


def log_fields(request: Any, context: Context) -> dict[str, str]:  # noqa: ANN401 - any message
    """Return a call's log fields: request id; experiment, trial and runner id of its request."""
    facts = {"request": _request_id(request, context)}
    for key, field in _IDS.items():
        value = getattr(request, field, "")
        if value and isinstance(value, str):
            facts[key] = value[:_REQUEST_ID_LIMIT]
    return facts


def _request_id(request: Any, context: Context) -> str:  # noqa: ANN401 - any message
    given = getattr(request, "request_id", "")
    if not given:
        metadata = context.invocation_metadata() or ()
        given = next((value for key, value in metadata if key == REQUEST_ID_KEY), "")
    return str(given)[:_REQUEST_ID_LIMIT] if given else secrets.token_hex(4)


def _code_name(context: Context) -> str:
    code: Any = context.code()
    if isinstance(code, grpc.StatusCode):
        return str(code.name)
    return next((str(one.name) for one in grpc.StatusCode if one.value[0] == (code or 0)), "OK")
