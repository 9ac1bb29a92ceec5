"""Logins over a real SSH server."""

import asyncio
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

pytest.importorskip("asyncssh", reason="the extra remote is not installed")

import asyncssh

from svc_trial_runner.fleet.adapters.remote.connections import open_connection
from svc_trial_runner.fleet.adapters.remote.errors import MachineError
from svc_trial_runner.fleet.adapters.remote.machines import HostKeyPolicy, Machine
from tests.support import wait
from tests.support.remote_machines import PASSWORD, USER, Machines
from tests.support.ssh_server import SshServer, make_key

HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """One machine, whose server takes a password and a key."""
    machines = Machines(tmp_path_factory.mktemp("machines"))
    machines.start()
    yield machines
    machines.close()


@pytest.fixture
def machine(world: Machines) -> Machine:
    """Entry of the machine without a way to log in."""
    return Machine(0, HOST, USER, world.servers[0].port)


def log_in(
    machine: Machine, known_hosts: Path, config: str = "", folder: Path | None = None
) -> str:
    """Log in, run a command and return its output."""

    async def run() -> str:
        files = []
        if folder is not None:
            (folder / "config").write_text(config)
            files = [folder / "config"]
        async with asyncio.timeout(60):
            connection = await open_connection(machine, known_hosts, files)
            async with connection:
                done = await connection.run("echo $((6 * 7))")
        return str(done.stdout).strip()

    return asyncio.run(run())


def running(word: str) -> list[psutil.Process]:
    """Return the processes with a word on their command line."""
    found = psutil.process_iter(["cmdline"])
    return [one for one in found if word in (one.info["cmdline"] or ())]


def wait_until_reaped(processes: list[psutil.Process]) -> None:
    """Wait until children of an event loop have ended, and the loop has been notified.

    A loop that is closed before leaves an object that warns of a running process.
    """
    wait.until(lambda: not any(one.is_running() for one in processes), 30.0)
    for thread in threading.enumerate():
        if thread.name.startswith("asyncio-waitpid"):
            thread.join()


def refusal(machine: Machine, known_hosts: Path) -> MachineError:
    """Return why a login fails."""
    with pytest.raises(MachineError) as caught:
        log_in(machine, known_hosts)
    return caught.value


def test_password_logs_in(world: Machines, machine: Machine) -> None:
    assert log_in(replace(machine, password=PASSWORD), world.known_hosts) == "42"


def test_key_logs_in(world: Machines, machine: Machine) -> None:
    keyed = replace(machine, key_file=Path(world.key_file))

    assert log_in(keyed, world.known_hosts) == "42"


@pytest.mark.claim("platform", 76)
def test_password_is_tried_before_the_key(
    world: Machines, machine: Machine, tmp_path: Path
) -> None:
    both = replace(machine, password=PASSWORD, key_file=Path(make_key(tmp_path / "other")))

    assert log_in(both, world.known_hosts) == "42"


def test_key_is_tried_after_a_wrong_password(world: Machines, machine: Machine) -> None:
    both = replace(machine, password="wrong", key_file=Path(world.key_file))

    assert log_in(both, world.known_hosts) == "42"


def test_wrong_password_is_a_problem_of_the_password(world: Machines, machine: Machine) -> None:
    error = refusal(replace(machine, password="wrong-1"), world.known_hosts)

    assert error.field == "machineList[0].password"
    assert error.permanent
    assert "wrong-1" not in f"{error} {error.problem()}"


def test_key_that_is_not_authorized_is_a_problem_of_the_key_file(
    world: Machines, machine: Machine, tmp_path: Path
) -> None:
    other = Path(make_key(tmp_path / "other"))
    error = refusal(replace(machine, key_file=other), world.known_hosts)

    assert (error.field, error.value) == ("machineList[0].sshKeyFile", str(other))


def test_key_file_that_is_missing_or_no_key_is_a_problem(
    world: Machines, machine: Machine, tmp_path: Path
) -> None:
    text = tmp_path / "text"
    text.write_text("no key")
    for path, words in ((tmp_path / "none", "cannot be read"), (text, "is no private key")):
        error = refusal(replace(machine, key_file=path), world.known_hosts)

        assert error.field == "machineList[0].sshKeyFile"
        assert words in error.rule


def test_passphrase_opens_a_key(world: Machines, machine: Machine, tmp_path: Path) -> None:
    pytest.importorskip("bcrypt", reason="keys with a passphrase need bcrypt")
    encrypted = Path(make_key(tmp_path / "encrypted", "open sesame"))
    keyed = replace(machine, key_file=encrypted)

    missing = refusal(keyed, world.known_hosts)
    wrong = refusal(replace(keyed, passphrase="wrong-2"), world.known_hosts)
    right = refusal(replace(keyed, passphrase="open sesame"), world.known_hosts)

    assert missing.field == wrong.field == "machineList[0].sshPassphrase"
    assert "must be given" in missing.rule
    assert "wrong-2" not in f"{wrong} {wrong.problem()}"
    assert right.field == "machineList[0].sshKeyFile"  # read, but the server does not know it


