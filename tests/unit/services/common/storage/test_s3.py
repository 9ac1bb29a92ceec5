from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from svc_common.errors import DataLossError, UnavailableError
from svc_common.storage.s3 import S3BlobStore
from svc_common.storage.s3_settings import S3Settings

CONTENT = b"what was stored" * 1000
KEY = f"sha256/{hashlib.sha256(CONTENT).hexdigest()}"


@contextmanager
def scripted_server(bodies: list[bytes]) -> Iterator[S3Settings]:
    """Serve these bodies to successive GETs, with the length of the right one; repeat the last."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = bodies.pop(0) if len(bodies) > 1 else bodies[0]
            self.send_response(200)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield S3Settings(f"http://127.0.0.1:{server.server_port}", "account", "secret")
        finally:
            server.shutdown()
            thread.join()


TORN = CONTENT[:100]
DAMAGED = b"X" + CONTENT[1:]


@pytest.mark.parametrize("first", [TORN, DAMAGED], ids=["torn", "damaged"])
async def test_damaged_response_is_requested_again(first: bytes, tmp_path: Path) -> None:
    with scripted_server([first, CONTENT, first, CONTENT]) as settings:
        async with S3BlobStore(settings) as store:
            assert await store.get(KEY) == CONTENT
            await store.fetch(KEY, tmp_path / "out")

    assert (tmp_path / "out").read_bytes() == CONTENT


async def test_response_that_is_always_cut_off_is_unavailable(tmp_path: Path) -> None:
    with scripted_server([TORN]) as settings:
        async with S3BlobStore(settings) as store:
            with pytest.raises(UnavailableError, match="bucket 'nni'"):
                await store.fetch(KEY, tmp_path / "out")

    assert list(tmp_path.iterdir()) == []


async def test_blob_damaged_at_rest_is_data_loss() -> None:
    with scripted_server([DAMAGED]) as settings:
        async with S3BlobStore(settings) as store:
            with pytest.raises(DataLossError) as loss:
                await store.get(KEY)

    assert loss.value.key == KEY
    assert loss.value.found_sha256 == hashlib.sha256(DAMAGED).hexdigest()


async def test_closed_store_does_not_wait_for_an_unreachable_server() -> None:
    store = S3BlobStore(S3Settings("http://127.0.0.1:1", "account", "secret"))
    store._closing.set()

    with pytest.raises(UnavailableError):
        await store.get(KEY)
    await store.__aexit__()
