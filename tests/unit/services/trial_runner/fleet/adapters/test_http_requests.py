"""Requests to a platform's REST API."""

import ssl
from collections.abc import Iterator

import pytest

from svc_trial_runner.fleet.adapters.http_requests import exchange
from tests.support.json_server import JsonHandler, JsonServer, serving


class _Handler(JsonHandler):
    """Handler that sends back method, path, one header and the body."""

    def respond(self, method: str) -> None:
        body = self.body().decode()
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/other")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_json(200, [method, self.path, self.headers.get("X-Token"), body])


@pytest.fixture
def address() -> Iterator[str]:
    with serving(JsonServer(_Handler), "json") as server:
        yield server.address


def test_request_has_its_method_target_headers_and_body(address: str) -> None:
    found = exchange(address, "PUT", "/jobs?a=1", b"content", {"X-Token": "one"}, 1000)

    assert found == (200, b'["PUT", "/jobs?a=1", "one", "content"]')


def test_longer_body_is_cut_at_the_limit(address: str) -> None:
    assert exchange(address, "GET", "/jobs", None, {}, 6) == (200, b'["GET"')


def test_redirection_is_returned_and_not_followed(address: str) -> None:
    assert exchange(address, "GET", "/moved", None, {}, 1000) == (302, b"")


def test_address_without_a_server_is_an_error() -> None:
    with pytest.raises(ConnectionRefusedError):
        exchange("http://127.0.0.1:1", "GET", "/", None, {}, 1000)


def test_https_with_a_server_without_tls_is_an_error(address: str) -> None:
    with pytest.raises(ssl.SSLError):
        exchange(address.replace("http:", "https:"), "GET", "/", None, {}, 1000)
