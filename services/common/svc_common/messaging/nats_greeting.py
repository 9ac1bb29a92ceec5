"""How a connection to the bus begins: encryption is agreed on, then the client says who it is.

The server speaks first, in plain text unless TLS comes from the first byte on; no secret is sent
before the connection is as private as this side wants it.
"""

import asyncio
import ssl
from collections.abc import Mapping
from typing import Final

from svc_common.errors import FailedPreconditionError
from svc_common.messaging import nats_wire as wire

_LANGUAGE: Final = "python"


async def encrypted(
    transport: asyncio.Transport,
    protocol: asyncio.Protocol,
    tls: ssl.SSLContext | None,
    host: str,
    hello: Mapping[str, object],
) -> asyncio.Transport:
    """Return the transport to go on with, which is encrypted if this side wants it.

    Args:
        transport: that the server has said hello on.
        protocol: that it belongs to.
        tls: how to encrypt; None: not at all.
        host: whose certificate is expected.
        hello: what the server has said.

    Raises:
        FailedPreconditionError: only one side wants encryption, or has it.
        ssl.SSLError: the handshake has failed.
    """
    if tls is None:
        if hello.get("tls_required"):
            raise FailedPreconditionError(
                f"the bus at {host} demands encryption; set NNI_TLS_CA_FILE to its authority"
            )
        return transport
    if not (hello.get("tls_required") or hello.get("tls_available")):
        raise FailedPreconditionError(
            f"the bus at {host} does not offer encryption, so no secret is sent to it; add a "
            "tls block to its configuration"
        )
    loop = asyncio.get_running_loop()
    made = await loop.start_tls(transport, protocol, tls, server_hostname=host)
    assert made is not None, "a handshake gives a transport or raises"
    return made


def introduction(
    name: str, credentials: Mapping[str, str], subscriptions: Mapping[int, str]
) -> bytes:
    """Return what a client says first: who it is, what it listens to, and a ping.

    The server answers PONG only if it accepts the client.

    Args:
        name: how the server lists this client.
        credentials: what it is shown.
        subscriptions: subjects by the client's ids.
    """
    options: dict[str, object] = {
        "verbose": False,
        "pedantic": False,
        "headers": True,
        "no_responders": True,
        "protocol": 1,
        "lang": _LANGUAGE,
        "version": "nni",
        "name": name,
        **credentials,
    }
    wanted = [wire.subscribe(subject, sid) for sid, subject in subscriptions.items()]
    return b"".join([wire.connect(options), *wanted, wire.PING])


def untrusted(host: str, port: int, error: ssl.SSLCertVerificationError) -> FailedPreconditionError:
    """Return what is wrong with a server whose certificate cannot be trusted, and what to do."""
    return FailedPreconditionError(
        f"the certificate of the bus at {host}:{port} cannot be trusted "
        f"({error.verify_message}); check NNI_TLS_CA_FILE"
    )
