from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from minio.error import S3Error
from urllib3 import HTTPResponse

from svc_common.errors import (
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    ServiceError,
    UnavailableError,
)
from svc_common.storage.s3_connection import (
    ATTEMPTS,
    RetryingPool,
    ServerUnreachableError,
    service_error,
)
from svc_common.storage.s3_settings import S3Settings

SETTINGS = S3Settings("http://127.0.0.1:1", "account", "secret")


class Hurried(threading.Event):
    """Never set; its waits return at once."""

    def __init__(self) -> None:
        super().__init__()
        self.waits_s: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits_s.append(timeout)
        return self.is_set()


@contextmanager
def scripted_server(statuses: list[int]) -> Iterator[str]:
    """Serve these statuses to successive requests; repeat the last."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(statuses.pop(0) if len(statuses) > 1 else statuses[0])
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def patient_pool(closing: threading.Event) -> Iterator[RetryingPool]:
    pool = RetryingPool(closing)
    try:
        yield pool
    finally:
        pool.clear()


def test_transient_errors_are_retried_with_growing_waits() -> None:
    closing = Hurried()
    with scripted_server([503, 500, 200]) as url, patient_pool(closing) as pool:
        answer = pool.urlopen("PUT", url, body=b"part")

    assert answer.status == 200
    assert len(closing.waits_s) == 2
    assert all(wait_s is not None and 0 <= wait_s <= 2.0 for wait_s in closing.waits_s)


def test_last_error_response_is_returned_to_the_client() -> None:
    closing = Hurried()
    with scripted_server([503]) as url, patient_pool(closing) as pool:
        answer = pool.urlopen("PUT", url, body=b"part")

    assert answer.status == 503
    assert len(closing.waits_s) == ATTEMPTS - 1


def test_response_without_a_transient_status_is_not_retried() -> None:
    closing = Hurried()
    with scripted_server([403, 200]) as url, patient_pool(closing) as pool:
        answer = pool.urlopen("PUT", url, body=b"part")

    assert answer.status == 403
    assert closing.waits_s == []


def test_unreachable_server_is_an_error_after_the_last_attempt() -> None:
    closing = Hurried()
    with patient_pool(closing) as pool, pytest.raises(ServerUnreachableError, match="refused"):
        pool.urlopen("PUT", "http://127.0.0.1:1/", body=b"part")

    assert len(closing.waits_s) == ATTEMPTS - 1


def test_recently_unreachable_server_gets_one_attempt() -> None:
    closing = Hurried()
    with patient_pool(closing) as pool:
        for _ in range(50):
            with pytest.raises(ServerUnreachableError):
                pool.urlopen("PUT", "http://127.0.0.1:1/", body=b"part")

    assert len(closing.waits_s) == ATTEMPTS - 1


def test_nothing_is_retried_when_the_store_is_closing() -> None:
    closing = Hurried()
    closing.set()
    with patient_pool(closing) as pool, pytest.raises(ServerUnreachableError):
        pool.urlopen("PUT", "http://127.0.0.1:1/", body=b"part")

    assert closing.waits_s == []


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("NoSuchKey", NotFoundError),
        ("NoSuchBucket", NotFoundError),
        ("SignatureDoesNotMatch", PermissionDeniedError),
        ("QuotaExceeded", ResourceExhaustedError),
        ("InternalError", UnavailableError),
    ],
)
def test_refusals_are_mapped_to_errors(code: str, kind: type[ServiceError]) -> None:
    refusal = S3Error(HTTPResponse(status=400), code, "text", "/k/1", "r", "h")

    error = service_error(refusal, "k/1", SETTINGS)

    assert type(error) is kind
    assert "secret" not in error.message
