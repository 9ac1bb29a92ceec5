"""Connections of the users that `svc_common.bus_users` makes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from svc_common.messaging.nats_connection import Connection
from svc_common.messaging.nats_settings import NatsSettings
from tests.support.servers import NatsServer


def login(folder: Path, url: str, user: str) -> NatsSettings:
    """Return the settings of a user whose file of variables is in a folder."""
    lines = (folder / f"{user}.env").read_text().splitlines()
    variables = dict(line.split("=", 1) for line in lines)
    return NatsSettings(
        url, user=variables["NNI_NATS_USER"], password=variables["NNI_NATS_PASSWORD"]
    )


@asynccontextmanager
async def connected(server: NatsServer, folder: Path, user: str) -> AsyncIterator[Connection]:
    """Open a connection of a user."""
    connection = Connection(login(folder, server.url, user))
    await connection.open()
    try:
        yield connection
    finally:
        await connection.aclose()
