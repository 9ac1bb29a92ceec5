"""Errors of machines."""

import errno
import socket
from pathlib import Path

import pytest

pytest.importorskip("asyncssh", reason="the extra remote is not installed")

import asyncssh

from svc_trial_runner.fleet.adapters.remote.errors import (
    MachineError,
    connection_error,
    known_host_name,
    ssh_command,
)
from svc_trial_runner.fleet.adapters.remote.machines import Machine

MACHINE = Machine(2, "box", "ann", 2222)


@pytest.mark.parametrize(
    ("error", "name", "words"),
    [
        (socket.gaierror(-2, "Name or service not known"), "host", "has no address"),
        (ConnectionRefusedError(111, "refused"), "port", "no SSH server listens"),
        (TimeoutError(), "host", "does not answer: time-out"),
        (OSError(errno.EHOSTUNREACH, "No route to host"), "host", "does not answer"),
        (OSError(errno.EPERM, "not permitted"), "host", "cannot be reached"),
        (asyncssh.ConnectionLost("Connection lost"), "host", "ended the connection"),
        (asyncssh.HostKeyNotVerifiable("Host key is revoked"), "host", "not trusted"),
        (asyncssh.KeyExchangeFailed("no match"), "host", "no algorithm"),
        (asyncssh.ChannelOpenError(1, "open failed"), "host", "refuses a session"),
        (asyncssh.ConfigParseError("line 1"), "host", "SSH configuration"),
        (ValueError("odd"), "host", "ValueError: odd"),
    ],
)
def test_error_of_the_library_has_field_and_remedy(error: Exception, name: str, words: str) -> None:
    found = connection_error(MACHINE, error)

    assert found.field == f"machineList[2].{name}"
    assert words in found.rule
    assert found.remedy
    assert found.message.startswith("ann@box:2222: ")


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        (Machine(0, "box", "ann", password="secret-1"), "password"),
        (Machine(0, "box", "ann", password="secret-1", key_file=MACHINE.key_file), "password"),
        (Machine(0, "box", "ann"), "user"),
    ],
)
def test_refused_login_names_the_way_and_no_secret(machine: Machine, name: str) -> None:
    found = connection_error(machine, asyncssh.PermissionDenied("Permission denied"))

    assert found.problem().field == f"machineList[0].{name}"
    assert found.permanent
    assert "secret-1" not in repr(found.problem()) + str(found)


def test_too_many_keys_are_a_refused_login() -> None:
    error = asyncssh.ProtocolError("Too many authentication failures")

    assert "was refused" in connection_error(MACHINE, error).rule


def test_keyboard_interactive_is_refused_with_that_word() -> None:
    error = asyncssh.PermissionDenied("Permission denied")
    found = connection_error(MACHINE, error, keyboard_interactive=True)

    assert "keyboard-interactive" in found.rule
    assert found.permanent


def test_error_of_a_machine_stays_the_same() -> None:
    error = MachineError(MACHINE, "host", "is odd")

    assert connection_error(MACHINE, error) is error


def test_names_of_servers_have_a_port_unless_it_is_the_usual_one() -> None:
    assert known_host_name("box", 22) == "box"
    assert known_host_name("box", 2222) == "[box]:2222"
    assert ssh_command(MACHINE) == "ssh -p 2222 ann@box"
    assert ssh_command(Machine(0, "box", "ann")) == "ssh ann@box"


@pytest.mark.parametrize(
    ("error", "permanent"),
    [
        (asyncssh.HostKeyNotVerifiable("a"), True),
        (asyncssh.KeyExchangeFailed("a"), True),
        (asyncssh.ConfigParseError("a"), True),
        (asyncssh.ConnectionLost("a"), False),
        (asyncssh.ChannelOpenError(1, "a"), False),
        (ConnectionRefusedError(111, "a"), False),
        (socket.gaierror(-2, "a"), False),
        (TimeoutError(), False),
        (OSError(errno.EPERM, "a"), False),
        (ValueError("a"), False),
    ],
)
def test_only_what_a_person_has_to_change_is_permanent(
    error: Exception, *, permanent: bool
) -> None:
    assert connection_error(MACHINE, error).permanent is permanent


