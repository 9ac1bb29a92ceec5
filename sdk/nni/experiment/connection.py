"""Connection to the manager that survives restarts of the services.

A manager that is being restarted by its supervisor is waited for, and the call repeated: every
changing call has a request id, so that it takes effect once.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, Final, Self

import grpc

from nni.experiment.client_errors import deadline_passed, is_passing, translated
from nni.experiment.endpoint import Endpoint, remote_services_endpoint
from nni.experiment.errors import RefusedError, UnreachableError, WrongStateError
from nni.experiment.local_shape import recovered_endpoint
from nni_proto.bytes.v1 import byte_service_pb2_grpc
from nni_proto.experiment.v1 import (
    experiment_service_pb2_grpc,
    history_service_pb2_grpc,
    study_service_pb2_grpc,
)
from nni_proto.runner.v1 import invitation_service_pb2_grpc, pool_service_pb2_grpc
from nni_proto.trial.v1 import trial_service_pb2_grpc
from nni_wire.limits import grpc_channel_options
from nni_wire.local_peers import ForeignOwnerError, check_owner, is_loopback
from nni_wire.metadata import bearer

CALL_TIMEOUT_S: Final = 30.0
RESTART_S: Final = 20.0
"""Time to wait for a manager that does not answer."""
RETRY_STEP_S: Final = 0.2
"""Between two tries while the manager is away; its supervisor needs about a second."""

CLOSE_S: Final = 2.0
"""Longest wait for calls that gRPC holds to be under way when the connection is closed."""


class Connection:
    """gRPC connection to a manager that waits, and reconnects, while it restarts; thread-safe.

    Use it as a context manager or call `close`; both may happen twice.

    Args:
        endpoint: where the manager listens.
        restart_s: how long it is waited for while it does not answer.
        retry_step_s: between two tries in that time.
        close_s: how long `close` waits for gRPC.
        call_limit_s: longest time of a call; calls have limits of their own, too.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        restart_s: float = RESTART_S,
        retry_step_s: float = RETRY_STEP_S,
        close_s: float = CLOSE_S,
        call_limit_s: float = math.inf,
    ) -> None:
        self._endpoint = endpoint
        self._call_limit_s = call_limit_s
        self._close_s = close_s
        self._restart_s = restart_s
        self._retry_step_s = retry_step_s
        self._moving = threading.Lock()
        self._closed = False
        self._open(endpoint)

    def _open(self, endpoint: Endpoint) -> None:
        """Open a channel to an endpoint and replace all stubs; the channel is set last."""
        channel = _channel(endpoint)
        self._metadata = bearer(endpoint.token) if endpoint.token else ()
        self._experiments: Any = experiment_service_pb2_grpc.ExperimentServiceStub(channel)
        self._bytes: Any = byte_service_pb2_grpc.ByteServiceStub(channel)
        self._invitations: Any = invitation_service_pb2_grpc.InvitationServiceStub(channel)
        self._pools: Any = pool_service_pb2_grpc.PoolServiceStub(channel)
        self._histories: Any = history_service_pb2_grpc.HistoryServiceStub(channel)
        self._studies: Any = study_service_pb2_grpc.StudyServiceStub(channel)
        self._trials: Any = trial_service_pb2_grpc.TrialServiceStub(channel)
        self._channel = channel

    @property
    def endpoint(self) -> Endpoint:
        """Current addresses of the services; a restart may replace them."""
        return self._endpoint

    def close(self) -> None:
        """Close the connection; leave a channel that does not close to a thread of its own.

        gRPC waits for its calls, and a call that Ctrl-C interrupts at the wrong instant never ends.
        """
        with self._moving:  # else a thread that reconnects would leave an open channel
            self._closed = True
        closing = threading.Thread(target=self._channel.close, name="close channel", daemon=True)
        try:
            closing.start()
        except RuntimeError:  # from Python 3.12 on none starts while the interpreter ends
            return
        closing.join(self._close_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def patiently(self, attempt: Callable[[], Any]) -> Any:  # noqa: ANN401 - any answer
        """Call ``attempt``, repeated while the manager restarts, within a limit; return its result.

        A passed deadline is an attempt's own business: it is asked again at once.

        Raises:
            ExperimentError: the call was refused, or the manager does not come back.
        """
        away_since: float | None = None
        while True:
            self._check_owner()
            channel = self._channel
            try:
                return attempt()
            except grpc.RpcError as error:
                away_since = self._retry_or_raise(error, away_since)
            except ValueError as error:
                self._raise_unless_replaced(channel, error)

    def _started(self, start: Callable[[], Any]) -> Any:  # noqa: ANN401 - the stubs are untyped
        """Return the stream that `start` begins; begin again if a thread has replaced the channel.

        Raises:
            UnreachableError: the port belongs to another user.
            WrongStateError: the client was closed.
        """
        while True:
            self._check_owner()
            channel = self._channel
            try:
                return start()
            except ValueError as error:
                self._raise_unless_replaced(channel, error)

    def _resumed(
        self,
        method: Callable[[], Any],
        request: object,
        go_on: Callable[[Any], None],
        *,
        follow: bool,
    ) -> Generator[Any]:
        """Yield a stream's messages; repeat a broken call, continued after the last message.

        Args:
            method: returns the method; a restarted manager may have another address.
            request: of the call.
            go_on: changes the request so that the next stream begins behind an answer.
            follow: whether the stream has no end of its own.
        """
        away_since: float | None = None
        timeout_s = None if follow else CALL_TIMEOUT_S
        while True:
            stream = self._started(
                lambda: method()(request, timeout=timeout_s, metadata=self._metadata)
            )
            try:
                for item in stream:
                    yield item
                    go_on(item)
                    away_since = None
            except grpc.RpcError as error:
                away_since = self._retry_or_raise(error, away_since)
            else:
                return
            finally:
                stream.cancel()

    def _raise_unless_replaced(self, channel: grpc.Channel, error: ValueError) -> None:
        """Raise an error that gRPC raised for a channel, unless that was replaced since.

        Raises:
            WrongStateError: the client was closed.
        """
        if self._closed:
            raise _closed_error() from error
        if self._channel is channel:
            raise error

    def _check_owner(self) -> None:
        """Raise UnreachableError if a process of another user holds the manager's local port.

        The channel connects again by itself, so this precedes each call: the port is free for every
        user once the services were killed.

        Raises:
            UnreachableError: the port belongs to another user.
        """
        if self._endpoint.remote is not None:
            return
        host, _, port = self._endpoint.grpc.rpartition(":")
        try:
            if port.isdigit() and is_loopback(host):
                check_owner(int(port), host=host)
        except ForeignOwnerError as error:
            raise UnreachableError(str(error)) from error

    def _retry_or_raise(self, error: grpc.RpcError, away_since: float | None) -> float | None:
        """Pause; return since when the manager is away (None: a deadline passed); or raise.

        Raises:
            ExperimentError: the call was refused, or the manager does not come back.
        """
        if not is_passing(error):
            raise translated(error) from error
        if deadline_passed(error):
            return None
        since = away_since or time.monotonic()
        self._after_failure(error, since + self._restart_s)
        return since

    def _pages(self, method: Callable[[], Any], request: Any) -> Iterator[Any]:  # noqa: ANN401 - any listing request
        while True:
            page = self._call(method, request)
            yield page
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def _call(
        self,
        method: Callable[[], Any],
        request: object,
        timeout_s: float = CALL_TIMEOUT_S,
    ) -> Any:  # noqa: ANN401 - any answer; the callers name its type
        limit_s = min(timeout_s, self._call_limit_s)
        give_up_at = time.monotonic() + self._restart_s
        while True:
            self._check_owner()
            channel = self._channel
            try:
                return method()(request, timeout=limit_s, metadata=self._metadata)
            except grpc.RpcError as error:
                if deadline_passed(error) or not is_passing(error):
                    raise translated(error) from error
                self._after_failure(error, give_up_at)
            except ValueError as error:
                self._raise_unless_replaced(channel, error)

    def _after_failure(self, error: grpc.RpcError, give_up_at: float) -> None:
        """Raise at the limit; else wait a moment, reconnect if the manager's address changed."""
        if self._closed:
            raise _closed_error() from error
        if time.monotonic() >= give_up_at:
            raise translated(error) from error
        time.sleep(self._retry_step_s)
        remote = self._endpoint.remote
        endpoint = recovered_endpoint() if remote is None else remote_services_endpoint(remote)
        if endpoint is None:
            raise UnreachableError(
                "the services are no longer up; start them with: nnictl up"
            ) from error
        with self._moving:
            if endpoint != self._endpoint and not self._closed:
                earlier = self._channel
                self._open(endpoint)
                self._endpoint = endpoint
                earlier.close()


def _closed_error() -> WrongStateError:
    return WrongStateError(
        "the client was closed; open another one, or use it inside its `with` block"
    )


def _channel(endpoint: Endpoint) -> grpc.Channel:
    """Return a channel to an endpoint, with TLS if it is remote and its address is https.

    Raises:
        RefusedError: a file of certificates cannot be read.
    """
    options: list[tuple[str, int]] = [*grpc_channel_options()]
    remote = endpoint.remote
    if remote is None:
        # A proxy of the user's environment cannot reach this machine's loopback.
        return grpc.insecure_channel(
            endpoint.grpc, options=[*options, ("grpc.enable_http_proxy", 0)]
        )
    if not endpoint.http.startswith("https:"):
        return grpc.insecure_channel(endpoint.grpc, options=options)
    try:
        authority, key, certificate = (
            Path(name).expanduser().read_bytes() if name else None
            for name in (remote.ca_file, remote.key, remote.certificate)
        )
    except OSError as error:
        raise RefusedError(f"a certificate cannot be read: {error}") from error
    credentials = grpc.ssl_channel_credentials(authority, key, certificate)
    return grpc.secure_channel(endpoint.grpc, credentials, options=options)
