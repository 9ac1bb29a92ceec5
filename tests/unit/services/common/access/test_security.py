from pathlib import Path

import pytest

from svc_common.access.security import ON_LOOPBACK, Guard, read_security_settings
from svc_common.errors import FailedPreconditionError, InvalidArgumentError

VARIABLES = {
    "NNI_TLS_CERT_FILE": "/c", "NNI_TLS_KEY_FILE": "/k", "NNI_TLS_CA_FILE": "/a",
    "NNI_TLS_CLIENT_CA_FILE": "/b", "NNI_ACCESS_FILE": "/f", "NNI_INSECURE": "1",
    "NNI_NATS_USER": "manager", "NNI_NATS_PASSWORD": "hush", "NNI_NATS_TLS_FIRST": "yes",
    "NNI_RUNNER_TOKEN": "agents' own",
}  # fmt: skip


def given(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_all_variables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, **VARIABLES)

    settings = read_security_settings()

    transport = settings.transport
    assert (transport.certificate, transport.key) == (Path("/c"), Path("/k"))
    assert (transport.ca, transport.client_ca) == (Path("/a"), Path("/b"))
    assert transport.insecure
    assert settings.access_file == Path("/f")
    assert (settings.bus.user, settings.bus.password) == ("manager", "hush")
    assert settings.bus.tls_first
    assert settings.agent_token == "agents' own"


def test_nothing_is_needed_on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch)

    assert read_security_settings() == ON_LOOPBACK


@pytest.mark.parametrize(
    ("variables", "missing"),
    [
        ({"NNI_TLS_CERT_FILE": "/c"}, "NNI_TLS_KEY_FILE"),
        ({"NNI_TLS_KEY_FILE": "/k"}, "NNI_TLS_CERT_FILE"),
        ({"NNI_TLS_CLIENT_CA_FILE": "/b"}, "NNI_TLS_CERT_FILE"),
        ({"NNI_NATS_USER": "manager"}, "NNI_NATS_PASSWORD"),
    ],
)
def test_half_of_a_pair_is_refused(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], missing: str
) -> None:
    given(monkeypatch, **variables)

    with pytest.raises(InvalidArgumentError, match=f"^{missing} must be set"):
        read_security_settings()


@pytest.mark.parametrize("token", ["-", "-begins-with-a-dash", "--"])
def test_agent_token_that_begins_with_a_dash_is_kept_whole(
    monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    given(monkeypatch, NNI_RUNNER_TOKEN=token)

    assert read_security_settings().agent_token == token


def test_bus_user_that_is_a_dash_is_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, NNI_NATS_USER="-", NNI_NATS_PASSWORD="hush")

    assert read_security_settings().bus.user == "-"


def test_secrets_are_in_no_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, **VARIABLES)

    shown = repr(read_security_settings())

    assert "hush" not in shown
    assert "agents' own" not in shown


def test_service_without_an_audit_trail_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a file in the place of the folder")

    with pytest.raises(FailedPreconditionError, match="audit trail cannot be written"):
        Guard.open(ON_LOOPBACK, "token", tmp_path)
