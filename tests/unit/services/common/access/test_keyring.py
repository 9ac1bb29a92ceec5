import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nni_wire.access import AccessEntry, dump_entries, fingerprint
from svc_common.access.keyring import Keyring
from svc_common.access.roles import Role
from svc_common.errors import InvalidArgumentError

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def write(path: Path, *entries: AccessEntry) -> Path:
    draft = path.with_suffix(".new")
    draft.write_text(dump_entries(entries))
    draft.chmod(0o600)
    draft.replace(path)
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(
        tmp_path / "access.json",
        AccessEntry("alice", "user", sha256=fingerprint("alice's")),
        AccessEntry("old", "admin", sha256=fingerprint("old's"), expires=NOW),
        AccessEntry("box", "viewer", common_name="box.lab"),
    )


def test_each_token_has_its_caller(file: Path) -> None:
    keyring = Keyring("own", file, agent_token="agents'", now=lambda: NOW)

    found = {token: keyring.of_token(token) for token in ("own", "alice's", "agents'")}

    assert {one.name: one.role for one in found.values() if one} == {
        "installation": Role.ADMIN,
        "alice": Role.USER,
        "agents": Role.AGENT,
    }


@pytest.mark.parametrize("token", ["", "wrong", "own ", "OWN", "x" * 1000, "\udcff", "old's"])
def test_unknown_tokens_have_no_caller(file: Path, token: str) -> None:
    assert Keyring("own", file, now=lambda: NOW).of_token(token) is None


def test_token_expires(file: Path) -> None:
    before = Keyring("own", file, now=lambda: NOW - timedelta(seconds=1))

    assert before.of_token("old's") is not None
    assert Keyring("own", file, now=lambda: NOW).of_token("old's") is None


def test_certificates_are_identified_by_common_name(file: Path) -> None:
    keyring = Keyring("own", file)
    found = keyring.of_certificate("box.lab")

    assert found is not None
    assert (found.name, found.role, found.by) == ("box", Role.VIEWER, "certificate")
    assert keyring.of_certificate("other.lab") is None
    assert keyring.of_certificate("") is None
    assert keyring.of_token("box.lab") is None


def test_revocation_needs_no_restart(file: Path) -> None:
    keyring = Keyring("own", file)
    assert keyring.of_token("alice's") is not None

    write(file, AccessEntry("bob", "user", sha256=fingerprint("bob's")))

    assert keyring.of_token("alice's") is None
    assert keyring.of_token("bob's") is not None


@pytest.mark.parametrize("damage", ["gone", "nonsense", "open"])
def test_file_that_becomes_malformed_changes_nothing_until_it_is_repaired(
    file: Path, damage: str
) -> None:
    keyring = Keyring("own", file)
    if damage == "gone":
        file.unlink()
    elif damage == "nonsense":
        file.write_text("nonsense")
    else:
        file.chmod(0o666)
        os.utime(file, (1, 1))

    assert keyring.of_token("alice's") is not None
    assert keyring.of_token("alice's") is not None
    write(file)
    assert keyring.of_token("alice's") is None


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_file_writable_by_others_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)

    with pytest.raises(InvalidArgumentError, match=r"must not be writable.*chmod"):
        Keyring("own", file)


def test_malformed_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="must be readable"):
        Keyring("own", tmp_path / "missing")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(InvalidArgumentError, match="must be what `nnictl token` writes"):
        Keyring("own", tmp_path / "text")
    (tmp_path / "huge").write_bytes(b" " * 4_000_001)
    with pytest.raises(InvalidArgumentError, match="at most"):
        Keyring("own", tmp_path / "huge")


@pytest.mark.parametrize("name", ["installation", "agents", "Installation"])
def test_caller_with_the_name_of_a_service_is_refused(file: Path, name: str) -> None:
    file.write_text(file.read_text().replace('"alice"', f'"{name}"'))

    with pytest.raises(InvalidArgumentError, match="must not be"):
        Keyring("own", file)


def test_agents_of_a_fleet_are_known_once_it_has_written_them(file: Path, tmp_path: Path) -> None:
    agents = tmp_path / "agents.access.json"
    keyring = Keyring("own", file, agents_file=agents)
    before = keyring.of_token("box's")
    write(agents, AccessEntry("nni-1-p-1", "agent", sha256=fingerprint("box's"), pool="p"))

    found = keyring.of_token("box's")

    assert before is None
    assert found is not None
    assert (found.name, found.role, found.pool) == ("nni-1-p-1", Role.AGENT, "p")
    assert keyring.of_token("alice's") is not None


def test_file_of_the_fleet_gives_no_other_role(tmp_path: Path) -> None:
    agents = write(
        tmp_path / "agents.access.json",
        AccessEntry("eve", "admin", sha256=fingerprint("eve's")),
        AccessEntry("mallory", "user", common_name="mallory.lab"),
    )
    keyring = Keyring("own", agents_file=agents)

    assert keyring.of_token("eve's") is None
    assert keyring.of_certificate("mallory.lab") is None
    assert keyring.of_name("eve") is None
