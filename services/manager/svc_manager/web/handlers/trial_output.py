"""Handler of a trial's output as server-sent events, while it grows.

The id of an event is the attempt of the trial and the offset of the first byte after it in the
attempt's log: `1-4096`. A browser that reconnects sends the last id that it received as
`Last-Event-ID`; the stream resumes there, or at the begin of the log of a later attempt.
"""

from __future__ import annotations

import codecs
import re
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
from svc_manager.web.streams import HEARTBEAT_S, take_until

STREAMS: Final = {
    "stdout": service_pb.LOG_SOURCE_TRIAL_STDOUT,
    "stderr": service_pb.LOG_SOURCE_TRIAL_STDERR,
    "resources": service_pb.LOG_SOURCE_TRIAL_RESOURCES,
}
END_EVENT: Final = "end"
"""Name of the last event; without it, a browser would reconnect for ever."""
_ID: Final = re.compile(r"(?:([0-9]{1,9})-)?([0-9]{1,15})")


async def follow_output(call: Call) -> Response:
    """Respond with a trial's stdout, stderr or samples as server-sent events; `end` is the last."""
    trial = await call.dependencies.trials.get(call.experiment_id, call.path["trial_id"])
    source = STREAMS[call.query.get("stream", "stdout")]
    attempt, offset = _place(call)
    chunks = call.dependencies.experiments.follow_logs(
        call.experiment_id,
        source,
        trial_id=trial.id,
        offset=offset,
        attempt=attempt,
        follow=call.query.get("follow", True),
    )
    return StreamingResponse(
        _stream(call, chunks),
        media_type=EVENT_STREAM_TYPE,
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def _place(call: Call) -> tuple[int, int]:
    """Return the attempt (0: the current one) and the offset in its log at which to begin."""
    text = call.last_event_id
    if not text:
        return 0, int(call.query.get("offset", 0))
    found = _ID.fullmatch(text)
    if found is None:
        raise InvalidArgumentError("Last-Event-ID", "must be the id of an event", text[:80])
    return int(found[1] or 0), int(found[2])


class OffsetDecoder:
    """Decoder of UTF-8 chunks that may split characters, which knows the byte offset reached."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._next = 0

    def decode(self, data: bytes, offset: int) -> tuple[str, int, int]:
        """Decode the next chunk; return its text, and where that begins and ends.

        The text may have another length in UTF-8: bytes that are none become U+FFFD.

        Args:
            data: the chunk; may begin and end inside a character.
            offset: offset of its first byte; a gap before it ends an incomplete character.

        Returns:
            The text, the offset of its first byte, and that of the first byte behind it.
        """
        incomplete = ""
        pending, _ = self._decoder.getstate()
        begin = offset - len(pending)
        if offset != self._next:
            incomplete = self._decoder.decode(b"", final=True)
            self._decoder.reset()
            begin = offset
        text = incomplete + self._decoder.decode(data)
        self._next = offset + len(data)
        pending, _ = self._decoder.getstate()
        return text, begin, self._next - len(pending)


async def _stream(
    call: Call, chunks: AsyncGenerator[service_pb.FollowLogsResponse, None]
) -> AsyncGenerator[str, None]:
    # Sent at once, so that a browser sees an open stream; it reconnects after a second.
    yield "retry: 1000\n\n"
    decoder = OffsetDecoder()
    try:
        async with aclosing(take_until(call.until_stopped, chunks, HEARTBEAT_S)) as live:
            async for chunk in live:
                yield ": still here\n\n" if chunk is None else _event(decoder, chunk)
    except NotFoundError:
        pass  # the trial has no stored output
    except ServiceError as error:
        # Without the last event, so that a browser reconnects and resumes here.
        get_logger().info("stream ended early", error=error.message)
        return
    yield f"event: {END_EVENT}\ndata: {{}}\n\n"


def _event(decoder: OffsetDecoder, chunk: service_pb.FollowLogsResponse) -> str:
    text, begin, end = decoder.decode(chunk.data, chunk.offset)
    data = to_json({"attempt": chunk.attempt, "offset": begin, "text": text})
    return f"id: {chunk.attempt}-{end}\ndata: {data}\n\n"
