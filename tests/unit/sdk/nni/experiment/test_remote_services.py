"""Services that `NNI_ENDPOINT` names: where they are, and that no secret goes elsewhere."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from nni.experiment.config import AlgorithmConfig, ExperimentConfig, LocalConfig
from nni.experiment.endpoint import read_endpoint
from nni.experiment.environment import (
    RemoteSettings,
    experiment_environment,
    name_services,
    remote_settings,
    services_are_elsewhere,
)
from nni.experiment.errors import RefusedError, ServiceFailedError, UnreachableError
from nni.experiment.local_shape import check_local, stop_local_shape
from nni.experiment.preflight import check_start
from nni.experiment.remote_services import remote_endpoint
from nni.experiment.rest import get_json
from tests.support.certificates import Authority

TOKEN = "alice's token"


class Manager(HTTPServer):
    """Listens as the page and REST of services elsewhere."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.grpc = "0.0.0.0:7501"
        """Where it says that its gRPC is."""


class Answers(BaseHTTPRequestHandler):
    server: Manager

    def do_GET(self) -> None:
        known = self.headers["Authorization"] == f"Bearer {TOKEN}"
        body = {"version": "4", "grpc": self.server.grpc} if known else {"error": "who are you?"}
        self.send_response(200 if known else 401)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the signature of the base
        pass


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def manager(authority: Authority) -> Iterator[Manager]:
    own = authority.sign("manager")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.certificate, own.key)
    with Manager() as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def url(manager: Manager) -> str:
    return f"https://localhost:{manager.server_port}"


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch, url: str, authority: Authority) -> pytest.MonkeyPatch:
    monkeypatch.setenv("NNI_ENDPOINT", url + "/")
    monkeypatch.setenv("NNI_TOKEN", TOKEN)
    monkeypatch.setenv("NNI_CA_FILE", str(authority.ca))
    return monkeypatch


def test_services_are_found_and_their_grpc_has_the_same_host(
    named: pytest.MonkeyPatch, url: str
) -> None:
    endpoint = read_endpoint()

    assert endpoint is not None
    assert (endpoint.http, endpoint.grpc, endpoint.token) == (url, "localhost:7501", TOKEN)
    assert endpoint.remote is not None
    assert get_json(f"{url}/anything", TOKEN)["version"] == "4"


def test_address_of_grpc_may_be_said(named: pytest.MonkeyPatch) -> None:
    named.setenv("NNI_GRPC_ENDPOINT", "proxy.example.org:443")

    endpoint = read_endpoint()

    assert endpoint is not None
    assert endpoint.grpc == "proxy.example.org:443"


def test_token_may_stand_in_a_file(named: pytest.MonkeyPatch, tmp_path: Path) -> None:
    named.delenv("NNI_TOKEN")
    (tmp_path / "token").write_text(TOKEN + "\n")
    named.setenv("NNI_TOKEN_FILE", str(tmp_path / "token"))

    assert read_endpoint() is not None

    named.setenv("NNI_TOKEN_FILE", str(tmp_path / "missing"))
    with pytest.raises(RefusedError, match="NNI_TOKEN_FILE cannot be read"):
        read_endpoint()


def test_options_stand_for_variables(
    monkeypatch: pytest.MonkeyPatch, url: str, authority: Authority, tmp_path: Path
) -> None:
    for name in ("NNI_ENDPOINT", "NNI_TOKEN_FILE", "NNI_CA_FILE"):
        monkeypatch.setenv(name, "")  # what the call sets is undone with it
    monkeypatch.setenv("NNI_TOKEN", "of the services")
    (tmp_path / "token").write_text(TOKEN)

    name_services(url, str(tmp_path / "token"), str(authority.ca))

    settings = remote_settings()
    assert settings == RemoteSettings(url=url, token=TOKEN, ca_file=str(authority.ca))
    assert services_are_elsewhere()


@pytest.mark.parametrize(
    ("variable", "value", "error", "said"),
    [
        ("NNI_TOKEN", "", RefusedError, "NNI_TOKEN must be set.*nnictl token create"),
        ("NNI_TOKEN", "wrong", ServiceFailedError, "who are you"),
        ("NNI_CA_FILE", "", UnreachableError, "certificate verify failed"),
        ("NNI_CA_FILE", "/missing", RefusedError, "certificates cannot be used"),
        ("NNI_ENDPOINT", "ftp://box", RefusedError, "must be https://HOST"),
        ("NNI_ENDPOINT", "box:8080", RefusedError, "must be https://HOST"),
        ("NNI_ENDPOINT", "http://box.example.org", RefusedError, "NNI_INSECURE=1"),
    ],
)
def test_what_is_wrong_is_said(
    named: pytest.MonkeyPatch, variable: str, value: str, error: type[Exception], said: str
) -> None:
    named.setenv(variable, value)

    with pytest.raises(error, match=said):
        read_endpoint()


def test_password_of_an_address_is_not_repeated(named: pytest.MonkeyPatch) -> None:
    named.setenv("NNI_ENDPOINT", "https://user:hunter2@box")

    with pytest.raises(RefusedError) as caught:
        read_endpoint()

    assert "hunter2" not in str(caught.value)


def test_address_that_only_the_server_can_use_is_translated(
    manager: Manager, url: str, authority: Authority
) -> None:
    settings = RemoteSettings(url=url, token=TOKEN, ca_file=str(authority.ca))
    manager.grpc = "manager.example.org:7501"
    remote_endpoint.cache_clear()

    assert remote_endpoint(settings).grpc == "manager.example.org:7501"

    manager.grpc = ""
    remote_endpoint.cache_clear()
    with pytest.raises(RefusedError, match="NNI_GRPC_ENDPOINT"):
        remote_endpoint(settings)


def test_services_of_another_machine_are_not_ended_from_here(named: pytest.MonkeyPatch) -> None:
    with pytest.raises(RefusedError, match="started and ended there"):
        stop_local_shape()
    with pytest.raises(RefusedError, match="started and ended there"):
        check_local(read_endpoint())
    check_local(None)


def test_secrets_of_the_client_do_not_reach_its_trials(named: pytest.MonkeyPatch) -> None:
    variables = experiment_environment()

    assert TOKEN not in variables.values()
    assert not {"NNI_ENDPOINT", "NNI_TOKEN", "NNI_CA_FILE"} & set(variables)


def test_token_is_in_no_repr() -> None:
    assert TOKEN not in repr(RemoteSettings(url="https://box", token=TOKEN))


def test_ports_of_this_machine_do_not_matter_there(named: pytest.MonkeyPatch, url: str) -> None:
    config = ExperimentConfig(
        search_space={"x": {"_type": "choice", "_value": [1]}},
        trial_command="true",
        trial_concurrency=1,
        training_service=LocalConfig(),
    )
    config.tuner = AlgorithmConfig(name="Random")

    check_start(config, int(url.rpartition(":")[2]))  # a port that is taken here
