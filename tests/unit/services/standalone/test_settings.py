from pathlib import Path

import pytest

from svc_common.errors import InvalidArgumentError
from svc_standalone.settings import Durability, Settings, read_settings


def test_defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NNI_HOME", str(tmp_path))
    monkeypatch.delenv("NNI_HTTP_PORT", raising=False)

    settings = read_settings()

    assert (settings.home, settings.http_port) == (tmp_path.resolve(), 0)
    assert settings.logs == tmp_path.resolve() / "log"
    assert (settings.start_timeout_s, settings.hung_after_s) == (60.0, 60.0)
    assert (settings.health_every_s, settings.stop_grace_s) == (2.0, 10.0)


def test_home_is_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NNI_HOME", "state")

    assert read_settings().home == tmp_path.resolve() / "state"


def test_port_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_HTTP_PORT", "http")

    with pytest.raises(InvalidArgumentError, match="NNI_HTTP_PORT"):
        read_settings()


@pytest.mark.parametrize(
    ("value", "durability"),
    [("", Durability.POWER), ("power", Durability.POWER), ("process", Durability.PROCESS)],
)
def test_durability(monkeypatch: pytest.MonkeyPatch, value: str, durability: Durability) -> None:
    monkeypatch.setenv("NNI_DURABILITY", value)

    assert read_settings().durability is durability


def test_unknown_durability_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_DURABILITY", "disk")

    with pytest.raises(InvalidArgumentError, match="NNI_DURABILITY must be process or power"):
        read_settings()


def test_folder_alone_is_enough_for_settings(tmp_path: Path) -> None:
    settings = Settings(tmp_path)

    assert (settings.http_port, settings.durability) == (0, Durability.POWER)
