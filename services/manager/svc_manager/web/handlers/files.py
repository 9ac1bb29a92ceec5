"""Handlers of files: logs of manager and dispatcher, output and files of trials."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Final

from starlette.responses import Response, StreamingResponse

from nni_proto.experiment.v1 import experiment_service_pb2 as service_pb
from svc_common.errors import InvalidArgumentError, NotFoundError
from svc_manager.ports import FolderOpener
from svc_manager.usecases.log_searches import search_lines
from svc_manager.web.byte_ranges import RangeError, range_of
from svc_manager.web.route import Call, json_response
from svc_manager.web.streams import end_on_error, take_until

CHUNK_BYTES: Final = 256 * 1024
TEXT_TYPE: Final = "text/plain; charset=utf-8"
LOG_SOURCES: Final = {
    "nnimanager.log": service_pb.LOG_SOURCE_MANAGER,
    "dispatcher.log": service_pb.LOG_SOURCE_DISPATCHER,
}
TRIAL_SOURCES: Final = {
    "trial.log": service_pb.LOG_SOURCE_TRIAL_LOG,
    "stdout": service_pb.LOG_SOURCE_TRIAL_STDOUT,
    "stderr": service_pb.LOG_SOURCE_TRIAL_STDERR,
    # With a dot: `resources` may be a file that a trial writes for its user.
    ".resources": service_pb.LOG_SOURCE_TRIAL_RESOURCES,
}
LONGEST_WORD: Final = 200
"""Most characters of a text to search for."""
_SHOWN_AS_TEXT: Final = frozenset({".log", ".txt", ".cfg", ".json", ".csv", ".sh", ".yml", ".yaml"})


async def get_log(call: Call) -> Response:
    """Respond with the log named in the path (manager's or dispatcher's) of the experiment."""
    name = call.path["name"]
    if name not in LOG_SOURCES:
        raise NotFoundError("log", name[:80])
    return await _log(call, LOG_SOURCES[name], "")


async def get_trial_file(call: Call) -> Response:
    """Respond with a trial's file; stdout and stderr like a log, others as stored in the folder."""
    trial = await call.dependencies.trials.get(call.experiment_id, call.path["trial_id"])
    name = call.path["name"]
    if name in TRIAL_SOURCES:
        return await _log(call, TRIAL_SOURCES[name], trial.id)
    await call.dependencies.experiments.fetch_output(call.experiment_id, trial.id)
    path = file_inside(trial.directory, name)
    found = await call.dependencies.experiments.get(call.experiment_id)
    place = f"trials/{trial.id}/{name}"
    file, size = await asyncio.to_thread(
        _open_regular, call.dependencies.folders, Path(found.experiment.directory), place
    )
    text = path.suffix in _SHOWN_AS_TEXT or not path.suffix
    return StreamingResponse(
        _content(file, size),
        # Never a type that a browser would execute: the content comes from user code.
        media_type=TEXT_TYPE if text else "application/octet-stream",
        headers={"Content-Length": str(size)},
    )


def file_inside(directory: str, name: str) -> Path:
    """Return the path of a plain file name in a trial's directory; raise for a path or hidden.

    Raises:
        InvalidArgumentError: the name is a path or hidden.
        NotFoundError: the trial has no directory.
    """
    if not name or name.startswith(".") or "/" in name or "\\" in name or "\0" in name:
        raise InvalidArgumentError("name", "must be the name of a file, without path", name[:80])
    if not directory:
        raise NotFoundError("file", name[:80])
    return Path(directory) / name


async def _log(call: Call, source: service_pb.LogSource.ValueType, trial_id: str) -> Response:
    """Respond with a log as text, from an offset or by `Range`; with `follow` also as it grows."""
    chunks = call.dependencies.experiments.follow_logs(
        call.experiment_id,
        source,
        trial_id=trial_id,
        offset=call.query.get("offset", 0),
        follow=call.query.get("follow", False),
    )
    if call.query.get("follow"):
        return StreamingResponse(_live(call, chunks), media_type=TEXT_TYPE)
    if call.range_header:
        await chunks.aclose()
        return await _part(call, source, trial_id)
    first = await anext(chunks, None)
    return StreamingResponse(
        _bytes(first, chunks), media_type=TEXT_TYPE, headers={"Accept-Ranges": "bytes"}
    )


