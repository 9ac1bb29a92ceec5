from dataclasses import replace
from pathlib import Path

import pytest

from svc_common.code_user import CodeUser
from svc_common.errors import InvalidArgumentError
from svc_trial_runner.agent_settings import (
    AgentSettings,
    ConnectionKind,
    ConnectionSettings,
    write_agent_settings,
)
from svc_trial_runner.settings import (
    Settings,
    default_slots,
    read_settings,
    settings_of_fleet,
    usable_cores,
)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (
        "POOL",
        "SLOTS",
        "FAKE_GPUS",
        "GRPC",
        "OUTPUT_LIMIT_BYTES",
        "MANAGER_GRPC",
        "REUSE_IDLE_S",
        "GRACE_S",
    ):
        monkeypatch.delenv(f"NNI_RUNNER_{name}", raising=False)
    monkeypatch.delenv("NNI_WARM", raising=False)
    monkeypatch.setenv("NNI_NATS_URL", "nats://127.0.0.1:4222")
    monkeypatch.setenv("NNI_TOKEN", "secret")
    monkeypatch.setenv("NNI_HOME", str(tmp_path))


def test_defaults(tmp_path: Path) -> None:
    settings = read_settings([])

    assert settings.pool == "local"
    assert settings.slots is settings.max_trials is settings.fake_gpus is None
    assert settings.warm
    assert settings.runner_directory == tmp_path / "runner"
    assert settings.bus_is_here
    assert not settings.live_output
    assert settings.output_limit_bytes == 128 * 2**20
    assert (settings.reuse_idle_s, settings.replicas) == (10, 1)
    assert (settings.grpc_host, settings.grpc_port) == ("127.0.0.1", 0)


def test_settings_without_an_environment_have_the_same_defaults(tmp_path: Path) -> None:
    settings = Settings("nats://127.0.0.1:4222", "secret", tmp_path, bus_is_here=True)

    read = read_settings([])
    assert settings == replace(
        read, host_name="", version="", runtime_directory=None, security=settings.security
    )


def test_everything_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_RUNNER_SLOTS", "4")
    monkeypatch.setenv("NNI_RUNNER_FAKE_GPUS", "0")
    monkeypatch.setenv("NNI_RUNNER_OUTPUT_LIMIT_BYTES", "77")
    monkeypatch.setenv("NNI_RUNNER_GRPC", "0.0.0.0:7503")
    monkeypatch.setenv("NNI_BUS_REPLICAS", "3")
    monkeypatch.setenv("NNI_WARM", "0")
    monkeypatch.setenv("NNI_RUNNER_REUSE_IDLE_S", "2.5")

    settings = read_settings(["--pool", "lab", "--max-trials", "1"])

    assert (settings.pool, settings.slots, settings.max_trials) == ("lab", 4, 1)
    assert (settings.fake_gpus, settings.output_limit_bytes) == (0, 77)
    assert settings.replicas == 3
    assert (settings.grpc_host, settings.grpc_port) == ("0.0.0.0", 7503)
    assert not settings.warm
    assert settings.reuse_idle_s == 2.5


