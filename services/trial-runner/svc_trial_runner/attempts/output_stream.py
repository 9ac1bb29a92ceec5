"""Publisher of trials' output on the bus for live views, limited so that no trial waits.

The files are the record. Data to send is read from them again: nothing is held in memory, an
outage of the bus loses nothing that is still in the file, and a trial that writes faster than the
pace is skipped ahead; the offsets show the gap.
"""

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from nni_proto.trial.v1 import output_pb2
from svc_common.clock import Clock
from svc_common.code_user import SAME_USER, CodeUser
from svc_common.errors import UnavailableError
from svc_common.messaging.ports import LogLines
from svc_common.tasks import TaskOwner
from svc_trial_runner.domain.claims import AttemptKey
from svc_trial_runner.domain.output import STDERR, STDOUT
from svc_trial_runner.domain.resource_use import RESOURCES
from svc_trial_runner.ports import TrialOutput

PIECE_BYTES: Final = 64 * 1024
"""Largest data of one message."""
LINGER_S: Final = 0.1
"""Delay in which output is batched: a trial that prints in a loop causes ten messages a second,
not thousands."""
BACKLOG_BYTES: Final = 4 * 1024 * 1024
"""Largest lag of the stream; a trial that is ahead by more is skipped ahead."""
PACE_BYTES_PER_S: Final = 2 * 1024 * 1024
"""Largest rate of one trial, so that a busy trial leaves room for the others."""
_AWAY_S: Final = 0.2
"""Delay before a retry after the bus refused a message."""
_STREAMS: Final = {
    STDOUT: output_pb2.OUTPUT_STREAM_STDOUT,
    STDERR: output_pb2.OUTPUT_STREAM_STDERR,
    RESOURCES: output_pb2.OUTPUT_STREAM_RESOURCES,
}


class OutputStreamer:
    """Publisher of running trials' output on the bus, for live views; paced, skips a large lag.

    Args:
        lines: the stream.
        connected: waits until the bus is connected.
        clock: for delays.
        tasks: owner of one task per running attempt.
        code_user: account of trials, as which their files are read.
    """

    def __init__(
        self,
        lines: LogLines,
        connected: Callable[[], Awaitable[None]],
        clock: Clock,
        tasks: TaskOwner,
        code_user: CodeUser = SAME_USER,
    ) -> None:
        self._code_user = code_user
        self._lines = lines
        self._connected = connected
        self._clock = clock
        self._tasks = tasks

    def begin(self, key: AttemptKey, folder: str, output: TrialOutput) -> None:
        """Start a task that publishes an attempt's output as it grows, until its end.

        Args:
            key: of the attempt.
            folder: folder of the output files.
            output: announces new output.
        """
        self._tasks.start(self._send_all(key, folder, output), f"output {key.trial_id}")

    async def _send_all(self, key: AttemptKey, folder: str, output: TrialOutput) -> None:
        grown = asyncio.Event()
        grown.set()  # for output before the subscription
        stop_watching = output.watch(grown.set)
        streams = [
            _Stream(key.attempt, number, f"{folder}/{name}") for name, number in _STREAMS.items()
        ]
        try:
            while True:
                await grown.wait()
                grown.clear()
                at_end = output.at_end.done()  # asked before reading: later output is announced
                await self._send_new(key, streams)
                if at_end:
                    break
                await asyncio.wait({output.at_end}, timeout=LINGER_S)
            await self._send(key, output_pb2.TrialOutput(attempt=key.attempt, at_end=True))
        except UnavailableError:
            return  # the bus is closed: this agent is stopping
        finally:
            stop_watching()

    async def _send_new(self, key: AttemptKey, streams: Sequence["_Stream"]) -> None:
        while pieces := await asyncio.to_thread(self._next_pieces, streams):
            for piece in pieces:
                await self._send(key, piece)
                await self._clock.sleep(len(piece.data) / PACE_BYTES_PER_S)

    def _next_pieces(self, streams: Sequence["_Stream"]) -> list[output_pb2.TrialOutput]:
        """Read the next piece of each stream that has grown."""
        with self._code_user.acting():
            pieces = [stream.next_piece() for stream in streams]
        return [piece for piece in pieces if piece is not None]

    async def _send(self, key: AttemptKey, piece: output_pb2.TrialOutput) -> None:
        payload = piece.SerializeToString()
        while not self._lines.publish(key.experiment_id, key.trial_id, payload):
            await self._clock.sleep(_AWAY_S)
            await self._connected()


class _Stream:
    """Growing output file, and the offset up to which it is published."""

    def __init__(self, attempt: int, number: output_pb2.OutputStream.ValueType, path: str) -> None:
        self._attempt = attempt
        self._number = number
        self._path = path
        self._offset = 0

    def next_piece(self) -> output_pb2.TrialOutput | None:
        """Read the next piece of the output file, skipping a large backlog; None: nothing new."""
        try:
            # A link that the trial has made would be read with the rights of the agent.
            file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:  # the folder was deleted, or the disk is gone
            return None
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                return None
            behind = os.fstat(file).st_size - self._offset
            if behind <= 0:
                return None
            if behind > BACKLOG_BYTES:
                self._offset += behind - BACKLOG_BYTES
            data = os.pread(file, PIECE_BYTES, self._offset)
        except OSError:
            return None
        finally:
            os.close(file)
        piece = output_pb2.TrialOutput(
            attempt=self._attempt, stream=self._number, offset=self._offset, data=data
        )
        self._offset += len(data)
        return piece