async def _part(call: Call, source: service_pb.LogSource.ValueType, trial_id: str) -> Response:
    """Respond with the part of a log that `Range` names; 416: it is empty; malformed: whole log."""
    experiments = call.dependencies.experiments
    total = await experiments.log_size(call.experiment_id, source, trial_id=trial_id)
    try:
        wanted = range_of(call.range_header, total)
    except RangeError:
        return _no_such_range(total)
    start = 0 if wanted is None else wanted.start
    chunks = experiments.follow_logs(
        call.experiment_id, source, trial_id=trial_id, offset=start, follow=False
    )
    first = await anext(chunks, None)
    if wanted is None:
        return StreamingResponse(_bytes(first, chunks), media_type=TEXT_TYPE)
    if first is None or first.offset >= wanted.end:
        # The file has shrunk, or the bus does not hold the begin of the output any more.
        await chunks.aclose()
        return _no_such_range(total)
    wanted = replace(wanted, start=max(wanted.start, first.offset))
    return StreamingResponse(
        _limited(first, chunks, wanted.end),
        status_code=206,
        media_type=TEXT_TYPE,
        headers={"Accept-Ranges": "bytes", "Content-Range": wanted.content_range},
    )


def _no_such_range(total: int) -> Response:
    return Response(status_code=416, headers={"Content-Range": f"bytes */{total}"})


async def _limited(
    first: service_pb.FollowLogsResponse,
    rest: AsyncGenerator[service_pb.FollowLogsResponse, None],
    end: int,
) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of chunks up to the offset ``end``, which is excluded."""
    async with aclosing(rest):
        chunk: service_pb.FollowLogsResponse | None = first
        while chunk is not None:
            yield chunk.data[: max(0, end - chunk.offset)]
            if chunk.offset + len(chunk.data) >= end:
                return
            chunk = await anext(rest, None)


async def search_log(call: Call) -> Response:
    """Respond with up to `limit` lines of the manager's or dispatcher's log that contain a text."""
    name = call.path["name"]
    if name not in LOG_SOURCES:
        raise NotFoundError("log", name[:80])
    return await _search(call, LOG_SOURCES[name], "")


async def search_trial_file(call: Call) -> Response:
    """Respond with up to `limit` lines of a trial's stdout, stderr or log that contain a text."""
    trial = await call.dependencies.trials.get(call.experiment_id, call.path["trial_id"])
    name = call.path["name"]
    if name not in TRIAL_SOURCES:
        raise NotFoundError("log", name[:80])
    return await _search(call, TRIAL_SOURCES[name], trial.id)


async def _search(call: Call, source: service_pb.LogSource.ValueType, trial_id: str) -> Response:
    word = call.query.get("text", "")
    if not 1 <= len(word) <= LONGEST_WORD:
        raise InvalidArgumentError("text", f"must have 1 to {LONGEST_WORD} characters")
    start = call.query.get("offset", 0)
    pieces = call.dependencies.experiments.follow_logs(
        call.experiment_id, source, trial_id=trial_id, offset=start, follow=False
    )
    search, complete = await search_lines(pieces, word, limit=call.query.get("limit", 200))
    return json_response(
        {
            "lines": [{"offset": line.offset, "text": line.text} for line in search.found],
            "next": max(start, search.searched_to),
            "complete": complete,
        }
    )


async def _bytes(
    first: service_pb.FollowLogsResponse | None,
    rest: AsyncGenerator[service_pb.FollowLogsResponse, None],
) -> AsyncGenerator[bytes, None]:
    try:
        if first is not None:
            yield first.data
        async for chunk in rest:
            yield chunk.data
    finally:
        await rest.aclose()


async def _live(
    call: Call, chunks: AsyncGenerator[service_pb.FollowLogsResponse, None]
) -> AsyncGenerator[bytes, None]:
    async with aclosing(take_until(call.until_stopped, end_on_error(chunks))) as live:
        async for chunk in live:
            if chunk is not None:
                yield chunk.data


def _open_regular(folders: FolderOpener, directory: Path, name: str) -> tuple[BinaryIO, int]:
    """Open a regular file of an experiment's folder, never a link; return it with its size.

    Raises:
        NotFoundError: it does not exist, is no regular file, or is a link.
    """
    try:
        with folders.open(directory) as folder:
            file = folder.read_file(name)
    except OSError:
        raise NotFoundError("file", name.rpartition("/")[2][:80]) from None
    return file, os.fstat(file.fileno()).st_size


async def _content(file: BinaryIO, size: int) -> AsyncGenerator[bytes, None]:
    """Yield the first ``size`` bytes of a file in chunks, even if it has grown since.

    A file that has shrunk ends early, which breaks the connection.
    """
    with file:
        while size > 0 and (data := await asyncio.to_thread(file.read, min(size, CHUNK_BYTES))):
            size -= len(data)
            yield data
