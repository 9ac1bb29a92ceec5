"""Decision about host keys."""

from pathlib import Path

import pytest

pytest.importorskip("asyncssh", reason="the extra remote is not installed")

import asyncssh

from svc_trial_runner.fleet.adapters.remote.host_keys import (
    HostKeyCheck,
    files_of,
    known_hosts_files,
)
from svc_trial_runner.fleet.adapters.remote.machines import HostKeyPolicy, Machine

STRICT = Machine(0, "box", "ann", 2222)
ACCEPTING = Machine(0, "box", "ann", 2222, host_key_policy=HostKeyPolicy.ACCEPT_NEW)


@pytest.fixture(scope="module")
def key() -> "asyncssh.SSHKey":
    return asyncssh.generate_private_key("ssh-ed25519").convert_to_public()


def line_of(key: "asyncssh.SSHKey", host: str) -> str:
    return f"{host} {key.export_public_key().decode().strip()}\n"


def test_unknown_key_is_refused_with_the_line_that_accepts_it(
    tmp_path: Path, key: "asyncssh.SSHKey"
) -> None:
    check = HostKeyCheck(STRICT, [], tmp_path / "accepted")

    assert not check.accepts("box", "10.0.0.1", 2222, key)

    assert check.error is not None
    assert key.get_fingerprint() in check.error.rule
    line = line_of(key, "[box]:2222").strip()
    assert f"echo '{line}' >> ~/.ssh/known_hosts" in check.error.remedy
    assert not (tmp_path / "accepted").exists()


def test_line_that_is_shown_makes_the_key_known(tmp_path: Path, key: "asyncssh.SSHKey") -> None:
    check = HostKeyCheck(STRICT, [], tmp_path / "accepted")
    check.accepts("box", "10.0.0.1", 2222, key)
    assert check.error is not None
    known = check.error.remedy.partition("echo '")[2].partition("'")[0]

    found = asyncssh.match_known_hosts(known.encode(), "box", "10.0.0.1", 2222)

    assert list(found[0]) == [key]


def test_accepted_key_is_written_to_a_private_file(tmp_path: Path, key: "asyncssh.SSHKey") -> None:
    file = tmp_path / "new" / "accepted"
    check = HostKeyCheck(ACCEPTING, [], file)

    assert check.accepts("box", "10.0.0.1", 2222, key)

    assert file.stat().st_mode & 0o777 == 0o600
    known = asyncssh.match_known_hosts(str(file), "box", "10.0.0.1", 2222)
    assert list(known[0]) == [key]


@pytest.mark.parametrize("machine", [STRICT, ACCEPTING])
def test_changed_key_is_refused_by_every_policy(
    tmp_path: Path, key: "asyncssh.SSHKey", machine: Machine
) -> None:
    file = tmp_path / "known"
    file.write_text(line_of(key, "[box]:2222"))
    check = HostKeyCheck(machine, [str(file)], tmp_path / "accepted")
    other = asyncssh.generate_private_key("ssh-ed25519").convert_to_public()

    assert not check.accepts("box", "10.0.0.1", 2222, other)

    assert check.error is not None
    assert "another host key than before" in check.error.rule
    assert "ssh-keygen" in check.error.remedy


def test_files_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.touch()

    assert known_hosts_files([str(tmp_path / "none"), str(tmp_path)], own) == [str(own)]


def test_changed_key_at_the_usual_port_is_refused(tmp_path: Path, key: "asyncssh.SSHKey") -> None:
    file = tmp_path / "known"
    file.write_text(line_of(key, "box"))
    check = HostKeyCheck(Machine(0, "box", "ann"), [str(file)], tmp_path / "accepted")
    other = asyncssh.generate_private_key("ssh-ed25519").convert_to_public()

    assert not check.accepts("box", "10.0.0.1", 22, other)

    assert check.error is not None
    assert check.error.permanent
    assert "-R 'box'" in check.error.remedy


