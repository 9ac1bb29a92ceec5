"""File of settings of an agent: read once, by its owner only."""

import io
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from svc_common.errors import InvalidArgumentError
from svc_trial_runner.agent_file import connection_settings, read_agent_file
from svc_trial_runner.agent_settings import (
    AgentSettings,
    ConnectionKind,
    ConnectionSettings,
    write_agent_settings,
)

SETTINGS = AgentSettings(
    name="one",
    pool="pool",
    platform="remote",
    home="~/.nni",
    connection=ConnectionSettings(ConnectionKind.SOCKETS, folder="/run/n"),
    bus_user="agent",
    bus_password="hidden-1",
    manager_token="hidden-2",
)
HOME = Path("/home/u/.nni")


def written(folder: Path, mode: int = 0o600) -> Path:
    path = folder / "settings.json"
    path.write_bytes(write_agent_settings(SETTINGS))
    path.chmod(mode)
    return path


def test_file_is_gone_once_it_was_read(tmp_path: Path) -> None:
    path = written(tmp_path)

    assert read_agent_file(str(path)) == SETTINGS
    assert not path.exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o622, 0o601, 0o610])
def test_file_that_others_could_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    path = written(tmp_path, mode)

    with pytest.raises(InvalidArgumentError, match="only this user may read"):
        read_agent_file(str(path))


def test_link_folder_and_missing_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(written(tmp_path))

    for name in ("link", "gone", ""):
        with pytest.raises(InvalidArgumentError, match="must be a"):
            read_agent_file(str(tmp_path / name))


def test_file_that_cannot_be_understood_stays(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_bytes(b"{}")

    with pytest.raises(InvalidArgumentError, match="format"):
        read_agent_file(str(path))
    assert path.exists()


@pytest.mark.parametrize(("size_bytes", "accepted"), [(1_000_000, True), (1_000_001, False)])
def test_settings_have_a_megabyte_at_most(
    tmp_path: Path, size_bytes: int, *, accepted: bool
) -> None:
    path = written(tmp_path)
    path.write_bytes(path.read_bytes().rjust(size_bytes))

    if accepted:
        assert read_agent_file(str(path)) == SETTINGS
    else:
        with pytest.raises(InvalidArgumentError, match="must be JSON"):
            read_agent_file(str(path))


def test_standard_input_takes_the_place_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(write_agent_settings(SETTINGS)))
    monkeypatch.setattr(sys, "stdin", stdin)

    assert read_agent_file("-") == SETTINGS


def test_sockets_are_found_in_their_folder() -> None:
    reached = connection_settings(SETTINGS, HOME)

    assert (reached.nats_url, reached.manager) == ("", "unix:/run/n/manager.sock")
    assert (reached.security.bus.user, reached.security.bus.password) == ("agent", "hidden-1")


def test_authority_encrypts_bus_and_manager() -> None:
    connection = ConnectionSettings(
        ConnectionKind.TLS, bus="tls://front:1", manager="front:1", authority="PEM"
    )

    reached = connection_settings(replace(SETTINGS, connection=connection), HOME)

    assert (reached.nats_url, reached.manager) == ("tls://front:1", "front:1")
    assert reached.security.transport.ca == HOME / "authority.pem"
    assert reached.security.transport.server_name == "nni-front"
    assert reached.security.bus.tls_first


def test_addresses_of_loopback_are_taken_as_they_are() -> None:
    connection = ConnectionSettings(ConnectionKind.DIRECT, "nats://127.0.0.1:1", "127.0.0.1:2")

    reached = connection_settings(replace(SETTINGS, connection=connection), HOME)

    assert (reached.nats_url, reached.manager) == ("nats://127.0.0.1:1", "127.0.0.1:2")
    assert reached.security.transport.ca is None


@pytest.mark.parametrize(
    ("connection", "name"),
    [
        (ConnectionSettings(ConnectionKind.SOCKETS), "folder"),
        (ConnectionSettings(ConnectionKind.DIRECT, manager="h:1"), "bus"),
        (ConnectionSettings(ConnectionKind.DIRECT, bus="nats://h:1"), "manager"),
        (ConnectionSettings(ConnectionKind.TLS, "tls://h:1", "h:1"), "authority"),
    ],
)
def test_what_a_kind_of_connection_needs_must_be_there(
    connection: ConnectionSettings, name: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{name} must be in the settings"):
        connection_settings(replace(SETTINGS, connection=connection), HOME)


@pytest.mark.parametrize("name", ["bus_user", "manager_token"])
def test_agent_without_credentials_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{name} must be in the settings"):
        connection_settings(replace(SETTINGS, **{name: ""}), HOME)  # type: ignore[arg-type] # text
