"""Endpoint of enrolments behind the TLS front: one line of JSON each way."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from svc_common.errors import InvalidArgumentError
from svc_trial_runner.enrolment import (
    MESSAGE_LIMIT_BYTES,
    Enrolled,
    EnrolmentRequest,
    Refused,
    answer_to_line,
    request_from_line,
)

REQUEST_S: Final = 10.0
"""Time limit of a request: it is one line, sent at once."""

Enrol = Callable[[EnrolmentRequest, str], Awaitable[Enrolled | Refused]]
"""Handles a request from an address."""


class EnrolmentEndpoint:
    """Endpoint that reads one request of each connection and sends its answer.

    Args:
        enrol: handles requests.
        request_s: time limit of a request.
    """

    def __init__(self, enrol: Enrol, request_s: float = REQUEST_S) -> None:
        self._enrol = enrol
        self._request_s = request_s

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str
    ) -> None:
        """Serve one connection: answer a line, refuse a bad one; no answer if late or too long."""
        try:
            async with asyncio.timeout(self._request_s):
                line = await reader.readuntil(b"\n")
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return
        if len(line) > MESSAGE_LIMIT_BYTES:
            return
        try:
            answer = await self._enrol(request_from_line(line), address)
        except InvalidArgumentError as error:
            answer = Refused(error.message)
        writer.write(answer_to_line(answer))
        await writer.drain()
