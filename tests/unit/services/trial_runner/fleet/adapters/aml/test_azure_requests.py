from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from svc_trial_runner.fleet.adapters.aml.azure_requests import (
    AmlRefusalError,
    AzureRequests,
    LoginError,
    mapping,
)
from svc_trial_runner.fleet.ports import PlatformError
from tests.support.aml_server import Tokens

REMEDY = "get a role"
ANSWERS = {
    "/login": (200, b"<html>"),
    "/elsewhere": (302, b""),
    "/busy": (429, b'{"error": {"code": "TooManyRequests", "message": "wait"}}'),
    "/denied": (403, b'{"error": {"code": "AuthorizationFailed", "message": "no  right"}}'),
    "/signed-out": (401, b'{"error": {"code": "InvalidToken", "message": "expired"}}'),
    "/broken": (500, b"an error"),
    "/storage": (404, b"<?xml?><Error><Code>BlobNotFound</Code><Message>none</Message></Error>"),
    "/empty": (400, b""),
    "/nothing": (202, b""),
}


class _Handler(BaseHTTPRequestHandler):
    """Service with fixed answers."""

    def do_GET(self) -> None:
        status, content = ANSWERS[self.path]
        self.send_response(status)
        self.send_header("Location", "http://127.0.0.1:1/")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_PUT(self) -> None:
        names = ("Authorization", "Accept", "Content-Type")
        body = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
        content = json.dumps({**{name: self.headers[name] for name in names}, "body": body})
        self.send_response(200)
        self.end_headers()
        self.wfile.write(content.encode())

    def log_message(self, *args: object) -> None:
        """Log nothing."""


@contextmanager
def served() -> Iterator[str]:
    """Serve the answers in a thread; yield the address."""
    server = HTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def azure() -> Iterator[AzureRequests]:
    with served() as address:
        yield AzureRequests(address, "scope", Tokens(), REMEDY)


@pytest.mark.parametrize(
    ("path", "words", "permanent"),
    [
        ("/elsewhere", "redirects to another address", True),
        ("/busy", "TooManyRequests: wait", False),
        ("/denied", "AuthorizationFailed: no right", False),
        ("/signed-out", "InvalidToken: expired", False),
        ("/broken", "an error", False),
        ("/storage", "BlobNotFound: none", True),
        ("/empty", "HTTP status 400", True),
    ],
)
def test_refusal_has_the_words_of_azure(
    azure: AzureRequests, path: str, words: str, permanent: bool
) -> None:
    with pytest.raises(AmlRefusalError, match=words) as caught:
        azure.send_json("GET", path)

    assert caught.value.permanent is permanent


@pytest.mark.parametrize(
    ("path", "denied"), [("/denied", True), ("/signed-out", True), ("/storage", False)]
)
def test_missing_right_has_a_remedy(azure: AzureRequests, path: str, *, denied: bool) -> None:
    with pytest.raises(AmlRefusalError) as caught:
        azure.send("GET", path)

    assert caught.value.denied is denied
    assert caught.value.remedy == (REMEDY if denied else "")
    assert caught.value.status == ANSWERS[path][0]


def test_request_has_token_types_and_body(azure: AzureRequests) -> None:
    sent = {"Authorization": "Bearer token of scope", "Accept": "application/json"}

    with_body = azure.send_json("PUT", "/", {"a": 1})
    without = azure.send_json("PUT", "/")

    assert with_body == {**sent, "Content-Type": "application/json", "body": '{"a": 1}'}
    assert without == {**sent, "Content-Type": None, "body": ""}


def test_page_of_a_login_is_no_answer(azure: AzureRequests) -> None:
    with pytest.raises(PlatformError, match="GET /login without JSON"):
        azure.send_json("GET", "/login")


def test_answer_without_a_body_is_empty(azure: AzureRequests) -> None:
    assert azure.send_json("GET", "/nothing") == {}


def test_address_where_nothing_listens_is_named() -> None:
    away = AzureRequests("http://127.0.0.1:1", "scope", Tokens(), REMEDY)

    with pytest.raises(PlatformError, match=r"Azure at http://127\.0\.0\.1:1 cannot be reached"):
        away.send("GET", "/")


def test_nothing_is_sent_without_a_login() -> None:
    away = AzureRequests("http://127.0.0.1:1", "scope", Tokens("no login"), REMEDY)

    with pytest.raises(LoginError, match="no login"):
        away.send("GET", "/")


def test_part_of_another_type_counts_as_empty() -> None:
    assert [mapping(one) for one in ({"a": 1}, None, "text", [1])] == [{"a": 1}, {}, {}, {}]


@pytest.mark.parametrize(
    ("status", "permanent"),
    [(300, True), (400, True), (401, False), (403, False), (429, False), (499, True), (500, False)],
)
def test_only_refusals_of_the_request_are_permanent(status: int, *, permanent: bool) -> None:
    assert AmlRefusalError(status, "Code", "words").permanent is permanent


def test_words_of_azure_are_shortened_to_400_characters(
    azure: AzureRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ANSWERS, "/long", (400, b"a" * 500))

    with pytest.raises(AmlRefusalError) as caught:
        azure.send("GET", "/long")

    # Code, colon and space count.
    assert str(caught.value) == "a" * 398


def test_code_of_a_refusal_is_known(azure: AzureRequests) -> None:
    codes = {}
    for path in ("/storage", "/denied", "/empty", "/elsewhere"):
        with pytest.raises(AmlRefusalError) as caught:
            azure.send("GET", path)
        codes[path] = caught.value.code

    assert codes == {
        "/storage": "BlobNotFound", "/denied": "AuthorizationFailed", "/empty": "",
        "/elsewhere": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"error": "odd"}', '{"error": "odd"}'),
        (b'{"error": {"message": "m"}}', "m"),
        (b'{"error": {"code": "C"}}', "C"),
        (b'["error"]', '["error"]'),
    ],
)
def test_words_of_a_refusal_are_what_is_known(
    azure: AzureRequests, monkeypatch: pytest.MonkeyPatch, content: bytes, words: str
) -> None:
    monkeypatch.setitem(ANSWERS, "/odd", (400, content))

    with pytest.raises(AmlRefusalError) as caught:
        azure.send("GET", "/odd")

    assert str(caught.value) == words


def test_list_in_place_of_an_object_is_no_answer(
    azure: AzureRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ANSWERS, "/list?a=b", (200, b"[]"))

    with pytest.raises(PlatformError, match="answered GET /list without JSON") as caught:
        azure.send_json("GET", "/list?a=b")

    assert "is endpoint that of Azure Resource Manager" in caught.value.remedy


@pytest.mark.parametrize(("status", "is_refused"), [(299, False), (300, True), (399, True)])
def test_redirections_are_refused(
    azure: AzureRequests, monkeypatch: pytest.MonkeyPatch, status: int, *, is_refused: bool
) -> None:
    monkeypatch.setitem(ANSWERS, "/moved", (status, b"{}"))

    if not is_refused:
        assert azure.send("GET", "/moved") == "{}"
        return
    with pytest.raises(AmlRefusalError, match="redirects to another address") as caught:
        azure.send("GET", "/moved")
    assert caught.value.status == status
