"""Host keys of SSH servers: files of known hosts, and the policy for unknown keys."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import asyncssh

from svc_trial_runner.fleet.adapters.remote.errors import MachineError, known_host_name
from svc_trial_runner.fleet.adapters.remote.machines import (
    DEFAULT_PORT,
    HostKeyPolicy,
    Machine,
)

ACCEPTED_HOSTS: Final = "known_hosts"
"""File of the installation's home with the keys that `accept-new` accepted."""
DEFAULT_FILES: Final = ("~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts")
USER_FILE: Final = "~/.ssh/known_hosts"
"""File that the line for an unknown key is appended to."""


def known_hosts_files(configured: Sequence[str], accepted_file: Path) -> list[str]:
    """Return the files with known hosts that can be read.

    Args:
        configured: `UserKnownHostsFile` and `GlobalKnownHostsFile` of the SSH configuration; empty:
            the usual ones.
        accepted_file: the installation's file of keys that `accept-new` accepted.
    """
    files = [Path(name).expanduser() for name in configured or DEFAULT_FILES]
    return [
        str(path) for path in (*files, accepted_file) if path.is_file() and os.access(path, os.R_OK)
    ]


class HostKeyCheck:
    """Checker of one server's unknown host key: refuses it, or stores it by accept-new.

    The SSH library calls `accepts` for keys that the files of known hosts do not have; the
    connection fails then unless it returns True, and `error` says why.
    """

    def __init__(self, machine: Machine, files: Sequence[str], accepted_file: Path) -> None:
        self._machine = machine
        self._files = files
        self._accepted_file = accepted_file
        self.error: MachineError | None = None

    def accepts(self, host: str, address: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Return whether to accept an unknown host key; store it (accept-new) or set `error`.

        Args:
            host: name, or the alias that the SSH configuration gives.
            address: IP address; empty behind a proxy command.
            port: of the server.
            key: its public key.
        """
        fingerprint = f"{key.get_algorithm()} {key.get_fingerprint()}"
        if self._has_other_keys(host, address, port):
            self.error = self._changed(host, port, fingerprint)
            return False
        line = _line(host, port, key)
        if self._machine.host_key_policy is HostKeyPolicy.ACCEPT_NEW:
            append_line(self._accepted_file, line)
            return True
        self.error = MachineError(
            self._machine,
            "host",
            f"has an unknown host key: {fingerprint}",
            host,
            f"compare the fingerprint, then accept it: echo '{line}' >> {USER_FILE} "
            "(hostKeyPolicy: accept-new does this at the first connection)",
        )
        return False

    def _has_other_keys(self, host: str, address: str, port: int) -> bool:
        if not self._files:
            return False
        other_port = None if port == DEFAULT_PORT else port
        known = asyncssh.match_known_hosts(list(self._files), host, address, other_port)
        return bool(known[0])

    def _changed(self, host: str, port: int, fingerprint: str) -> MachineError:
        name = known_host_name(host, port)
        files = " or ".join(self._files)
        return MachineError(
            self._machine,
            "host",
            f"has another host key than before: {fingerprint}. The machine was installed again, "
            "or another one answers in its place",
            host,
            f"if you know why, remove the old key from {files}: ssh-keygen -f FILE -R '{name}'",
            permanent=True,
        )


def _line(host: str, port: int, key: asyncssh.SSHKey) -> str:
    """Return the line of a file of known hosts for a key."""
    algorithm, data = key.export_public_key("openssh").decode().split()[:2]
    return f"{known_host_name(host, port)} {algorithm} {data}"


def append_line(path: Path, line: str) -> None:
    """Append a line to a file of this user; the file and its folder are made if missing."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{line}\n")


async def files_of(options: asyncssh.SSHClientConnectionOptions, accepted_file: Path) -> list[str]:
    """Return the files of known hosts of one server, as its SSH configuration names them."""
    configured = options.known_hosts
    names = [str(one) for one in configured] if isinstance(configured, list) else []
    return await asyncio.to_thread(known_hosts_files, names, accepted_file)
