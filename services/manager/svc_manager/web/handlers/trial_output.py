"""The output of a trial as server-sent events, for pages that show it while it grows.

Each event's id is the first byte that follows it; a browser whose connection broke sends the last
one it saw as `Last-Event-ID` and goes on there.
"""

from __future__ import annotations

import codecs
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from starlette.responses import Response, StreamingResponse

from nni_proto.experiment.v1 import experiment_service_pb2 as service_pb
from svc_common.errors import InvalidArgumentError, NotFoundError, ServiceError
from svc_common.logs import get_logger
from svc_manager.web.handlers.events import EVENT_STREAM_TYPE
from svc_manager.web.records.encoding import to_json
from svc_manager.web.route import Call
from svc_manager.web.streams import HEARTBEAT_S, until

STREAMS: Final = {
    "stdout": service_pb.LOG_SOURCE_TRIAL_STDOUT,
    "stderr": service_pb.LOG_SOURCE_TRIAL_STDERR,
}
END_EVENT: Final = "end"
"""Name of the last event: without it, a browser would connect again and again."""
_OFFSET_DIGITS: Final = 15


async def follow_output(call: Call) -> Response:
    """Stream what a trial writes; it ends with the trial, or at once with `follow=false`."""
    trial = await call.installation.trials.get(call.experiment_id, call.path["trial_id"])
    source = STREAMS[call.query.get("stream", "stdout")]
    pieces = call.installation.experiments.follow_logs(
        call.experiment_id,
        source,
        trial_id=trial.id,
        offset=_first_byte(call),
        follow=call.query.get("follow", True),
    )
    return StreamingResponse(
        _stream(call, pieces),
        media_type=EVENT_STREAM_TYPE,
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def _first_byte(call: Call) -> int:
    text = call.last_event_id
    if not text:
        return int(call.query.get("offset", 0))
    if not (text.isascii() and text.isdigit() and len(text) <= _OFFSET_DIGITS):
        raise InvalidArgumentError("Last-Event-ID", "must be the id of an event", text[:80])
    return int(text)


class TextPieces:
    """Turns bytes into text piece by piece, never in the middle of a character."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._next = 0

    def take(self, data: bytes, offset: int) -> tuple[str, int]:
        """Return the text of the next piece, and the first byte that is not in it yet.

        Args:
            data: may begin and end in the middle of a character.
            offset: of its first byte; bytes left out before it are no part of a character.
        """
        lost = ""
        if offset != self._next:
            lost = self._decoder.decode(b"", final=True)
            self._decoder.reset()
        text = lost + self._decoder.decode(data)
        self._next = offset + len(data)
        kept, _ = self._decoder.getstate()
        return text, self._next - len(kept)


async def _stream(
    call: Call, pieces: AsyncGenerator[service_pb.FollowLogsResponse, None]
) -> AsyncGenerator[str, None]:
    # Told at once, so that a browser knows the stream is open; it reconnects after a second.
    yield "retry: 1000\n\n"
    text = TextPieces()
    try:
        async with aclosing(until(call.until_stopped, pieces, HEARTBEAT_S)) as live:
            async for piece in live:
                yield ": still here\n\n" if piece is None else _event(text, piece)
    except NotFoundError:
        pass  # it has written nothing that is kept
    except ServiceError as error:
        # Without its last event, so that a browser connects again and goes on where this ends.
        get_logger().info("stream broken off", error=error.message)
        return
    yield f"event: {END_EVENT}\ndata: {{}}\n\n"


def _event(text: TextPieces, piece: service_pb.FollowLogsResponse) -> str:
    part, behind = text.take(piece.data, piece.offset)
    return f"id: {behind}\ndata: {to_json({'offset': piece.offset, 'text': part})}\n\n"
