"""Service as a fork: descriptors, environment and title of a fork before it runs a package."""

import ctypes
import fcntl
import json
import os
import runpy
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Final, NoReturn

from svc_common import environment

CANNOT_RUN: Final = 127
"""Exit status of a fork that cannot become a service; its reason is on its standard error."""
_PR_SET_PDEATHSIG: Final = 1
_ARGUMENTS_START: Final = 45
"""Index of field 48 of `/proc/self/stat` (proc(5)) after the name of the program."""
_FIRST_OTHER: Final = 3
"""First descriptor that is no standard stream."""


@dataclass(frozen=True, slots=True)
class ServiceStart:
    """Request to run a package as a service: `python -P -m MODULE` without a new interpreter."""

    module: str
    """Package whose `__main__` is run."""
    environment: Mapping[str, str]
    """All its variables."""
    folder: str
    """Its working directory."""
    descriptors: Sequence[int]
    """Numbers under which it finds the descriptors that it inherits, beside standard streams."""

    def encode(self) -> bytes:
        """Return the request as JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes) -> "ServiceStart":
        """Return the request that `encode` has written."""
        return cls(**json.loads(data))

    @property
    def title(self) -> list[str]:
        """Words of the command line that a new interpreter would have."""
        return [sys.executable, "-P", "-m", self.module]


@dataclass(frozen=True, slots=True)
class TitleArea:
    """Memory of this process that holds its command line, which its forks overwrite."""

    address: int
    size: int
    """In bytes."""

    @classmethod
    def of_this_process(cls) -> "TitleArea":
        """Return the area that the kernel reads for `/proc/PID/cmdline`."""
        with open("/proc/self/stat", "rb") as file:  # noqa: PTH123 - no path of a user
            fields = file.read().rpartition(b")")[2].split()
        start, end = map(int, fields[_ARGUMENTS_START : _ARGUMENTS_START + 2])
        return cls(start, end - start)

    def has_room(self, words: Sequence[str]) -> bool:
        """Return whether a command line of these words fits."""
        return len(_terminated(words)) <= self.size

    def write(self, words: Sequence[str]) -> None:
        """Overwrite the process's command line with one that fits (`has_room`); zero the rest."""
        ctypes.memmove(self.address, _terminated(words).ljust(self.size, b"\0"), self.size)


def end_with(parent: int) -> bool:
    """Make the kernel kill this process when its parent ends; return False if that has ended."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    return os.getppid() == parent


def become_service(received: Sequence[int], title: TitleArea) -> ServiceStart:
    """Give this fork the service's descriptors, folder, environment, title; return its request.

    Args:
        received: descriptors of the request (a file), of the output, and of those of the request.
        title: of the process that this one is a fork of.
    """
    try:
        with open(received[0], "rb") as file:  # noqa: PTH123 - a descriptor
            start = ServiceStart.decode(file.read())
        os.setsid()
        place_descriptors(received[1], received[2:], start.descriptors)
        os.chdir(start.folder)
        environment.replace(start.environment)
        title.write(start.title)
        sys.orig_argv, sys.argv = start.title, [start.module]
    except BaseException as error:  # noqa: BLE001 - this fork must never go on as something else
        fail(error)
    return start


def place_descriptors(output: int, received: Sequence[int], numbers: Sequence[int]) -> None:
    """Set up standard streams, move received descriptors to their numbers, close the others.

    Args:
        output: descriptor of standard output and standard error.
        received: descriptors to move.
        numbers: of these descriptors afterwards; they are inheritable, as after `exec`.
    """
    free = max((*numbers, _FIRST_OTHER)) + 1
    # Away from all targets, so that none is overwritten before it has moved.
    moved = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, free) for one in (output, *received)]
    os.closerange(_FIRST_OTHER, free)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in zip((null, *moved[:1], *moved), (0, 1, 2, *numbers), strict=True):
        os.dup2(source, target)
    if null not in numbers:
        os.close(null)
    os.closerange(free, max((*moved, *received, output)) + 1)


def run_service(start: ServiceStart) -> NoReturn:
    """Run the package as the main program; raise SystemExit with its status.

    Raises:
        SystemExit: always, by the package or at its end.
    """
    runpy.run_module(start.module, run_name="__main__", alter_sys=True)
    sys.exit(0)


def fail(error: BaseException) -> NoReturn:
    """Write an error to standard error, and end this process at once."""
    with suppress(OSError):
        os.write(2, f"service cannot be run: {type(error).__name__}: {error}\n".encode())
    os._exit(CANNOT_RUN)


def _terminated(words: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(word) + b"\0" for word in words)
