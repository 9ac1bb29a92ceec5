"""HTTP connections to an S3 server with retries, and the mapping of its errors."""

import ssl
import threading
import time
from pathlib import Path
from typing import Any, Final

import urllib3
from minio.error import S3Error
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    retry_if_result,
    sleep_using_event,
    stop_after_attempt,
    stop_when_event_set,
    wait_random_exponential,
)
from urllib3.exceptions import HTTPError

from svc_common.errors import (
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    ServiceError,
    UnavailableError,
)
from svc_common.storage.s3_settings import S3Settings

CONNECTIONS: Final = 16
"""Concurrent calls, each with a thread and a connection."""
ATTEMPTS: Final = 5
"""Attempts of each HTTP request."""
_FIRST_WAIT_S: Final = 0.1
_LONGEST_WAIT_S: Final = 2.0
"""Between attempts; at most 5 s in all before an error is raised."""
_CONNECT_S: Final = 5.0
_READ_S: Final = 60.0
"""Longest silence of the server."""
_UNREACHABLE_S: Final = 2.0
"""A server that was unreachable so recently gets one attempt only: a thousand callers must not wait
in turn."""
_TRANSIENT_STATUSES: Final = frozenset({429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""
_ABSENT: Final = frozenset({"NoSuchKey", "NoSuchObject", "NoSuchBucket", "ResourceNotFound"})
_FORBIDDEN: Final = frozenset(
    {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "AllAccessDisabled"}
)
_FULL: Final = frozenset(
    {"QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "EntityTooLarge"}
)


class ServerUnreachableError(Exception):
    """Error: no attempt reached the server."""


class RetryingPool(urllib3.PoolManager):
    """urllib3 connection pool that retries requests with back-off after transient errors.

    A request is one part of an upload, so a retry does not repeat earlier parts. Every S3 request
    is idempotent. Calls block: use the pool in threads.

    Args:
        closing: when it is set, waits end and no request is retried.
        ca_file: authority of the server's certificate, beside those of the system.
    """

    def __init__(self, closing: threading.Event, ca_file: Path | None = None) -> None:
        encryption = ssl.create_default_context()
        if ca_file is not None:
            encryption.load_verify_locations(ca_file)
        super().__init__(
            ssl_context=encryption,
            num_pools=1,
            maxsize=CONNECTIONS,
            retries=False,
            timeout=urllib3.Timeout(connect=_CONNECT_S, read=_READ_S),
        )
        self._closing = closing
        self._unreachable_since_s: float | None = None
        """Monotonic time when the server was found unreachable; None: it has responded since."""

    def urlopen(  # type: ignore[override] # the client only uses these
        self,
        method: str,
        url: str,
        **options: Any,  # noqa: ANN401 - as urllib3 has them
    ) -> urllib3.BaseHTTPResponse:
        """Send an HTTP request; repeat transient failures, only once if the server was away.

        Raises:
            ServerUnreachableError: the server could not be reached.
        """
        send = super().urlopen
        attempts = Retrying(
            retry=retry_if_exception_type(HTTPError) | retry_if_result(_is_transient),
            stop=stop_after_attempt(1 if self._recently_unreachable() else ATTEMPTS)
            | stop_when_event_set(self._closing),
            wait=wait_random_exponential(multiplier=_FIRST_WAIT_S, max=_LONGEST_WAIT_S),
            sleep=sleep_using_event(self._closing),
            retry_error_callback=_last_response,
        )
        try:
            answer = attempts(send, method, url, **options)
        except ServerUnreachableError:
            self._unreachable_since_s = time.monotonic()
            raise
        self._unreachable_since_s = None
        return answer

    def _recently_unreachable(self) -> bool:
        return (
            self._unreachable_since_s is not None
            and time.monotonic() - self._unreachable_since_s < _UNREACHABLE_S
        )


def service_error(error: Exception, key: str, settings: S3Settings) -> ServiceError:
    """Convert an S3 client's error to one of: not found, refused, out of quota, unavailable.

    Args:
        error: error of the client.
        key: of the blob.
        settings: of the server.
    """
    code = error.code if isinstance(error, S3Error) else None
    if code in _ABSENT:
        return NotFoundError("blob", key)
    place = f"bucket {settings.bucket!r} of {settings.endpoint}"
    if code in _FORBIDDEN:
        return PermissionDeniedError(
            f"{place} refuses the account {settings.access_key!r} ({code}); check "
            "NNI_S3_ACCESS_KEY, NNI_S3_SECRET_KEY and the rights of that account"
        )
    if code in _FULL:
        return ResourceExhaustedError(f"{place} takes no more bytes ({code}); raise its quota")
    return UnavailableError(f"{place} cannot be used: {error}")


def _is_transient(response: urllib3.BaseHTTPResponse) -> bool:
    if response.status not in _TRANSIENT_STATUSES:
        return False
    response.drain_conn()
    return True


def _last_response(state: RetryCallState) -> urllib3.BaseHTTPResponse:
    """Return the last attempt's response; raise ServerUnreachableError if it had none."""
    outcome = state.outcome
    assert outcome is not None  # tenacity stops after an attempt, never before
    error = outcome.exception()
    if error is not None:
        raise ServerUnreachableError(str(error)) from error
    response: urllib3.BaseHTTPResponse = outcome.result()
    return response
