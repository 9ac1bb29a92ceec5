"""Hosts that work in a temporary folder instead of their experiment's folder.

A host in the experiment's own folder would load its checkpoint, replace it, and write into
`dispatcher.log`.
"""

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from svc_common.client_environment import ENVIRONMENT_NAME
from svc_common.code_user import SAME_USER, CodeUser
from svc_common.errors import FailedPreconditionError
from svc_dispatcher.adapters.host_environment import client_side
from svc_dispatcher.domain.commands import Command, Initialize
from svc_dispatcher.domain.values import ExperimentSetup
from svc_dispatcher.ports import AlgorithmHost, HostLauncher, HostSink

_PREFIX: Final = "nni-replay-"


class ScratchHost:
    """Algorithm host in a temporary folder, not its experiment's; the folder is removed on close.

    Args:
        inner: the host.
        folder: the temporary folder.
    """

    def __init__(self, inner: AlgorithmHost, folder: Path) -> None:
        self._inner = inner
        self._folder = folder

    def send(self, commands: Sequence[Command]) -> None:
        """Queue commands; `Initialize` gets the temporary folder for the experiment's folder."""
        self._inner.send([self._moved(command) for command in commands])

    def _moved(self, command: Command) -> Command:
        if not isinstance(command, Initialize):
            return command
        return replace(command, setup=replace(command.setup, directory=str(self._folder)))

    async def aclose(self) -> None:
        """Stop the host, then remove its temporary folder."""
        try:
            await self._inner.aclose()
        finally:
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)


class ScratchHostLauncher:
    """`HostLauncher` for replays: hosts run in temporary folders, not the experiment's.

    A moved experiment may name an interpreter that does not exist here; its host then runs under
    the interpreter of this process.

    Args:
        inner: launcher of the hosts.
        inherited: environment where the experiment's folder has none.
        code_user: account of the hosts.
    """

    def __init__(
        self, inner: HostLauncher, inherited: dict[str, str], code_user: CodeUser = SAME_USER
    ) -> None:
        self._code_user = code_user
        self._inner = inner
        self._inherited = inherited

    async def launch(self, setup: ExperimentSetup, sink: HostSink, *, eager: bool) -> AlgorithmHost:
        """Start a replay's host in a new temporary folder; remove the folder if that fails."""
        try:
            folder = await asyncio.to_thread(_scratch, setup, self._inherited)
            self._code_user.share(folder)
        except (OSError, ValueError) as error:
            raise FailedPreconditionError(
                f"no folder for the replay can be made in {tempfile.gettempdir()}: {error}"
            ) from error
        here = replace(setup, directory=str(folder), interpreter="")
        try:
            host = await self._inner.launch(here, sink, eager=eager)
        except BaseException:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            raise
        return ScratchHost(host, folder)


def _scratch(setup: ExperimentSetup, inherited: dict[str, str]) -> Path:
    """Create a temporary folder with the environment file that a replayed host reads; return it."""
    client = client_side(setup, inherited)
    interpreter = client.interpreter if os.access(client.interpreter, os.X_OK) else ""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))  # accessible to its owner only
    text = json.dumps({"environment": client.environment, "interpreter": interpreter})
    path = folder / ENVIRONMENT_NAME
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
    return folder
