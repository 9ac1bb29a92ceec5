"""SSH connection to one machine: login, host key, keepalive."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import asyncssh

from svc_trial_runner.fleet.adapters.remote.errors import MachineError, connection_error
from svc_trial_runner.fleet.adapters.remote.host_keys import HostKeyCheck, files_of
from svc_trial_runner.fleet.adapters.remote.machines import DEFAULT_PORT, Machine

CONNECT_LIMIT_S: Final = 15.0
LOGIN_LIMIT_S: Final = 30.0
KEEPALIVE_INTERVAL_S: Final = 10.0
KEEPALIVE_LIMIT: Final = 3
"""A connection is cut after so many keepalives without an answer."""
FAST_CIPHERS: Final = "^aes128-gcm@openssh.com,aes256-gcm@openssh.com"
"""Preferred where the user's configuration names no ciphers: asyncssh encrypts a packet with them
in 2 us, with its own first choice chacha20-poly1305 in 11 us."""

asyncssh.set_log_level(logging.WARNING)  # it logs every command and forward as information


class _Login(asyncssh.SSHClient):
    """Callbacks of one login: check unknown host keys, refuse keyboard-interactive and note it."""

    def __init__(self, host_key: HostKeyCheck) -> None:
        self._host_key = host_key
        self.keyboard_interactive = False

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        return self._host_key.accepts(host, addr, port, key)

    def kbdint_auth_requested(self) -> None:
        # Its questions can be of any kind (one-time codes), so that no password answers them.
        self.keyboard_interactive = True


async def open_connection(
    machine: Machine,
    accepted_hosts_file: Path,
    config_files: Sequence[Path] | None = None,
) -> asyncssh.SSHClientConnection:
    """Connect to a machine and log in by password, key or agent; return the connection.

    A password is tried first, then the key of `sshKeyFile`; without either the keys of the agent
    (`$SSH_AUTH_SOCK`) and the usual files. The user's `~/.ssh/config` holds, with `Include`,
    `Match`, `ProxyJump`, `ProxyCommand` and `Ciphers`; what the machine's entry says wins.

    Args:
        machine: the entry.
        accepted_hosts_file: the installation's file of keys that `accept-new` accepted.
        config_files: SSH configurations; None: the user's own.

    Raises:
        MachineError: it failed; the error names field, rule, value and remedy.
    """
    wanted: dict[str, Any] = {
        "username": machine.user,
        "preferred_auth": ["password", "publickey", "keyboard-interactive"],
        "agent_forwarding": False,
        "connect_timeout": CONNECT_LIMIT_S,
        "login_timeout": LOGIN_LIMIT_S,
        "keepalive_interval": KEEPALIVE_INTERVAL_S,
        "keepalive_count_max": KEEPALIVE_LIMIT,
    }
    if config_files is not None:
        wanted["config"] = [str(path) for path in config_files]
    if machine.port != DEFAULT_PORT:
        wanted["port"] = machine.port
    if machine.password is not None:
        wanted["password"] = machine.password
        wanted["client_keys"] = None
    if machine.key_file is not None:
        wanted["client_keys"] = [await asyncio.to_thread(_read_key, machine)]
        wanted["agent_path"] = None
    return await _connect(machine, wanted, accepted_hosts_file)


async def _connect(
    machine: Machine, wanted: dict[str, Any], accepted_hosts_file: Path
) -> asyncssh.SSHClientConnection:
    logins: list[_Login] = []
    check: HostKeyCheck | None = None
    try:
        options = await asyncssh.SSHClientConnectionOptions.construct(host=machine.host, **wanted)
        files = await files_of(options, accepted_hosts_file)
        check = HostKeyCheck(machine, files, accepted_hosts_file)
        host_key = check
        if options.config.get("Ciphers") is None:
            wanted["encryption_algs"] = FAST_CIPHERS

        def login() -> _Login:
            logins.append(_Login(host_key))
            return logins[-1]

        # Empty bytes are an empty file; an empty list would be the library's usual one.
        return await asyncssh.connect(
            machine.host, known_hosts=files or b"", client_factory=login, **wanted
        )
    except (OSError, asyncssh.Error, ValueError) as error:
        if check is not None and check.error is not None:
            raise check.error from error
        asked = any(one.keyboard_interactive for one in logins)
        raise connection_error(machine, error, keyboard_interactive=asked) from error


def _read_key(machine: Machine) -> asyncssh.SSHKeyPair:
    """Load the key of `sshKeyFile`, with a certificate beside it; raise MachineError if bad."""
    path = str(machine.key_file)
    try:
        return asyncssh.load_keypairs([path], machine.passphrase)[0]
    except OSError as error:
        raise MachineError(
            machine,
            "sshKeyFile",
            f"cannot be read: {error.strerror}",
            path,
            "name a file with a private key that this user may read",
            permanent=True,
        ) from error
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, ValueError) as error:
        raise _key_error(machine, path, str(error)) from error


def _key_error(machine: Machine, path: str, reason: str) -> MachineError:
    if "assphrase" in reason or "decrypt" in reason.lower():
        rule = (
            "does not fit the key"
            if machine.passphrase
            else "must be given: the key of sshKeyFile is encrypted"
        )
        return MachineError(
            machine,
            "sshPassphrase",
            rule,
            "",
            f"give the passphrase of {path}, or add the key to the agent and leave out sshKeyFile",
            permanent=True,
        )
    return MachineError(
        machine,
        "sshKeyFile",
        f"is no private key: {reason}",
        path,
        "name the private key, not the file that ends with .pub",
        permanent=True,
    )
