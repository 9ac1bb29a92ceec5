from pathlib import Path

import pytest

from svc_common.errors import InvalidArgumentError
from svc_trial_runner.fleet.settings import Settings, read_settings


@pytest.fixture(autouse=True)
def _variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in {
        "NNI_HOME": str(tmp_path),
        "NNI_NATS_URL": "nats://127.0.0.1:4222",
        "NNI_TOKEN": "hidden",
        "NNI_MANAGER_GRPC": "127.0.0.1:50051",
    }.items():
        monkeypatch.setenv(name, value)


def test_settings_are_read_from_the_environment(tmp_path: Path) -> None:
    settings = read_settings()

    assert settings.folder == tmp_path / "fleet"
    assert settings.manager_grpc == "127.0.0.1:50051"
    assert settings.credentials_fd is None
    assert (settings.front_host, settings.front_port, settings.replicas) == ("", 0, 1)
    assert "hidden" not in str(settings)


def test_socket_to_the_supervisor_is_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_CREDENTIALS_FD", "7")

    assert read_settings().credentials_fd == 7
    monkeypatch.setenv("NNI_CREDENTIALS_FD", "0")
    assert read_settings().credentials_fd == 0


def test_missing_address_of_the_manager_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NNI_MANAGER_GRPC")

    with pytest.raises(InvalidArgumentError, match="NNI_MANAGER_GRPC"):
        read_settings()


def test_mistyped_port_of_the_manager_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_MANAGER_GRPC", "127.0.0.1:75o1")

    with pytest.raises(InvalidArgumentError, match="NNI_MANAGER_GRPC must be host:port"):
        read_settings()


def test_host_and_port_of_the_front_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_FRONT_HOST", "gate.example.org")
    monkeypatch.setenv("NNI_FRONT_PORT", "9443")

    settings = read_settings()

    assert (settings.front_host, settings.front_port) == ("gate.example.org", 9443)


@pytest.mark.parametrize("port", [0, 65_535])
def test_first_and_last_port_of_the_front_are_accepted(
    monkeypatch: pytest.MonkeyPatch, port: int
) -> None:
    monkeypatch.setenv("NNI_FRONT_PORT", str(port))

    assert read_settings().front_port == port


@pytest.mark.parametrize("port", ["-1", "65536", "many"])
def test_port_of_the_front_that_is_none_is_refused(
    monkeypatch: pytest.MonkeyPatch, port: str
) -> None:
    monkeypatch.setenv("NNI_FRONT_PORT", port)

    with pytest.raises(InvalidArgumentError, match="NNI_FRONT_PORT"):
        read_settings()


def test_folder_that_bus_and_managers_share_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = read_settings().agent_users
    monkeypatch.setenv("NNI_AGENT_USERS", str(tmp_path / "agents"))

    assert before is None
    assert read_settings().agent_users == tmp_path / "agents"


def test_settings_of_one_machine_need_neither_copies_nor_a_port(tmp_path: Path) -> None:
    settings = Settings(tmp_path, "nats://127.0.0.1:4222", "hidden", "127.0.0.1:50051")

    assert (settings.replicas, settings.front_port) == (1, 0)


def test_copies_and_version_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_settings()
    monkeypatch.setenv("NNI_BUS_REPLICAS", "3")
    monkeypatch.setenv("NNI_VERSION", "4.2.1")

    settings = read_settings()

    assert (before.replicas, before.version) == (1, "unknown")
    assert (settings.replicas, settings.version) == (3, "4.2.1")


def test_authority_of_the_services_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NNI_TLS_CA_FILE", str(tmp_path / "ca.pem"))

    assert read_settings().security.transport.ca == tmp_path / "ca.pem"
