"""Settings of the compressor."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc_common.errors import InvalidArgumentError
from svc_compressor.settings import read_settings


def test_settings_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NNI_HOME", str(tmp_path))
    monkeypatch.setenv("NNI_NATS_URL", "nats://127.0.0.1:1")
    monkeypatch.setenv("NNI_TOKEN", "secret")
    monkeypatch.setenv("NNI_COMPRESSOR_GRPC", "127.0.0.1:7503")

    settings = read_settings()

    assert (settings.grpc_host, settings.grpc_port) == ("127.0.0.1", 7503)
    assert settings.home == tmp_path
    assert "secret" not in repr(settings)


def test_bus_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NNI_NATS_URL", raising=False)

    with pytest.raises(InvalidArgumentError, match="NNI_NATS_URL"):
        read_settings()


def test_mistyped_port_is_refused_with_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_COMPRESSOR_GRPC", "127.0.0.1:75o3")

    with pytest.raises(InvalidArgumentError, match="NNI_COMPRESSOR_GRPC must be host:port"):
        read_settings()