def test_unknown_key_may_become_known(tmp_path: Path, key: "asyncssh.SSHKey") -> None:
    file = tmp_path / "known"
    file.write_text(line_of(key, "other"))
    check = HostKeyCheck(STRICT, [str(file)], tmp_path / "accepted")

    assert not check.accepts("box", "10.0.0.1", 2222, key)

    assert check.error is not None
    assert not check.error.permanent
    assert "an unknown host key" in check.error.rule


def test_accepted_keys_are_appended(tmp_path: Path, key: "asyncssh.SSHKey") -> None:
    file = tmp_path / "accepted"
    check = HostKeyCheck(ACCEPTING, [], file)

    for host in ("box", "other"):
        assert check.accepts(host, "10.0.0.1", 2222, key)

    assert [line.partition(" ")[0] for line in file.read_text().splitlines()] == [
        "[box]:2222",
        "[other]:2222",
    ]


def test_usual_files_are_those_of_the_user_and_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    own = tmp_path / ".ssh" / "known_hosts"
    own.parent.mkdir()
    own.touch()
    (tmp_path / "accepted").touch()
    (tmp_path / "other").touch()

    usual = known_hosts_files([], tmp_path / "accepted")
    given = known_hosts_files(["~/other"], tmp_path / "none")

    machine = Path("/etc/ssh/ssh_known_hosts")
    assert usual == [
        str(own), *([str(machine)] if machine.is_file() else []), str(tmp_path / "accepted")
    ]  # fmt: skip
    assert given == [str(tmp_path / "other")]


def test_all_files_are_named_from_which_a_changed_key_is_removed(
    tmp_path: Path, key: "asyncssh.SSHKey"
) -> None:
    files = [str(tmp_path / "first"), str(tmp_path / "second")]
    (tmp_path / "first").touch()
    (tmp_path / "second").write_text(line_of(key, "[box]:2222"))
    check = HostKeyCheck(ACCEPTING, files, tmp_path / "accepted")
    other = asyncssh.generate_private_key("ssh-ed25519").convert_to_public()

    assert not check.accepts("box", "10.0.0.1", 2222, other)

    assert check.error is not None
    assert f"{files[0]} or {files[1]}: ssh-keygen -f FILE -R '[box]:2222'" in check.error.remedy
    assert f"{other.get_algorithm()} {other.get_fingerprint()}" in check.error.rule
    assert (check.error.field, check.error.value) == ("machineList[0].host", "box")
    assert not (tmp_path / "accepted").exists()


def test_key_at_another_port_is_that_of_another_server(
    tmp_path: Path, key: "asyncssh.SSHKey"
) -> None:
    file = tmp_path / "known"
    file.write_text(line_of(key, "[box]:2223"))
    check = HostKeyCheck(ACCEPTING, [str(file)], tmp_path / "accepted")

    assert check.accepts("box", "10.0.0.1", 2222, key)
    assert check.error is None


def test_folder_of_accepted_keys_is_private(tmp_path: Path, key: "asyncssh.SSHKey") -> None:
    check = HostKeyCheck(ACCEPTING, [], tmp_path / "a" / "b" / "accepted")

    check.accepts("box", "10.0.0.1", 2222, key)

    assert (tmp_path / "a" / "b").stat().st_mode & 0o077 == 0


async def test_files_of_a_server_are_those_of_its_configuration_and_the_accepted_keys(
    tmp_path: Path,
) -> None:
    for name in ("own", "accepted"):
        (tmp_path / name).write_text("")
    configured = tmp_path / "config"
    configured.write_text(f"Host box\n  UserKnownHostsFile {tmp_path / 'own'}\n")
    options = asyncssh.SSHClientConnectionOptions(host="box", config=[str(configured)])

    found = await files_of(options, tmp_path / "accepted")

    assert str(tmp_path / "own") in found
    assert str(tmp_path / "accepted") in found
