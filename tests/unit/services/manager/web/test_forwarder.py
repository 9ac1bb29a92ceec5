"""Requests forwarded to an owner, a small HTTP server on a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import StreamingResponse

from nni_wire.access import AccessEntry, dump_entries
from svc_common.access.audit import AuditTrail
from svc_common.access.authentication import Authenticator
from svc_common.access.delegation import Delegation
from svc_common.access.keyring import Keyring
from svc_common.errors import UnavailableError
from svc_manager.actors.leasing import OwnedElsewhereError
from svc_manager.domain.lease import ManagerId
from svc_manager.web.forwarder import FORWARDED_HEADER, HttpForwarder
from svc_manager.web.security import CERTIFICATE_NAME

PATH = "/api/v1/nni/experiments/exp1/experiment"


@dataclass
class Owner:
    """HTTP server that records requests and sends a fixed response."""

    port: int
    server: asyncio.Server | None = None
    answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Kept: yes\r\n\r\nhi"
    asked: list[bytes] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    endless: bool = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked.append(await reader.readuntil(b"\r\n\r\n"))
        length = int(self.header("content-length") or "0")
        self.asked.append(await reader.readexactly(length))
        writer.write(self.answer)
        if self.endless:
            await reader.read()  # until the other side goes
            self.left.set()
        writer.close()

    def header(self, name: str) -> str:
        lines = self.asked[0].decode().lower().split("\r\n")
        return next((line.partition(": ")[2] for line in lines if line.startswith(name)), "")

    @property
    def moved(self) -> OwnedElsewhereError:
        manager = ManagerId("owner", "", f"127.0.0.1:{self.port}")
        return OwnedElsewhereError("exp1", manager)


@pytest.fixture
async def owner() -> AsyncIterator[Owner]:
    made = Owner(0)
    made.server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = made.server.sockets[0].getsockname()[1]
    yield made
    made.server.close()


def request(method: str = "GET", query: bytes = b"", **headers: str) -> Request:
    given = {"host": "127.0.0.1:8080", "authorization": "Bearer x", "connection": "keep-alive"}
    return Request(
        {
            "type": "http",
            "method": method,
            "path": PATH,
            "raw_path": PATH.encode(),
            "query_string": query,
            "headers": [
                (name.replace("_", "-").encode(), value.encode())
                for name, value in (given | headers).items()
            ],
        }
    )


async def never() -> None:
    await asyncio.Event().wait()


async def body_of(response: StreamingResponse) -> bytes:
    return b"".join([bytes(piece) async for piece in response.body_iterator])  # type: ignore[arg-type] # all bytes


async def pass_on(owner: Owner, asked: Request, body: bytes = b"") -> StreamingResponse:
    response = await HttpForwarder("boot1").forward(asked, body, owner.moved, never)
    assert isinstance(response, StreamingResponse)
    return response


async def test_request_is_forwarded_unchanged_and_its_response_returned(owner: Owner) -> None:
    response = await pass_on(owner, request("PUT", b"a=1&b=%20", content_type="x/y"), b"{}")

    assert (response.status_code, await body_of(response)) == (200, b"hi")
    assert response.headers["x-kept"] == "yes"
    assert owner.asked[0].startswith(f"PUT {PATH}?a=1&b=%20 HTTP/1.1\r\n".encode())
    assert owner.asked[1] == b"{}"
    assert owner.header("authorization") == "bearer x"
    assert owner.header("host") == "127.0.0.1:8080"
    assert owner.header(FORWARDED_HEADER) == "boot1"
    assert owner.header("connection") == "close"


async def test_caller_with_a_certificate_is_forwarded_by_delegation(
    owner: Owner, tmp_path: Path
) -> None:
    access = tmp_path / "access.json"
    access.write_text(dump_entries([AccessEntry("box", "viewer", common_name="box.lab")]))
    access.chmod(0o600)
    authenticator = Authenticator(Keyring("secret of all managers", access), AuditTrail())
    asked = request(authorization="Basic eA==", nni_on_behalf_of="admin token root")
    asked.scope["state"] = {CERTIFICATE_NAME: "box.lab"}
    asked.state.caller = authenticator.identify("", "", "box.lab", "a test")

    forwarder = HttpForwarder(
        "boot1", delegation=Delegation(authenticator, "secret of all managers")
    )
    response = await forwarder.forward(asked, b"", owner.moved, never)

    assert isinstance(response, StreamingResponse)
    assert await body_of(response) == b"hi"
    assert owner.header("authorization") == "bearer secret of all managers"
    assert owner.header("nni-on-behalf-of") == "viewer certificate box"
    assert owner.asked[0].lower().count(b"authorization:") == 1


async def test_forged_delegation_is_not_forwarded(owner: Owner) -> None:
    response = await pass_on(owner, request(nni_on_behalf_of="admin token root"))

    assert await body_of(response) == b"hi"
    assert owner.header("nni-on-behalf-of") == ""


async def test_error_of_the_owner_is_the_response(owner: Owner) -> None:
    owner.answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone"

    response = await pass_on(owner, request())

    assert (response.status_code, await body_of(response)) == (404, b"none")


async def test_streaming_response_ends_with_its_reader(owner: Owner) -> None:
    owner.endless = True
    owner.answer = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"5\r\nfirst\r\n"
    )

    response = await pass_on(owner, request())
    pieces = response.body_iterator
    assert await anext(aiter(pieces)) == b"first"
    await pieces.aclose()  # type: ignore[attr-defined] # it is a generator

    await asyncio.wait_for(owner.left.wait(), 30)
    assert "transfer-encoding" not in response.headers


async def test_streaming_response_ends_with_the_listener(owner: Owner) -> None:
    owner.endless = True
    owner.answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"
    stopped = asyncio.Event()

    async def until_stopped() -> None:
        await stopped.wait()

    response = await HttpForwarder("boot1").forward(request(), b"", owner.moved, until_stopped)
    assert isinstance(response, StreamingResponse)
    pieces = aiter(response.body_iterator)
    assert await anext(pieces) == b"x"
    stopped.set()

    assert [piece async for piece in pieces] == []


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n"])
async def test_owner_without_a_response_is_unavailable_with_a_remedy(
    owner: Owner, answer: bytes
) -> None:
    owner.answer = answer

    with pytest.raises(UnavailableError, match="another one takes the experiment over"):
        await pass_on(owner, request())


async def test_unreachable_owner_is_unavailable_with_a_remedy(owner: Owner) -> None:
    assert owner.server is not None
    owner.server.close()
    await owner.server.wait_closed()

    with pytest.raises(UnavailableError, match="try again"):
        await pass_on(owner, request())


async def test_forwarded_request_is_not_forwarded_again(owner: Owner) -> None:
    with pytest.raises(OwnedElsewhereError):
        await pass_on(owner, request(nni_forwarded="boot2"))

    assert owner.asked == []


async def test_request_to_a_frozen_owner_ends_when_the_experiment_moves(
    owner: Owner,
) -> None:
    owner.endless = True
    owner.answer = b""
    moves = asyncio.Event()

    async def until_moved(_elsewhere: OwnedElsewhereError) -> None:
        await moves.wait()

    forwarder = HttpForwarder("boot1", until_moved=until_moved)
    asking = asyncio.ensure_future(forwarder.forward(request(), b"", owner.moved, never))
    moves.set()

    with pytest.raises(UnavailableError, match="try again"):
        await asyncio.wait_for(asking, 30)