@pytest.mark.skipif(not shutil.which("ssh-agent"), reason="ssh-agent is not installed")
def test_keys_of_the_agent_log_in(
    world: Machines, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    sockets = Path(tempfile.mkdtemp(prefix="nni-")) / "agent"
    with subprocess.Popen(
        ["ssh-agent", "-D", "-a", str(sockets)], stdout=subprocess.PIPE, text=True
    ) as agent:
        try:
            assert agent.stdout is not None
            assert agent.stdout.readline()
            monkeypatch.setenv("SSH_AUTH_SOCK", str(sockets))
            subprocess.run(["ssh-add", "-q", world.key_file], check=True)

            assert log_in(machine, world.known_hosts) == "42"
        finally:
            agent.terminate()
            agent.wait()  # it removes its socket
            shutil.rmtree(sockets.parent)


def test_login_without_any_key_is_a_problem_of_the_user(
    world: Machines, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "gone"))

    error = refusal(machine, world.known_hosts)

    assert error.field == "machineList[0].user"
    assert "SSH_AUTH_SOCK" in error.remedy


def test_keyboard_interactive_is_refused_with_that_word(world: Machines, tmp_path: Path) -> None:
    server = SshServer(replace(world.servers[0].options, keyboard_interactive=True, port=0))
    server.start()
    world.trust(server.port)
    try:
        machine = Machine(0, HOST, USER, server.port, password=PASSWORD)
        error = refusal(machine, world.known_hosts)
    finally:
        server.kill()

    assert "keyboard-interactive" in error.rule


def test_unknown_host_key_is_refused(world: Machines, machine: Machine, tmp_path: Path) -> None:
    error = refusal(replace(machine, password=PASSWORD), tmp_path / "none")

    assert "unknown host key" in error.rule
    assert f"[{HOST}]:{machine.port} ssh-ed25519 " in error.remedy
    assert "known_hosts" in error.remedy


def test_new_host_key_is_accepted_once_and_then_strictly_known(
    world: Machines, machine: Machine, tmp_path: Path
) -> None:
    accepted = tmp_path / "accepted"
    new = replace(machine, password=PASSWORD, host_key_policy=HostKeyPolicy.ACCEPT_NEW)

    assert log_in(new, accepted) == "42"
    assert log_in(new, accepted) == "42"

    assert len(accepted.read_text().splitlines()) == 1
    assert log_in(replace(machine, password=PASSWORD), accepted) == "42"


def test_changed_host_key_is_refused_though_new_ones_are_accepted(
    world: Machines, machine: Machine, tmp_path: Path
) -> None:
    public = Path(f"{make_key(tmp_path / 'other')}.pub").read_text()
    accepted = tmp_path / "accepted"
    accepted.write_text(f"[{HOST}]:{machine.port} {public}")
    new = replace(machine, password=PASSWORD, host_key_policy=HostKeyPolicy.ACCEPT_NEW)

    error = refusal(new, accepted)

    assert "another host key than before" in error.rule
    assert accepted.read_text() == f"[{HOST}]:{machine.port} {public}"


def test_host_without_an_address_and_closed_port_are_problems(
    world: Machines, machine: Machine
) -> None:
    nowhere = refusal(replace(machine, host="no-such-host.invalid"), world.known_hosts)
    closed = refusal(replace(machine, port=9), world.known_hosts)

    assert nowhere.field == "machineList[0].host"
    assert "has no address" in nowhere.rule
    assert closed.field == "machineList[0].port"
    assert not closed.permanent


def test_ssh_configuration_holds_with_include_and_match(
    world: Machines, machine: Machine, tmp_path: Path
) -> None:
    included = tmp_path / "included"
    included.write_text(f"Host lab-*\n  HostName {HOST}\n  Port {machine.port}\n")
    config = (
        f"Include {included}\nMatch originalhost lab-1\n"
        f"  IdentityFile {world.key_file}\n  IdentitiesOnly yes\n"
    )
    named = Machine(0, "lab-1", USER)
    line = f"[lab-1]:{machine.port} {Path(f'{world.host_key}.pub').read_text()}"
    known = tmp_path / "known"
    known.write_text(line.replace("lab-1", HOST))

    assert log_in(named, known, config, tmp_path) == "42"


def test_ssh_configuration_never_switches_off_the_check_of_host_keys(
    machine: Machine, tmp_path: Path
) -> None:
    config = "Host *\n  UserKnownHostsFile none\n  StrictHostKeyChecking no\n"

    with pytest.raises(MachineError, match="host key"):
        log_in(replace(machine, password=PASSWORD), tmp_path / "none", config, tmp_path)


