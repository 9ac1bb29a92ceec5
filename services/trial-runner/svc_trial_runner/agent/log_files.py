"""Reader of the output of trials that run or ran on this machine."""

import asyncio
from collections.abc import AsyncIterator
from enum import Enum
from pathlib import Path
from typing import Final

from svc_common.code_user import SAME_USER, CodeUser
from svc_common.errors import InvalidArgumentError, NotFoundError
from svc_common.experiment_files import open_inside
from svc_common.subjects import check_id
from svc_trial_runner.agent.agent import Agent
from svc_trial_runner.domain import output as names

_PIECE_BYTES: Final = 256 * 1024


class LogFile(Enum):
    """Output files of a trial that clients may read: `trial.log`, stdout, stderr."""

    TRIAL_LOG = names.TRIAL_LOG
    STDOUT = names.STDOUT
    STDERR = names.STDERR


class TrialLogReader:
    """Reader of trials' output files, which can follow a running trial.

    Args:
        agent: source of the live attempts and of the experiments' folders.
        default_root: parent of the trial folders of experiments without a folder.
        code_user: account of trials, as which their files are read.
    """

    def __init__(self, agent: Agent, default_root: Path, code_user: CodeUser = SAME_USER) -> None:
        self._code_user = code_user
        self._agent = agent
        self._default_root = default_root

    async def read(
        self, experiment_id: str, trial_id: str, file: LogFile, *, offset: int, follow: bool
    ) -> AsyncIterator[tuple[int, bytes]]:
        """Yield (offset, data) of a trial's output file, on request until the trial has ended.

        Args:
            experiment_id: of the trial.
            trial_id: of the trial.
            file: which file.
            offset: first byte to read, >= 0.
            follow: continue until the trial has ended.

        Raises:
            NotFoundError: the trial never ran here.
            InvalidArgumentError: an id or the offset is invalid.
        """
        if offset < 0:
            raise InvalidArgumentError("offset", "must be >= 0", offset)
        path = self._folder(experiment_id, trial_id) / file.value
        grown = asyncio.Event()
        run = self._agent.find(experiment_id, trial_id)
        output = run.output if run is not None else None
        unwatch = output.watch(grown.set) if follow and output is not None else None
        try:
            while True:
                grown.clear()
                # Asked before reading: later output is announced.
                at_end = output is None or output.at_end.done()
                async for position, data in self._pieces(path, offset, trial_id):
                    yield position, data
                    offset = position + len(data)
                if not follow or at_end:
                    return
                await grown.wait()
        finally:
            if unwatch is not None:
                unwatch()

    def _folder(self, experiment_id: str, trial_id: str) -> Path:
        check_id("experiment_id", experiment_id)
        check_id("trial_id", trial_id)
        root = self._agent.directory_of(experiment_id)
        folder = Path(root) if root else self._default_root / experiment_id
        return folder / "trials" / trial_id

    async def _pieces(
        self, path: Path, offset: int, trial_id: str
    ) -> AsyncIterator[tuple[int, bytes]]:
        """Yield (offset, data) of a file from `offset` to its current end."""
        while True:
            data = await asyncio.to_thread(_read, path, offset, trial_id, self._code_user)
            if not data:
                return
            yield offset, data
            offset += len(data)


def _read(path: Path, offset: int, trial_id: str, code_user: CodeUser) -> bytes:
    try:
        with code_user.acting(), open_inside(path.parent, path) as file:
            file.seek(offset)
            return file.read(_PIECE_BYTES)
    except FileNotFoundError as error:
        raise NotFoundError("output of trial", trial_id) from error