@pytest.mark.parametrize("text", ["-1", "inf", "nan"])
def test_idle_time_must_be_finite(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_RUNNER_REUSE_IDLE_S", text)

    with pytest.raises(InvalidArgumentError, match="NNI_RUNNER_REUSE_IDLE_S must be"):
        read_settings([])


def test_shortest_times_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_RUNNER_REUSE_IDLE_S", "0")
    monkeypatch.setenv("NNI_RUNNER_GRACE_S", "2")

    settings = read_settings([])

    assert (settings.reuse_idle_s, settings.grace_s) == (0, 2)


@pytest.mark.parametrize(("host", "here"), [("10.0.0.7", False), ("localhost", True)])
def test_bus_of_an_installation_is_here_if_its_address_is(
    host: str, here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NNI_NATS_URL", f"nats://{host}:4222")

    settings = read_settings([])

    assert settings.bus_is_here is here
    assert settings.live_output is not here


def test_missing_address_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NNI_NATS_URL")

    with pytest.raises(InvalidArgumentError, match="NNI_NATS_URL must be set"):
        read_settings([])


@pytest.mark.parametrize("count", ["0", "-3"])
def test_trials_must_be_at_least_one(count: str) -> None:
    with pytest.raises(InvalidArgumentError, match="--max-trials must be >= 1"):
        read_settings(["--max-trials", count])


@pytest.mark.parametrize("address", ["7503", ":7503", "127.0.0.1:", "127.0.0.1:http"])
def test_invalid_address_is_refused(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("NNI_RUNNER_GRPC", address)

    with pytest.raises(InvalidArgumentError, match="NNI_RUNNER_GRPC must be host:port"):
        read_settings([])


def test_blobs_are_read_directly_unless_a_manager_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = read_settings([])
    monkeypatch.setenv("NNI_RUNNER_MANAGER_GRPC", "manager:7501")

    assert usual.manager_grpc == ""
    assert read_settings([]).manager_grpc == "manager:7501"


def test_manager_without_a_port_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_RUNNER_MANAGER_GRPC", "manager")

    with pytest.raises(InvalidArgumentError, match="NNI_RUNNER_MANAGER_GRPC must be host:port"):
        read_settings([])


@pytest.mark.parametrize("name", ["NNI_RUNNER_ID", "NNI_RUNNER_MANAGER_GRPC"])
def test_dash_is_no_way_to_unset_a_variable(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "-")

    with pytest.raises(InvalidArgumentError, match=name):
        read_settings([])


def test_sockets_are_in_the_runtime_directory_if_it_can_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    usable = read_settings([]).runtime_directory
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "missing"))
    missing = read_settings([]).runtime_directory
    monkeypatch.delenv("XDG_RUNTIME_DIR")

    assert (usable, missing, read_settings([]).runtime_directory) == (tmp_path, None, None)


@pytest.mark.parametrize(
    ("address", "text", "limited"),
    [
        ("nats://127.0.0.1:4222", "", False),
        ("tls://nats:4222", "", True),
        ("tls://nats:4222", "0", False),
        ("nats://127.0.0.1:4222", "auto", True),
    ],
)
def test_agents_of_other_machines_have_a_limit_by_cores_unless_set_otherwise(
    monkeypatch: pytest.MonkeyPatch, address: str, text: str, limited: bool
) -> None:
    monkeypatch.setenv("NNI_NATS_URL", address)
    monkeypatch.setenv("NNI_RUNNER_SLOTS", text)

    slots = read_settings([]).slots

    assert slots == (default_slots(usable_cores()) if limited else None)


@pytest.mark.parametrize(("cores", "slots"), [(0.1, 1), (0.5, 2), (1, 4), (2.3, 10), (16, 64)])
def test_slots_follow_the_cores(cores: float, slots: int) -> None:
    assert default_slots(cores) == slots


@pytest.mark.parametrize(
    ("text", "cores"), [("50000 100000", 0.5), ("1 100000000", 1e-8), ("max 100000", None)]
)
def test_cores_of_a_container_are_its_quota(tmp_path: Path, text: str, cores: float | None) -> None:
    everything = usable_cores(tmp_path)
    (tmp_path / "cpu.max").write_text(f"{text}\n")

    assert usable_cores(tmp_path) == (everything if cores is None else cores)


def test_negative_slots_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_RUNNER_SLOTS", "-1")

    with pytest.raises(InvalidArgumentError, match="NNI_RUNNER_SLOTS must be auto or >= 0"):
        read_settings([])


def test_trials_of_another_user_have_a_folder_that_they_may_enter(tmp_path: Path) -> None:
    alone = Settings("nats://127.0.0.1:4222", "t", tmp_path)
    parted = Settings("nats://127.0.0.1:4222", "t", tmp_path, code_user=CodeUser(65533, 65533))

    assert alone.work_directory == alone.runner_directory
    assert parted.work_directory == tmp_path / "work"


def test_grace_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_settings([]).grace_s
    monkeypatch.setenv("NNI_RUNNER_GRACE_S", "60")

    assert (before, read_settings([]).grace_s) == (5.0, 60.0)


@pytest.mark.parametrize("text", ["1", "-3", "inf", "nan"])
def test_grace_too_short_for_the_last_reports_is_refused(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NNI_RUNNER_GRACE_S", text)

    with pytest.raises(InvalidArgumentError, match="NNI_RUNNER_GRACE_S must be"):
        read_settings([])


def test_file_of_a_fleet_takes_the_place_of_all_other_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fleet = AgentSettings(
        name="one",
        pool="exp-1",
        platform="slurm",
        home="~/agents/one",
        connection=ConnectionSettings(ConnectionKind.SOCKETS, folder="/run/n"),
        bus_user="one",
        bus_password="hidden-1",
        manager_token="hidden-2",
        slots=3,
        max_trials=7,
    )
    file = tmp_path / "settings.json"
    file.touch(0o600)
    file.write_bytes(write_agent_settings(fleet))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("NNI_NATS_URL")

    settings = read_settings(["--settings", str(file)])

    assert (settings.pool, settings.slots, settings.max_trials) == ("exp-1", 3, 7)
    assert (settings.home, settings.runner_id) == (tmp_path / "agents/one", "one")
    assert (settings.token, settings.fleet) == ("hidden-2", fleet)
    assert settings.runtime_directory is None  # it would end with a login
    assert (settings.bus_is_here, settings.live_output) == (False, True)
    assert (settings.warm, settings.reuse_idle_s, settings.grace_s) == (True, 10, 5)
    assert settings.output_limit_bytes == 128 * 2**20
    assert "hidden" not in repr(settings)


@pytest.mark.parametrize(("node", "host_name"), [("desk-7", "desk-7"), ("", "localhost")])
def test_host_name_is_that_of_the_machine(
    node: str, host_name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("platform.node", lambda: node)
    fleet = AgentSettings(
        name="one",
        pool="exp-1",
        platform="slurm",
        home=str(tmp_path),
        connection=ConnectionSettings(ConnectionKind.SOCKETS, folder="/run/n"),
        bus_user="one",
        bus_password="p",
        manager_token="t",
    )

    assert read_settings([]).host_name == host_name
    assert settings_of_fleet(fleet).host_name == host_name


def test_cores_without_a_quota_are_those_that_this_process_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_process = {0: {1, 3, 5}}  # 0: the process itself
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: by_process.get(pid, {0}))

    assert usable_cores(tmp_path) == 3
