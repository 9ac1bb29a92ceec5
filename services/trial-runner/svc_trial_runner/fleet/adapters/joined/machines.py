"""Files of the machines that have enrolled in a pool, and of its expired invitations."""

import asyncio
import json
import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from svc_common.durable_files import write_private
from svc_common.own_files import private_folder
from svc_trial_runner.fleet.domain.invitations import JoinedMachine
from svc_trial_runner.fleet.domain.needs import JOINED_PLATFORM
from svc_trial_runner.fleet.ports import PlatformError

_FILE: Final = "machines.json"
_EXPIRED_FILE: Final = "expired-invitations.json"
_changing: Final = threading.Lock()
"""Held while a file is read and replaced: an enrolment and the end of an agent may coincide."""


class MachineFile:
    """File of the machines of one pool; calls may come from several threads.

    Args:
        folder: private folder of the platform `joined` of the pool.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / _FILE

    def read(self) -> list[JoinedMachine]:
        """Read all enrolled machines, ended ones too; none without a file; raise if it is damaged.

        Raises:
            PlatformError: it cannot be read, or is damaged: the uses of invitations are not known
                then, and none must be granted again.
        """
        try:
            content = _listed(self._file.read_text("utf-8"))
            return [JoinedMachine(**fields) for fields in content]
        except FileNotFoundError:
            return []
        except (ValueError, TypeError, RecursionError) as error:
            raise PlatformError(
                f"the record of the machines that have joined is damaged: {error}",
                f"revoke the invitations of this pool, remove {self._file} and let the machines "
                "join again",
            ) from error
        except OSError as error:
            raise PlatformError(f"cannot read {self._file}: {error.strerror}") from error

    def put(self, machine: JoinedMachine) -> None:
        """Add a machine, or replace the record of it; it is on the disk at the return.

        Raises:
            PlatformError: it cannot be written.
        """
        with _changing:
            others = [one for one in self.read() if one.machine != machine.machine]
            self._write([*others, machine])

    def end(self, numbers: Iterable[int]) -> None:
        """Mark the machines of these agents as ended; ignore unknown numbers.

        Raises:
            PlatformError: it cannot be written.
        """
        over = set(numbers)
        with _changing:
            machines = self.read()
            if any(one.number in over and not one.ended for one in machines):
                ended = [replace(one, ended=one.ended or one.number in over) for one in machines]
                self._write(ended)

    def expired(self) -> set[str]:
        """Read the recorded ids of expired invitations; none if the file is missing.

        Raises:
            PlatformError: it cannot be read, or is damaged.
        """
        file = self._folder / _EXPIRED_FILE
        try:
            return set(map(str, _listed(file.read_text("utf-8"))))
        except FileNotFoundError:
            return set()
        except (ValueError, TypeError, RecursionError) as error:
            raise PlatformError(f"the record {file} is damaged: {error}") from error
        except OSError as error:
            raise PlatformError(f"cannot read {file}: {error.strerror}") from error

    def put_expired(self, invitation_ids: Iterable[str]) -> None:
        """Replace the ids of the expired invitations; they are on the disk at the return.

        Raises:
            PlatformError: they cannot be written.
        """
        self._write_file(self._folder / _EXPIRED_FILE, sorted(invitation_ids))

    def _write(self, machines: Sequence[JoinedMachine]) -> None:
        self._write_file(self._file, [asdict(one) for one in machines])

    def _write_file(self, file: Path, content: Sequence[object]) -> None:
        try:
            for folder in (self._folder.parent, self._folder):
                private_folder(folder)
            write_private(file, json.dumps(content, indent=1))
        except OSError as error:
            raise PlatformError(f"cannot write {file}: {error.strerror}") from error


def _listed(text: str) -> list[Any]:
    """Return the list in a JSON text.

    Raises:
        ValueError: it is no JSON, or no list: `{}` would be read as an empty one.
    """
    content = json.loads(text)
    if not isinstance(content, list):
        raise ValueError("it must be a list")  # noqa: TRY004 - of the content, not of an argument
    return content


class DirectoryJoinedMachines:
    """`JoinedMachines` in the folders of the fleet.

    Args:
        folder: with a folder per pool.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def of_pool(self, pool: str) -> list[JoinedMachine]:
        """Return the machines of a pool, ended ones included."""
        return await asyncio.to_thread(self._file(pool).read)

    async def put(self, pool: str, machine: JoinedMachine) -> None:
        """Add or replace a machine of a pool."""
        await asyncio.to_thread(self._file(pool).put, machine)

    async def expired(self, pool: str) -> set[str]:
        """Return the ids of a pool's expired invitations."""
        return await asyncio.to_thread(self._file(pool).expired)

    async def put_expired(self, pool: str, invitation_ids: Collection[str]) -> None:
        """Replace the ids of a pool's expired invitations."""
        await asyncio.to_thread(self._file(pool).put_expired, invitation_ids)

    def _file(self, pool: str) -> MachineFile:
        return MachineFile(self._folder / pool / JOINED_PLATFORM)