def test_proxy_command_of_the_configuration_is_used_and_ended(
    world: Machines, machine: Machine, tmp_path: Path
) -> None:
    proxy = tmp_path / "proxy.py"
    proxy.write_text(
        "import os, socket, sys, threading\n"
        "s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "def up():\n"
        "    while d := os.read(0, 65536): s.sendall(d)\n"
        "    s.shutdown(socket.SHUT_WR)\n"
        "threading.Thread(target=up, daemon=True).start()\n"
        "while d := s.recv(65536): os.write(1, d)\n"
    )
    config = f"Host behind\n  ProxyCommand python3 {proxy} {HOST} {machine.port}\n"
    named = replace(machine, host="behind", password=PASSWORD)
    known = tmp_path / "known"
    public = Path(f"{world.host_key}.pub").read_text()
    known.write_text(f"[behind]:{machine.port} {public}")

    (tmp_path / "config").write_text(config)

    async def case() -> None:
        async with asyncio.timeout(60):
            async with await open_connection(named, known, [tmp_path / "config"]):
                used = running(str(proxy))
            await asyncio.to_thread(wait_until_reaped, used)
        assert used

    asyncio.run(case())


def test_proxy_jump_of_the_configuration_is_used(
    world: Machines, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".ssh").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    public = Path(f"{world.host_key}.pub").read_text()
    (tmp_path / ".ssh/known_hosts").write_text(
        f"[{HOST}]:{machine.port} {public}[inner]:{machine.port} {public}"
    )
    config = (
        f"Host jump\n  HostName {HOST}\n  Port {machine.port}\n  User {USER}\n"
        f"  IdentityFile {world.key_file}\n"
        f"Host inner\n  HostName {HOST}\n  HostKeyAlias inner\n  ProxyJump jump\n"
    )

    assert (
        log_in(
            replace(machine, host="inner", password=PASSWORD), tmp_path / "none", config, tmp_path
        )
        == "42"
    )


@pytest.mark.parametrize(
    ("config", "cipher"),
    [("", "aes128-gcm@openssh.com"), ("Host *\n  Ciphers aes256-ctr\n", "aes256-ctr")],
)
def test_cheap_cipher_is_used_unless_the_user_names_one(
    machine: Machine, tmp_path: Path, config: str, cipher: str
) -> None:
    (tmp_path / "config").write_text(config)
    named = replace(machine, password=PASSWORD, host_key_policy=HostKeyPolicy.ACCEPT_NEW)

    async def used() -> object:
        async with asyncio.timeout(60):
            connection = await open_connection(
                named, tmp_path / "known_hosts", [tmp_path / "config"]
            )
            async with connection:
                found: object = connection.get_extra_info("send_cipher")
        return found

    assert asyncio.run(used()) == cipher


def options_of(
    machine: Machine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, object]:
    """Return the options with which the SSH library is called."""
    used: dict[str, object] = {}

    async def connect(_host: str, **options: object) -> None:
        used.update(options)
        raise ConnectionRefusedError

    monkeypatch.setattr(asyncssh, "connect", connect)
    with pytest.raises(MachineError):
        asyncio.run(open_connection(machine, folder / "known_hosts", []))
    return used


def test_login_has_limits_and_a_dead_machine_is_noticed_within_half_a_minute(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = options_of(machine, tmp_path, monkeypatch)

    assert (used["connect_timeout"], used["login_timeout"]) == (15.0, 30.0)
    assert (used["keepalive_interval"], used["keepalive_count_max"]) == (10.0, 3)


def test_agent_with_the_keys_of_the_user_is_never_forwarded_and_used_only_without_others(
    world: Machines, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = options_of(machine, tmp_path, monkeypatch)
    by_password = options_of(replace(machine, password="p"), tmp_path, monkeypatch)
    by_key = options_of(replace(machine, key_file=Path(world.key_file)), tmp_path, monkeypatch)

    assert {one["agent_forwarding"] for one in (bare, by_password, by_key)} == {False}
    assert not {"password", "client_keys", "agent_path"} & bare.keys()
    assert (by_password["password"], by_password["client_keys"]) == ("p", None)
    assert "agent_path" not in by_password
    assert by_key["agent_path"] is None
    assert isinstance(by_key["client_keys"], list)


@pytest.mark.parametrize(("port", "named"), [(22, False), (2222, True)])
def test_port_of_the_entry_wins_unless_it_is_the_usual_one(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, port: int, named: bool
) -> None:
    used = options_of(replace(machine, port=port), tmp_path, monkeypatch)

    assert used.get("port") == (port if named else None)
