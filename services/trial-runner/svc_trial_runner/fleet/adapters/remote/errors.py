"""Errors of one machine, and the only place where errors of the SSH library become them."""

import asyncio
import errno
import socket
from typing import Final

import asyncssh

from svc_trial_runner.fleet.adapters.remote.machines import DEFAULT_PORT, Machine
from svc_trial_runner.fleet.domain.agents import PlatformProblem
from svc_trial_runner.fleet.ports import PlatformError

_TOO_MANY_FAILURES: Final = "authentication failures"
"""Words of OpenSSH when it ends a connection instead of refusing the last key."""
_UNREACHABLE: Final = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN})


class MachineError(PlatformError):
    """Error of one machine: which field of its entry, which rule, and what to do.

    Attributes:
        machine: the entry.
        field: path of the field within the section.
        rule: what does not hold, in a sentence without the field's name.
        value: of the field, never a secret.
    """

    def __init__(
        self,
        machine: Machine,
        name: str,
        rule: str,
        value: object = "",
        remedy: str = "",
        *,
        permanent: bool = False,
    ) -> None:
        super().__init__(
            f"{machine.address}: {machine.field(name)} {rule}", remedy, permanent=permanent
        )
        self.machine = machine
        self.field = machine.field(name)
        self.rule = rule
        self.value = str(value)

    def problem(self, field: str = "", value: str = "") -> PlatformProblem:
        """Return the error as a broken rule of its own field; arguments are ignored."""
        return PlatformProblem(
            self.field, self.rule, self.value, self.remedy, permanent=self.permanent
        )


def ssh_command(machine: Machine) -> str:
    """Return the command with which a person tries the same login."""
    port = "" if machine.port == DEFAULT_PORT else f"-p {machine.port} "
    return f"ssh {port}{machine.user}@{machine.host}"


def connection_error(
    machine: Machine, error: BaseException, *, keyboard_interactive: bool = False
) -> MachineError:
    """Convert an error of the SSH library or a socket to a machine's error with a remedy.

    Args:
        machine: the entry that the connection was for.
        error: the library's error.
        keyboard_interactive: whether the server asked for that way of logging in.
    """
    if isinstance(error, MachineError):
        return error
    if isinstance(error, asyncssh.PermissionDenied):
        return _refused_login(machine, keyboard_interactive=keyboard_interactive)
    if isinstance(error, asyncssh.DisconnectError):
        return _ended(machine, error, keyboard_interactive=keyboard_interactive)
    if isinstance(error, asyncssh.ChannelOpenError):
        return MachineError(
            machine,
            "host",
            f"refuses a session: {error.reason}",
            machine.host,
            "raise MaxSessions in its sshd_config, or allow sessions for this user",
        )
    if isinstance(error, asyncssh.ConfigParseError):
        return MachineError(
            machine,
            "host",
            f"cannot be looked up in the SSH configuration: {error}",
            machine.host,
            "correct ~/.ssh/config",
            permanent=True,
        )
    if isinstance(error, OSError):
        return _unreachable(machine, error)
    return MachineError(
        machine,
        "host",
        f"cannot be used over SSH: {type(error).__name__}: {error}",
        machine.host,
        f"try: {ssh_command(machine)}",
    )


def _refused_login(machine: Machine, *, keyboard_interactive: bool) -> MachineError:
    """Return the permanent error of a refused SSH login, with a remedy by kind of credential."""
    if keyboard_interactive:
        return MachineError(
            machine,
            "user",
            "is asked for keyboard-interactive authentication, which is not supported",
            machine.user,
            "allow a key or a password for this user in the server's sshd_config",
            permanent=True,
        )
    if machine.password is not None and machine.key_file is None:
        name, value = "password", ""
    elif machine.key_file is not None:
        name, value = "sshKeyFile", str(machine.key_file)
    else:
        name, value = "user", machine.user
    offered = {
        "password": "correct user and password",
        "sshKeyFile": "add its public key to ~/.ssh/authorized_keys of the user on the machine",
        "user": "give a password or sshKeyFile, or add a key to the agent of $SSH_AUTH_SOCK",
    }
    return MachineError(
        machine,
        name,
        f"was refused by the server for user {machine.user!r}",
        value,
        f"{offered[name]}; to try it: {ssh_command(machine)}",
        permanent=True,
    )


def _ended(
    machine: Machine, error: asyncssh.DisconnectError, *, keyboard_interactive: bool
) -> MachineError:
    """Return the error of a connection that one side ended with a reason."""
    if _TOO_MANY_FAILURES in error.reason:
        return _refused_login(machine, keyboard_interactive=keyboard_interactive)
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return MachineError(
            machine,
            "host",
            f"has a host key that is not trusted: {error.reason}",
            machine.host,
            f"accept it by hand: {ssh_command(machine)}",
            permanent=True,
        )
    if isinstance(error, asyncssh.KeyExchangeFailed):
        return MachineError(
            machine,
            "host",
            f"has no algorithm or type of host key in common with this machine: {error.reason}",
            machine.host,
            "if the host key changed for a known reason, remove the old one: "
            f"ssh-keygen -R {known_host_name(machine.host, machine.port)!r}",
            permanent=True,
        )
    return MachineError(
        machine,
        "host",
        f"ended the connection: {error.reason}",
        machine.host,
        f"see the log of its sshd; to try it: {ssh_command(machine)}",
    )


def _unreachable(machine: Machine, error: OSError) -> MachineError:
    """Return the error of a connection that was not made."""
    if isinstance(error, socket.gaierror):
        return MachineError(
            machine,
            "host",
            f"has no address: {error.strerror}",
            machine.host,
            "correct the name, or add it to DNS, /etc/hosts or ~/.ssh/config",
        )
    if isinstance(error, ConnectionRefusedError):
        return MachineError(
            machine,
            "port",
            "is not open: no SSH server listens there",
            machine.port,
            "start sshd on the machine, or correct the port",
        )
    if isinstance(error, asyncio.TimeoutError | TimeoutError) or error.errno in _UNREACHABLE:
        return MachineError(
            machine,
            "host",
            f"does not answer: {str(error) or 'time-out'}",
            machine.host,
            "switch the machine on, or allow the port in its firewall",
        )
    return MachineError(
        machine, "host", f"cannot be reached: {error}", machine.host, f"try: {ssh_command(machine)}"
    )


def known_host_name(host: str, port: int) -> str:
    """Return the name of a server as files of known hosts have it."""
    return host if port == DEFAULT_PORT else f"[{host}]:{port}"
