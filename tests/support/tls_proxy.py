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
    opened = asyncio.run_coroutine_threadsafe(_listen(address, context), loop).result(10)
    try:
        yield f"127.0.0.1:{opened.sockets[0].getsockname()[1]}"
    finally:
        asyncio.run_coroutine_threadsafe(_close(opened), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _listen(address: str, context: ssl.SSLContext) -> asyncio.Server:
    host, _, port = address.rpartition(":")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            behind = await asyncio.open_connection(host, int(port))
            await asyncio.gather(_copy(reader, behind[1]), _copy(behind[0], writer))

    return await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(_CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
    writer.close()


async def _close(server: asyncio.Server) -> None:
    server.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
