"""Checks of the services: reachability, and their own diagnosis."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from nni.cli.diagnosis.finding import Finding, Result
from nni.cli.front_state import CLOSED, front_state

if TYPE_CHECKING:
    from nni.experiment.client import ManagerClient
    from nni.experiment.endpoint import Endpoint

_FIRST_WORD_S: Final = 10.0
"""A runner that has just been started may not have been heard of."""
_AGENTS: Final = "agents"


def check_version() -> Iterator[Finding]:
    """Yield ok, or bad if the running services have another version than this client."""
    from nni.experiment.endpoint import read_endpoint
    from nni.version import __version__

    endpoint = read_endpoint()
    if endpoint is not None and endpoint.version != __version__:
        text = f"{__version__}, but the services are {endpoint.version}; run: nnictl down"
        yield Finding("version", "bad", text)
    else:
        yield Finding("version", "ok", __version__)


def check_services() -> Iterator[Finding]:
    """Yield findings: whether the services answer over REST and gRPC, and what they find wrong."""
    from nni.experiment.client import ManagerClient
    from nni.experiment.endpoint import endpoint_path, read_endpoint
    from nni.experiment.errors import ExperimentError

    try:
        endpoint = read_endpoint()
    except ExperimentError as error:
        yield Finding("services up", "bad", str(error))
        return
    if endpoint is None:
        if endpoint_path().exists():
            text = "their supervisor was killed; bring them up again with: nnictl up"
            yield Finding("services up", "bad", text)
        else:
            yield Finding("services up", "note", "no; the next nnictl create brings them up")
        return
    yield Finding("services up", "ok", _since(endpoint))
    yield _check_rest(endpoint)
    try:
        with ManagerClient(endpoint) as client:
            yield from _ask(client, endpoint)
    except ExperimentError as error:
        yield Finding("manager answers", "bad", f"{error}; {_where(endpoint)}")


def _since(endpoint: Endpoint) -> str:
    if endpoint.remote is not None:
        return f"at {endpoint.http}"
    return f"since {endpoint.started_at}, pid {endpoint.supervisor_pid}"


def _where(endpoint: Endpoint) -> str:
    from nni.experiment.local_shape import supervisor_log

    if endpoint.remote is not None:
        return "look at its log on that machine"
    return f"see manager.log in {supervisor_log().parent}"


def _check_rest(endpoint: Endpoint) -> Finding:
    from nni.experiment.errors import ExperimentError
    from nni.experiment.rest import get_json

    if endpoint.remote is not None:
        return Finding("page and REST", "ok", endpoint.http)  # its response named the gRPC address
    try:
        answer = get_json(f"{endpoint.http}/api/v1/nni/version", endpoint.token)
    except ExperimentError as error:
        return Finding("page and REST", "bad", f"{error}; {_where(endpoint)}")
    version = answer.get("version") if isinstance(answer, dict) else answer
    return Finding("page and REST", "ok", f"{endpoint.http}, version {version}")


def _ask(client: ManagerClient, endpoint: Endpoint) -> Iterator[Finding]:
    count = len(client.experiments())
    yield Finding("manager answers", "ok", f"{endpoint.grpc}, {count} experiments run")
    text = front_state(client)
    yield Finding("TLS front", "note" if text == CLOSED else "ok", text)
    for finding in client.diagnose():
        result = _RESULTS.get(finding.result, "note")
        young = endpoint.remote is None and _age_s(endpoint.started_at) < _FIRST_WORD_S
        if finding.check == _AGENTS and result == "bad" and young:
            text = "none is connected yet; look again in a moment"
            yield Finding(_AGENTS, "note", text)
        else:
            yield Finding(finding.check, result, finding.explanation)


_RESULTS: Final[dict[int, Result]] = {1: "ok", 2: "note", 3: "bad"}
"""By the number of `FindingResult`."""


def _age_s(started_at: str) -> float:
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(started_at)).total_seconds()
    except (ValueError, TypeError):
        return float("inf")
