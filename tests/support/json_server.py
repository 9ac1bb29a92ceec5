"""HTTP servers of tests on loopback whose responses are JSON; base of platforms' small servers."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar


class JsonServer(ThreadingHTTPServer):
    """Server on a free port of loopback; each request has a thread.

    Args:
        handler: class of its handlers.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, handler: type[JsonHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class JsonHandler(BaseHTTPRequestHandler, ABC):
    """Handler of a connection, which may have several requests."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @abstractmethod
    def respond(self, method: str) -> None:
        """Read the request and send the response."""

    def do_GET(self) -> None:
        self.respond("GET")

    def do_POST(self) -> None:
        self.respond("POST")

    def do_PUT(self) -> None:
        self.respond("PUT")

    def do_PATCH(self) -> None:
        self.respond("PATCH")

    def do_DELETE(self) -> None:
        self.respond("DELETE")

    def log_message(self, *args: object) -> None:
        """Log nothing."""

    def body(self) -> bytes:
        """Return the body of the request."""
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def send_json(self, status: int, answer: Any) -> None:
        """Send a response with a value as JSON."""
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


_Server = TypeVar("_Server", bound=JsonServer)


@contextmanager
def serving(server: _Server, name: str) -> Iterator[_Server]:
    """Serve in a thread of a name until the block ends, then close the server."""
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), name=name)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _FixedServer(JsonServer):
    """Server with one answer to all requests."""

    def __init__(self, answer: Any) -> None:
        super().__init__(_FixedHandler)
        self.answer = answer


class _FixedHandler(JsonHandler):
    server: _FixedServer

    def respond(self, method: str) -> None:
        del method
        self.body()
        self.send_json(200, self.server.answer)


@contextmanager
def fixed_answer(answer: Any) -> Iterator[str]:
    """Serve one value as the answer to all requests; yield the address."""
    with serving(_FixedServer(answer), "fixed answer") as server:
        yield server.address
