"""The first words on a connection to the bus."""

import asyncio
import json
import ssl
from typing import cast

import pytest

from svc_common.errors import FailedPreconditionError
from svc_common.messaging.nats_greeting import encrypted, introduction

PLAIN = cast("asyncio.Transport", object())
PROTOCOL = asyncio.Protocol()


async def test_plain_text_goes_on_where_nobody_wants_more() -> None:
    assert await encrypted(PLAIN, PROTOCOL, None, "one", {"tls_available": True}) is PLAIN


async def test_server_that_demands_encryption_is_told_of() -> None:
    with pytest.raises(FailedPreconditionError, match="set NNI_TLS_CA_FILE"):
        await encrypted(PLAIN, PROTOCOL, None, "one", {"tls_required": True})


async def test_no_secret_is_sent_to_a_server_without_encryption() -> None:
    tls = ssl.create_default_context()

    with pytest.raises(FailedPreconditionError, match="no secret is sent to it"):
        await encrypted(PLAIN, PROTOCOL, tls, "one", {"max_payload": 1})


def test_client_says_who_it_is_before_it_listens_and_pings() -> None:
    text = introduction("manager", {"user": "u", "pass": "p"}, {1: "a.*", 7: "b"}).decode()

    connect, *rest = text.split("\r\n")
    options = json.loads(connect.removeprefix("CONNECT "))
    assert (options["name"], options["user"], options["pass"]) == ("manager", "u", "p")
    assert rest == ["SUB a.* 1", "SUB b 7", "PING", ""]