@pytest.mark.parametrize(
    ("machine", "field", "value"),
    [
        (Machine(0, "box", "ann", key_file=Path("/k")), "sshKeyFile", "/k"),
        (Machine(0, "box", "ann", password="secret-1", key_file=Path("/k")), "sshKeyFile", "/k"),
        (Machine(0, "box", "ann", password="secret-1"), "password", ""),
        (Machine(0, "box", "ann"), "user", "ann"),
    ],
)
def test_refused_login_shows_the_key_file_or_the_user(
    machine: Machine, field: str, value: str
) -> None:
    problem = connection_error(machine, asyncssh.PermissionDenied("no")).problem()

    assert (problem.field, problem.value) == (f"machineList[0].{field}", value)


@pytest.mark.parametrize("number", [errno.ENETUNREACH, errno.ENETDOWN])
def test_network_that_is_away_is_a_machine_that_does_not_answer(number: int) -> None:
    assert "does not answer" in connection_error(MACHINE, OSError(number, "away")).rule


@pytest.mark.parametrize(
    ("error", "rule", "value", "remedy"),
    [
        (ConnectionRefusedError(111, "a"), "is not open: no SSH server listens there", "2222",
         "start sshd on the machine, or correct the port"),
        (TimeoutError("after 15 s"), "does not answer: after 15 s", "box",
         "switch the machine on, or allow the port in its firewall"),
        (socket.gaierror(-2, "unknown"), "has no address: unknown", "box",
         "correct the name, or add it to DNS, /etc/hosts or ~/.ssh/config"),
        (asyncssh.ConnectionLost("lost"), "ended the connection: lost", "box",
         "see the log of its sshd; to try it: ssh -p 2222 ann@box"),
        (asyncssh.ChannelOpenError(1, "full"), "refuses a session: full", "box",
         "raise MaxSessions in its sshd_config, or allow sessions for this user"),
        (asyncssh.HostKeyNotVerifiable("odd"), "has a host key that is not trusted: odd", "box",
         "accept it by hand: ssh -p 2222 ann@box"),
        (OSError(errno.EPERM, "no"), "cannot be reached: [Errno 1] no", "box",
         "try: ssh -p 2222 ann@box"),
        (asyncssh.ConfigParseError("line 1"),
         "cannot be looked up in the SSH configuration: line 1", "box", "correct ~/.ssh/config"),
    ],
)  # fmt: skip
def test_error_is_a_problem_of_the_entry_with_value_and_remedy(
    error: Exception, rule: str, value: str, remedy: str
) -> None:
    found = connection_error(MACHINE, error)
    problem = found.problem()

    assert (problem.rule, problem.value, problem.remedy) == (rule, value, remedy)
    assert problem.permanent is found.permanent
    assert found.message == f"ann@box:2222: {found.field} {rule}"


def test_changed_algorithms_are_removed_by_the_name_that_files_of_known_hosts_have() -> None:
    remedy = connection_error(MACHINE, asyncssh.KeyExchangeFailed("none")).remedy

    assert remedy.endswith("ssh-keygen -R '[box]:2222'")


@pytest.mark.parametrize(
    ("machine", "remedy"),
    [
        (Machine(0, "box", "ann", password="secret-1"), "correct user and password"),
        (Machine(0, "box", "ann", key_file=Path("/k")), "add its public key to ~/.ssh/author"),
        (Machine(0, "box", "ann"), "give a password or sshKeyFile"),
    ],
)
def test_refused_login_has_the_remedy_of_its_way(machine: Machine, remedy: str) -> None:
    found = connection_error(machine, asyncssh.PermissionDenied("no"))

    assert found.rule == "was refused by the server for user 'ann'"
    assert found.remedy.startswith(remedy)
    assert found.remedy.endswith("; to try it: ssh ann@box")


def test_too_many_keys_of_a_server_that_asks_questions_are_those_questions() -> None:
    error = asyncssh.ProtocolError("Too many authentication failures")

    found = connection_error(MACHINE, error, keyboard_interactive=True)

    assert (found.field, found.value) == ("machineList[2].user", "ann")
    assert "keyboard-interactive" in found.rule
