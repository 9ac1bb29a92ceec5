from pathlib import Path

import pytest

from svc_common import environment
from svc_common.errors import InvalidArgumentError


def test_unset_variable_without_a_default_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NNI_NATS_URL", raising=False)

    with pytest.raises(InvalidArgumentError, match="NNI_NATS_URL must be set"):
        environment.text("NNI_NATS_URL")


def test_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_X", "")

    assert environment.text("NNI_X", "default") == "default"


def test_numbers_and_flags_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_A", "3")
    monkeypatch.setenv("NNI_B", "0.5")
    monkeypatch.setenv("NNI_C", "Yes")

    assert environment.integer("NNI_A") == 3
    assert environment.number("NNI_B") == 0.5
    assert environment.flag("NNI_C") is True
    assert environment.flag("NNI_UNSET") is False
    assert environment.number("NNI_UNSET", 1.5) == 1.5


@pytest.mark.parametrize("read", [environment.integer, environment.number, environment.flag])
def test_malformed_value_is_refused_with_its_name(
    read: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NNI_A", "maybe")
    assert callable(read)

    with pytest.raises(InvalidArgumentError, match="NNI_A must be"):
        read("NNI_A")


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:80", ("[::1]", 80)),
        ("host:65535", ("host", 65535)),
    ],
)
def test_address_is_split_at_its_last_colon(
    monkeypatch: pytest.MonkeyPatch, value: str, parts: tuple[str, int]
) -> None:
    monkeypatch.setenv("NNI_X_GRPC", value)

    assert environment.address("NNI_X_GRPC") == parts


def test_address_that_is_unset_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NNI_X_GRPC", raising=False)

    assert environment.address("NNI_X_GRPC", "127.0.0.1:0") == ("127.0.0.1", 0)


@pytest.mark.parametrize(
    "value",
    ["", "host", ":80", "host:", "host:http", "host:-1", "host:65536", "host:\u00b2", "host:1\n"],
)
def test_malformed_address_is_refused_with_rule_value_and_remedy(value: str) -> None:
    with pytest.raises(InvalidArgumentError) as refusal:
        environment.parse_address("NNI_X_GRPC", value)

    assert refusal.value.message == (
        f"NNI_X_GRPC must be host:port with a port from 0 to 65535, got {value!r}; "
        "set it to an address such as 127.0.0.1:7501"
    )


def test_home_may_start_with_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.delenv("NNI_HOME")

    assert environment.home() == Path("/home/someone/.local/state/nni")


def test_user_code_gets_no_secret_of_the_services(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_TOKEN", "secret")
    monkeypatch.setenv("NNI_NATS_URL", "nats://127.0.0.1:1")
    monkeypatch.setenv("NNI_S3_SECRET_KEY", "secret")
    monkeypatch.setenv("NNI_REDIS_URL", "redis://user:secret@host")
    monkeypatch.setenv("NNI_SOMETHING", "kept")

    variables = environment.for_user_code()

    assert "secret" not in variables.values()
    assert "NNI_NATS_URL" not in variables
    assert "NNI_REDIS_URL" not in variables
    assert variables["NNI_SOMETHING"] == "kept"


def test_empty_default_means_that_a_variable_may_be_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NNI_X", raising=False)

    assert environment.text("NNI_X", "") == ""


def test_folder_of_secrets_has_a_file_for_each_variable(tmp_path: Path) -> None:
    (tmp_path / "NNI_TOKEN").write_text("the token\n")
    (tmp_path / "NNI_NATS_PASSWORD").write_text("the password")
    (tmp_path / "PATH").write_text("/evil")

    found = environment.read_secrets(tmp_path)

    assert found == {"NNI_TOKEN": "the token", "NNI_NATS_PASSWORD": "the password"}
