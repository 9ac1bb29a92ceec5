"""Settings of the dispatcher from its environment."""

import pytest

from svc_common.errors import InvalidArgumentError
from svc_dispatcher.settings import read_settings


def test_defaults_need_only_bus_and_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_NATS_URL", "nats://127.0.0.1:1")
    monkeypatch.setenv("NNI_TOKEN", "secret")

    settings = read_settings()

    assert (settings.grpc_host, settings.grpc_port) == ("127.0.0.1", 0)
    assert settings.answer_timeout_s == 600
    assert "secret" not in repr(settings)
    assert settings.s3 is None


def test_missing_address_of_the_bus_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NNI_NATS_URL", raising=False)
    monkeypatch.setenv("NNI_TOKEN", "secret")

    with pytest.raises(InvalidArgumentError, match="NNI_NATS_URL"):
        read_settings()


def test_mistyped_port_is_refused_with_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_DISPATCHER_GRPC", "127.0.0.1:75o3")

    with pytest.raises(InvalidArgumentError, match="NNI_DISPATCHER_GRPC must be host:port"):
        read_settings()
