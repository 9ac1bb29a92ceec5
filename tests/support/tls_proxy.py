"""TLS-terminating proxy in front of a plain-text server."""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

_CHUNK_BYTES = 65536


@contextmanager
def tls_proxy(address: str, certificate: Path, key: Path) -> Iterator[str]:
    """Listen on a free port of loopback with a certificate; yield `host:port`.

    Args:
        address: `host:port` of the server behind it.
        certificate: PEM.
        key: PEM.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name="tls proxy")
    thread.start()
    proxy = _Proxy(address)
    opened = asyncio.run_coroutine_threadsafe(proxy.listen(context), loop).result(30)
    try:
        yield f"127.0.0.1:{opened.sockets[0].getsockname()[1]}"
    finally:
        asyncio.run_coroutine_threadsafe(proxy.close(opened), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class _Proxy:
    """Both ends of every connection, so that all of them end with the proxy."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._behind = (host, int(port))
        self._writers: set[asyncio.StreamWriter] = set()

    async def listen(self, context: ssl.SSLContext) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)

    async def close(self, server: asyncio.Server) -> None:
        server.close()
        serving = asyncio.all_tasks() - {asyncio.current_task()}
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.gather(*serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with suppress(OSError):
            answers, requests = await asyncio.open_connection(*self._behind)
            self._writers.add(requests)
            await asyncio.gather(_copy(reader, requests), _copy(answers, writer))
            self._writers.discard(requests)
        writer.close()
        self._writers.discard(writer)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(_CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
    writer.close()
