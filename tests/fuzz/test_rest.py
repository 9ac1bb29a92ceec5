"""Fuzzing of every REST route with the requests that schemathesis derives from the OpenAPI."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any, Final

import pytest
import schemathesis
from hypothesis import given
from hypothesis import strategies as st
from requests import Response, Session
from requests.adapters import HTTPAdapter
from requests.exceptions import InvalidHeader
from urllib3 import Retry

from svc_manager.web.listeners.openapi import document
from svc_manager.web.listeners.route_table import ROUTES
from tests.support.fuzzing.effort import LONGEST_S, cases
from tests.support.fuzzing.json_values import changed, json_values
from tests.support.fuzzing.site import Site

API: Final = "/api/v1/nni"
CASES: Final = 10
"""Cases per operation in a usual run."""
CALL_TIMEOUT_S: Final = 60.0


def _valid(result: Any) -> Any:
    """Return the operation, or raise: the document must be valid."""
    return result.ok()


OF_EXPERIMENT: Final = "/experiments/{experiment_id}"
FOLLOWED: Final = {
    route.path for route in ROUTES if any(one.name == "follow" for one in route.query)
}
DESCRIPTION: Final = schemathesis.openapi.from_dict(document(ROUTES, "0"))
OPERATIONS: Final = [
    f"{operation.method.upper()} {operation.path}"
    for operation in (_valid(result) for result in DESCRIPTION.get_all_operations())
]


@pytest.fixture(scope="module")
def session(site: Site) -> Iterator[Session]:
    """Client with a persistent connection and the token."""
    with Session() as made:
        made.trust_env = False
        # The manager closes connections that are idle for seconds, as in a slow test. A request
        # that itself causes the close fails again.
        again = Retry(total=1, allowed_methods=None, respect_retry_after_header=False)
        made.mount("http://", HTTPAdapter(max_retries=again))
        made.headers["Authorization"] = f"Bearer {site.endpoint()['token']}"
        yield made


def bodies(site: Site, operation: str) -> st.SearchStrategy[Any]:
    """Draw bodies that are valid but for a few places, or any JSON."""
    config = {
        "experimentName": "made",
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "trialCommand": "true",
        "trialCodeDirectory": str(site.folder / "done"),
        "experimentWorkingDirectory": str(site.folder / "made"),
        "trialConcurrency": 1,
        "maxTrialNumber": 1,
        "tuner": {"name": "TPE", "classArgs": {"optimize_mode": "minimize"}},
        "trainingService": {"platform": "local"},
    }
    valid: dict[str, list[Any]] = {
        "POST /experiment": [config],
        "PUT /experiment": [
            {"params": {"trialConcurrency": 1}},
            {"params": {"maxTrialNumber": 3}},
            {"params": {"maxExperimentDuration": "1h"}},
            {"params": {"searchSpace": {"x": {"_type": "choice", "_value": [1, 2]}}}},
        ],
        "POST /experiment/import-data": [[{"parameter": {"x": 0.5}, "value": 1}]],
        "POST /trial-jobs": [{"x": 0.1}, {"parameters": {"x": 0.1}}, {"parameters": '{"x": 1}'}],
        "POST /tensorboard": [{"trials": list(site.trials[:2])}],
    }
    known = valid.get(operation.replace(OF_EXPERIMENT, ""), [{}])
    return (changed(st.sampled_from(known)) | json_values()).map(harmless)


def texts(site: Site, operation: str) -> st.SearchStrategy[bytes]:
    """Draw the bytes of a request's body, JSON or not."""
    written = bodies(site, operation).map(lambda body: json.dumps(body).encode())
    return written if operation.startswith(("POST", "PUT")) else st.just(b"")


def harmless(body: Any) -> Any:
    """Remove commands and folders from a body that are not those of the test."""
    if isinstance(body, dict):
        if isinstance(body.get("trialCommand"), str):
            body["trialCommand"] = body["trialCommand"].strip() and "true"
        root = body.get("experimentWorkingDirectory")
        if isinstance(root, str) and root.startswith("/") and "/made" not in root:
            del body["experimentWorkingDirectory"]
    return body


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.timeout(LONGEST_S)
def test_every_answer_is_deliberate(site: Site, session: Session, operation: str) -> None:
    method, path = operation.split(" ", 1)
    strategy = DESCRIPTION[path][method].as_strategy()
    ids = st.sampled_from([*site.ids, *site.ids, None])
    trials = st.sampled_from([*site.trials[:6], None])

    @cases(CASES)
    @given(case=strategy, experiment=ids, trial=trials, body=texts(site, operation))
    def each(case: Any, experiment: str | None, trial: str | None, body: bytes) -> None:
        if experiment is not None and "experiment_id" in case.path_parameters:
            case.path_parameters["experiment_id"] = experiment
        if trial is not None and "trial_id" in case.path_parameters:
            case.path_parameters["trial_id"] = trial
        check(site, session, operation, case, body)

    each()


def send(site: Site, session: Session, case: Any, body: bytes, key: str) -> Response | None:
    """Send a case; None where no HTTP client can even say it."""
    base = site.endpoint()["http"] + API
    query = dict(case.query or {})
    if case.path.removeprefix(OF_EXPERIMENT) in FOLLOWED:
        query["follow"] = "false"  # an answer without an end tells nothing more
    request = case.as_transport_kwargs(base_url=base)
    request["params"] = query
    headers = {k: v for k, v in request["headers"].items() if k.lower() != "authorization"}
    request["headers"] = {**headers, "Idempotency-Key": key}
    if body:
        request |= {"data": body, "json": None}
        request["headers"]["Content-Type"] = "application/json"
    try:
        return session.request(timeout=CALL_TIMEOUT_S, **request)
    except InvalidHeader:
        return None


def check(site: Site, session: Session, operation: str, case: Any, body: bytes) -> None:
    key = uuid.uuid4().hex
    answer = send(site, session, case, body, key)
    if answer is None:
        return
    shown = f"{answer.status_code} {answer.text[:500]}"
    assert answer.status_code < 500, shown
    if answer.status_code >= 400 and answer.status_code not in {404, 405}:
        said = answer.json()
        assert len(said["error"]) > 8, shown
    if answer.headers.get("content-type", "").startswith("application/json"):
        json.loads(answer.text, parse_constant=refuse_bare_word)
    if operation.startswith("GET") or (answer.ok and "tensorboard" not in operation):
        again = send(site, session, case, body, key)
        assert again is not None
        assert again.status_code == answer.status_code, f"{shown}, then {again.text[:500]}"
    assert site.new_defects() == []
    clean_up(site, operation, answer)


def refuse_bare_word(word: str) -> object:
    raise AssertionError(f"{word} is no JSON that a browser reads")


def clean_up(site: Site, operation: str, answer: Response) -> None:
    """What was created would run beside all that follow."""
    if operation == "POST /experiment" and answer.status_code == 201:
        site.remove(answer.json()["experiment_id"])
