"""Number of a TCP port in a private file, so that a program listens at it again when restarted."""

from pathlib import Path
from typing import Final

from svc_common.durable_files import write_private
from svc_trial_runner.fleet.ports import PlatformError

_LAST_PORT: Final = 65_535


def read_port(file: Path) -> int:
    """Return the port in a file; 0: the file is missing or damaged."""
    try:
        port = int(file.read_text("ascii"))
    except (OSError, ValueError):
        return 0
    return port if 0 < port <= _LAST_PORT else 0


def write_port(file: Path, port: int) -> None:
    """Write a port to a file, on the disk at the return.

    Raises:
        PlatformError: the file cannot be written.
    """
    try:
        write_private(file, f"{port}\n")
    except OSError as error:
        raise PlatformError(f"cannot write the port to {file}: {error.strerror}") from error
