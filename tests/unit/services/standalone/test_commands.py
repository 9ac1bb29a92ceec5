import socket
from dataclasses import replace
from pathlib import Path

import pytest

from svc_common.messaging.permissions import runner_user
from svc_standalone.bus_probe import BusLogin
from svc_standalone.commands import (
    BUS,
    SERVICES,
    Plan,
    Ports,
    bus_command,
    bus_config,
    service_command,
)
from svc_standalone.settings import Durability

PLAN = Plan(home=Path("/home/x"), ports=Ports(1, 2, 5, 6, 3, 4), version="4.0.0", token='se"cret')


def test_bus_listens_on_loopback_with_one_user_per_service() -> None:
    config = bus_config(PLAN)

    assert 'listen: "127.0.0.1:1"' in config
    assert 'user: "operator", password: "se\\"cret"' in config
    for user in ("manager", "dispatcher", "compressor", "runner", "supervisor"):
        assert f'user: "{user}", password: "' in config
    assert 'store_dir: "/home/x/jetstream"' in config


def test_configuration_with_the_token_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    plan = Plan(home=tmp_path, ports=PLAN.ports, version="4", token="t")
    (tmp_path / "nats.conf").write_text("old")

    command = bus_command(plan)

    config = tmp_path / "nats.conf"
    assert (command.name, command.reports_ready) == (BUS, False)
    assert command.probe == BusLogin(1, "supervisor", plan.passwords["supervisor"])
    assert Path(command.arguments[0]).name == "nats-server"
    assert command.arguments[1:] == ("-c", str(config))
    assert config.stat().st_mode & 0o777 == 0o600
    assert config.read_text() == bus_config(plan)


def test_streams_of_an_older_version_are_moved_to_the_account(tmp_path: Path) -> None:
    plan = replace(PLAN, home=tmp_path)
    streams = tmp_path / "jetstream" / "jetstream"
    (streams / "$G" / "streams" / "EXPERIMENTS").mkdir(parents=True)

    bus_command(plan)
    bus_command(plan)

    assert [path.name for path in streams.iterdir()] == ["NNI"]
    assert (streams / "NNI" / "streams" / "EXPERIMENTS").is_dir()


def test_service_gets_its_settings_by_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMETHING", "else")

    command = service_command(PLAN, "dispatcher")

    assert list(command.arguments[1:]) == ["-P", "-m", "svc_dispatcher"]
    assert command.environment["NNI_NATS_URL"] == "nats://127.0.0.1:1"
    assert command.environment["NNI_DISPATCHER_GRPC"] == "127.0.0.1:2"
    assert command.environment["NNI_MANAGER_GRPC"] == "127.0.0.1:3"
    assert command.environment["NNI_MANAGER_HTTP"] == "127.0.0.1:4"
    assert command.environment["NNI_HOME"] == "/home/x"
    assert command.environment["SOMETHING"] == "else"


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_can_be_a_fork_of_its_package_and_reports_readiness(name: str) -> None:
    command = service_command(PLAN, name)

    assert (command.package, command.reports_ready) == (SERVICES[name], True)


def test_each_service_gets_its_own_user_of_the_bus() -> None:
    commands = {name: service_command(PLAN, name) for name in SERVICES}
    logins = {
        name: (command.environment["NNI_NATS_USER"], command.secrets["NNI_NATS_PASSWORD"])
        for name, command in commands.items()
    }

    assert {user for user, _ in logins.values()} == {
        "manager",
        "dispatcher",
        "compressor",
        "nas",
        "runner",
        "fleet",
    }
    assert len({password for _, password in logins.values()}) == len(SERVICES)
    for user, password in logins.values():
        assert f'user: "{user}", password: "{password}"' in bus_config(PLAN)


def test_manager_alone_reads_the_tokens_of_agents() -> None:
    variables = {name: service_command(PLAN, name).environment for name in SERVICES}

    files = {
        name: found["NNI_ACCESS_FILE"]
        for name, found in variables.items()
        if "NNI_ACCESS_FILE" in found
    }
    assert files == {"manager": "/home/x/agents.access.json"}


def test_users_of_agents_are_in_the_configuration_of_the_bus() -> None:
    agent = runner_user("nni-abcd1234-p-1", "p", "nni-abcd1234-p-1")

    text = bus_config(PLAN, [(agent, "password-of-the-agent")])

    assert 'user: "nni-abcd1234-p-1", password: "password-of-the-agent"' in text
    assert "password-of-the-agent" not in bus_config(PLAN)


def test_security_variables_do_not_reach_services_on_loopback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NNI_TLS_CA_FILE", "/etc/nni/ca.pem")
    monkeypatch.setenv("NNI_RUNNER_POOL", "gpu")

    variables = service_command(PLAN, "trial-runner").environment

    assert "NNI_TLS_CA_FILE" not in variables
    assert variables["NNI_RUNNER_POOL"] == "local"


def test_no_secret_is_in_an_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NNI_S3_SECRET_KEY", "hush")
    monkeypatch.setenv("NNI_REDIS_URL", "redis://user:hush@host")
    plan = replace(PLAN, home=tmp_path)

    commands = [bus_command(plan), *(service_command(plan, name) for name in SERVICES)]

    for command in commands:
        shown = repr(command)
        for secret in (plan.token, "hush", *plan.passwords.values()):
            assert secret not in shown
    assert commands[1].secrets["NNI_S3_SECRET_KEY"] == "hush"
    assert commands[1].secrets["NNI_TOKEN"] == plan.token


def test_secrets_are_not_in_the_representation() -> None:
    assert "cret" not in repr(PLAN)


def test_bus_synchronises_each_message_if_a_cut_of_power_is_to_lose_nothing() -> None:
    process = replace(PLAN, durability=Durability.PROCESS)

    assert "sync_interval: always" in bus_config(PLAN)
    assert "sync_interval" not in bus_config(process)


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        (
            "manager",
            {"NNI_MANAGER_HTTP_FD": 0, "NNI_LISTENERS_FD": 1, "NNI_FLEET_DEMAND_FD": 3},
        ),
        ("fleet", {"NNI_CREDENTIALS_FD": 2}),
        ("dispatcher", {}),
    ],
)
def test_service_inherits_its_own_sockets_alone(name: str, variables: dict[str, int]) -> None:
    sockets = [socket.socket() for _ in range(4)]
    http, listeners, credentials, demand = sockets

    command = service_command(PLAN, name, http, listeners, credentials, demand)

    numbers = {variable: sockets[place].fileno() for variable, place in variables.items()}
    passed = {key: int(command.environment[key]) for key in command.environment if "_FD" in key}
    assert passed == numbers
    assert command.descriptors == list(numbers.values())
    for one in sockets:
        one.close()
