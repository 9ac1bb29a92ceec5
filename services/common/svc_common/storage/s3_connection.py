"""The connection to an S3 server: asks again while it stumbles, and explains what it refuses."""

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
"""Calls at once, each with a thread and a connection."""
ATTEMPTS: Final = 5
"""Of each HTTP request."""
_FIRST_WAIT_S: Final = 0.1
_LONGEST_WAIT_S: Final = 2.0
"""Between attempts; at most 5 s in all before an error is told."""
_CONNECT_S: Final = 5.0
_ANSWER_S: Final = 60.0
"""How long the server may say nothing."""
_JUST_AWAY_S: Final = 2.0
"""A server that was away so lately is asked once only: a thousand callers must not wait in turn."""
_STUMBLES: Final = frozenset({429, 500, 502, 503, 504})
"""Statuses after which the same request may work."""
_ABSENT: Final = frozenset({"NoSuchKey", "NoSuchObject", "NoSuchBucket", "ResourceNotFound"})
_FORBIDDEN: Final = frozenset(
    {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "AllAccessDisabled"}
)
_FULL: Final = frozenset(
    {"QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "EntityTooLarge"}
)


class ServerAwayError(Exception):
    """No attempt reached the server."""


class RetryingPool(urllib3.PoolManager):
    """Connections that send each request again while the server stumbles.

    A request is one part of an upload, so a stumble does not repeat what was sent before. Any S3
    request may be repeated without harm. Calls block: use it in threads.

    Args:
        closing: when it is set, waits end and nothing is tried again.
        ca_file: authority that may have signed the server, beside those of the system.
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
            timeout=urllib3.Timeout(connect=_CONNECT_S, read=_ANSWER_S),
        )
        self._closing = closing
        self._away_s: float | None = None
        """When it was found to be away, by the monotonic clock; None: it answered since."""

    def urlopen(  # type: ignore[override] # the client only uses these
        self,
        method: str,
        url: str,
        **options: Any,  # noqa: ANN401 - as urllib3 has them
    ) -> urllib3.BaseHTTPResponse:
        """Send a request.

        Raises:
            ServerAwayError: the server could not be reached.
        """
        send = super().urlopen
        attempts = Retrying(
            retry=retry_if_exception_type(HTTPError) | retry_if_result(_stumbled),
            stop=stop_after_attempt(1 if self._just_away() else ATTEMPTS)
            | stop_when_event_set(self._closing),
            wait=wait_random_exponential(multiplier=_FIRST_WAIT_S, max=_LONGEST_WAIT_S),
            sleep=sleep_using_event(self._closing),
            retry_error_callback=_last_answer,
        )
        try:
            answer = attempts(send, method, url, **options)
        except ServerAwayError:
            self._away_s = time.monotonic()
            raise
        self._away_s = None
        return answer

    def _just_away(self) -> bool:
        return self._away_s is not None and time.monotonic() - self._away_s < _JUST_AWAY_S


def service_error(error: Exception, key: str, settings: S3Settings) -> ServiceError:
    """Give the error that a caller can act on.

    Args:
        error: what the client raised.
        key: of the blob concerned.
        settings: of the server that was asked.
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


def _stumbled(response: urllib3.BaseHTTPResponse) -> bool:
    if response.status not in _STUMBLES:
        return False
    response.drain_conn()
    return True


def _last_answer(state: RetryCallState) -> urllib3.BaseHTTPResponse:
    """Give the last answer, or say that there was none."""
    outcome = state.outcome
    assert outcome is not None  # it stops after an attempt, never before
    error = outcome.exception()
    if error is not None:
        raise ServerAwayError(str(error)) from error
    response: urllib3.BaseHTTPResponse = outcome.result()
    return response
