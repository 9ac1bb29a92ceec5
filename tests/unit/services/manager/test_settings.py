import socket
from datetime import timedelta
from pathlib import Path

import pytest

from svc_common.errors import InvalidArgumentError
from svc_manager.domain.quota import Quota
from svc_manager.settings import from_environment


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_NATS_URL", "nats://127.0.0.1:4222")
    monkeypatch.setenv("NNI_TOKEN", "secret")
    monkeypatch.setenv("NNI_DISPATCHER_GRPC", "127.0.0.1:1")
    for name in ("NNI_REDIS_URL", "NNI_S3_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


def test_local_shape_needs_no_server_for_its_stores() -> None:
    settings = from_environment()

    assert settings.redis_url is None
    assert settings.s3 is None


def test_redis_url_is_taken_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_REDIS_URL", "rediss://user:hush@redis:6379/2")

    settings = from_environment()

    assert settings.redis_url == "rediss://user:hush@redis:6379/2"
    assert "hush" not in repr(settings)


def test_redis_password_may_come_apart_from_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_REDIS_URL", "rediss://redis:6379/2")
    monkeypatch.setenv("NNI_REDIS_PASSWORD", "hu/sh@")

    settings = from_environment()

    assert settings.redis_url == "rediss://:hu%2Fsh%40@redis:6379/2"
    assert "hu" not in repr(settings)


@pytest.mark.parametrize(
    "url", ["-", "redis:6379", "redis://redis:port", "http://redis:6379", "redis://"]
)
def test_url_that_is_none_is_refused_without_showing_it(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("NNI_REDIS_URL", url)

    with pytest.raises(InvalidArgumentError, match="NNI_REDIS_URL must be redis") as refusal:
        from_environment()

    assert f"got {url!r}" not in refusal.value.message


def test_quotas_are_generous_and_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = from_environment()
    monkeypatch.setenv("NNI_QUOTA_BYTES", "0")
    monkeypatch.setenv("NNI_EXPERIMENT_QUOTA_BYTES", "5000000")
    monkeypatch.setenv("NNI_BLOB_GRACE_S", "90")
    monkeypatch.setenv("NNI_BYTES_TRAVEL", "yes")

    settings = from_environment()

    assert usual.quota == Quota(1024**4, 100 * 1024**3)
    assert usual.blob_grace == timedelta(hours=2)
    assert not usual.bytes_travel
    assert settings.quota == Quota(0, 5_000_000)
    assert settings.blob_grace == timedelta(seconds=90)
    assert settings.bytes_travel


@pytest.mark.parametrize("name", ["NNI_QUOTA_BYTES", "NNI_EXPERIMENT_QUOTA_BYTES"])
def test_negative_quota_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "-1")

    with pytest.raises(InvalidArgumentError, match=f"{name} must be >= 0, got -1"):
        from_environment()


@pytest.mark.parametrize("text", ["-1", "nan"])
def test_senseless_grace_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("NNI_BLOB_GRACE_S", text)

    with pytest.raises(InvalidArgumentError, match="NNI_BLOB_GRACE_S must be >= 0"):
        from_environment()


@pytest.mark.parametrize(
    ("given", "listens_on", "reached_at"),
    [
        ("", "127.0.0.1", "127.0.0.1"),
        ("", "10.1.2.3", "10.1.2.3"),
        ("", "0.0.0.0", socket.gethostname()),
        ("manager-2.lab", "0.0.0.0", "manager-2.lab"),
    ],
)
def test_other_managers_get_a_host_that_they_can_reach(
    monkeypatch: pytest.MonkeyPatch, given: str, listens_on: str, reached_at: str
) -> None:
    monkeypatch.setenv("NNI_MANAGER_HOST", given)

    assert from_environment().reached_at(listens_on) == reached_at


def test_names_that_begin_with_a_dash_are_kept_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_MANAGER_HOST", "-host")
    monkeypatch.setenv("NNI_MANAGER_TLS_NAME", "-name")

    settings = from_environment()

    assert (settings.host, settings.tls_name) == ("-host", "-name")


def test_roots_of_experiments_are_the_default_and_those_of_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NNI_EXPERIMENT_ROOTS", "/data/experiments::/scratch")

    settings = from_environment()

    assert settings.roots == (
        Path("~/nni-experiments").expanduser(),
        Path("/data/experiments"),
        Path("/scratch"),
    )


@pytest.mark.parametrize("roots", ["relative", "/data/..", "/data:."])
def test_root_that_is_no_plain_path_is_refused(monkeypatch: pytest.MonkeyPatch, roots: str) -> None:
    monkeypatch.setenv("NNI_EXPERIMENT_ROOTS", roots)

    with pytest.raises(InvalidArgumentError, match="NNI_EXPERIMENT_ROOTS must be absolute"):
        from_environment()


def test_clients_get_the_port_that_the_machine_publishes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NNI_MANAGER_PUBLIC_GRPC", ":17501")

    assert from_environment().public_grpc == ":17501"

    monkeypatch.setenv("NNI_MANAGER_PUBLIC_GRPC", "17501")
    with pytest.raises(InvalidArgumentError, match="NNI_MANAGER_PUBLIC_GRPC"):
        from_environment()


@pytest.mark.parametrize(
    "name",
    [
        "NNI_MANAGER_GRPC",
        "NNI_MANAGER_HTTP",
        "NNI_DISPATCHER_GRPC",
        "NNI_COMPRESSOR_GRPC",
        "NNI_NAS_GRPC",
    ],
)
def test_mistyped_port_is_refused_with_its_variable(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "127.0.0.1:75o3")

    with pytest.raises(InvalidArgumentError, match=f"{name} must be host:port"):
        from_environment()


def test_fleet_in_another_container_is_known_by_the_folder_of_its_agents(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = from_environment()
    monkeypatch.setenv("NNI_AGENT_USERS", str(tmp_path))
    monkeypatch.setenv("NNI_MANAGER_FRONT_GRPC", "0.0.0.0:7506")

    settings = from_environment()

    assert not before.has_fleet
    assert settings.has_fleet
    assert settings.security.agents_file == tmp_path / "agents.access.json"
    assert settings.front_grpc_address == "0.0.0.0:7506"
