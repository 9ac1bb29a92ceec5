from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from nni.experiment.errors import ServiceFailedError, UnreachableError
from nni.experiment.rest import get_json


class Scripted(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        answers = {
            "/ok": (200, b'{"a": 1}'),
            "/error": (404, b'{"error": "no such trial"}'),
            "/text": (200, b"<html>"),
            "/token": (200, f'"{self.headers["Authorization"]}"'.encode()),
        }
        code, body = answers.get(self.path, (500, b"oops"))
        self.send_response(code)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the signature of the base
        pass


@pytest.fixture
def url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Scripted) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_json_is_returned(url: str) -> None:
    assert get_json(f"{url}/ok") == {"a": 1}


def test_token_is_shown(url: str) -> None:
    assert get_json(f"{url}/token", "t0ken") == "Bearer t0ken"


def test_text_of_an_error_is_repeated(url: str) -> None:
    with pytest.raises(ServiceFailedError, match="no such trial"):
        get_json(f"{url}/error")
    with pytest.raises(ServiceFailedError, match="oops"):
        get_json(f"{url}/other")


def test_invalid_json_is_no_known_service(url: str) -> None:
    with pytest.raises(UnreachableError):
        get_json(f"{url}/text")


def test_proxies_are_bypassed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")

    assert get_json(f"{url}/ok") == {"a": 1}
