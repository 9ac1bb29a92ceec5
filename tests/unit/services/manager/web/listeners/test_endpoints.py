"""HTTP endpoints: ids, limits, errors, malformed requests."""

from __future__ import annotations

import pytest

from nni_proto.experiment.v1 import experiment_pb2
from nni_proto.trial.v1 import trial_pb2
from svc_manager.web.listeners.route_table import ROUTES
from tests.unit.services.manager.web.conftest import API, EXPERIMENT, Site, serve
from tests.unit.services.manager.web.in_memory import InMemoryManager

RUNNING = trial_pb2.TRIAL_STATE_RUNNING


async def test_request_id_of_the_client_reaches_the_use_case(site: Site) -> None:
    site.manager.trials[EXPERIMENT]["tria0"].state = RUNNING

    await site.client.delete(f"{API}/trial-jobs/tria0", headers={"Idempotency-Key": "again"})

    assert site.manager.request_ids == ["again"]


async def test_any_experiment_can_be_named_in_the_path(site: Site) -> None:
    other = experiment_pb2.Experiment()
    other.CopyFrom(site.manager.experiments[EXPERIMENT])
    other.id = "exp00002"
    site.manager.put(other)

    profile = (await site.anonymous.get(f"{API}/experiments/exp00002/experiment")).json()
    unknown = await site.anonymous.get(f"{API}/experiments/unknown0/experiment")

    assert profile["id"] == "exp00002"
    assert unknown.status_code == 404


async def test_base_listener_names_the_path_with_an_experiment_id(manager: InMemoryManager) -> None:
    async with serve(manager, bound="") as site:
        answer = await site.anonymous.get(f"{API}/trial-jobs")
        listed = await site.anonymous.get(f"{API}/experiments-info")

    assert answer.status_code == 409
    assert "/api/v1/nni/experiments/<id>/trial-jobs" in answer.json()["error"]
    assert [one["id"] for one in listed.json()] == [EXPERIMENT]


async def test_unknown_path_is_a_json_error(site: Site) -> None:
    answer = await site.anonymous.get(f"{API}/nothing-here")

    assert answer.status_code == 404
    assert "error" in answer.json()


async def test_wrong_method_lists_the_allowed_ones(site: Site) -> None:
    answer = await site.client.delete(f"{API}/trial-jobs")

    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == {"GET", "POST"}


async def test_body_beyond_the_limit_is_refused_before_it_is_read(site: Site) -> None:
    answer = await site.client.post(
        f"{API}/trial-jobs",
        content=b"[" + b" " * 1_000_001 + b"]",
        headers={"Content-Type": "application/json"},
    )

    assert answer.status_code == 413


NONSENSE_BODIES = [
    b"", b"{", b"null", b"[]", b"7", b'"text"', b"{}", b'{"params": 3}', b'{"params": {}}',
    b'{"params": {"searchSpace": "{"}}', b"[[" * 5000, b'{"a": ' * 3000 + b"1" + b"}" * 3000,
    b'"\\ud800"', b'{"x": "\\ud800"}', b"\xff\xfe", b'{"searchSpace": {}, "trialCommand": 1}',
    b'{"parameters": {"\\udfff": NaN}}', b"1" * 5000,
]  # fmt: skip
NONSENSE_WORDS = [
    "",
    "..",
    "%2e%2e",
    "\U0001f600",
    "a" * 300,
    "-1",
    "9" * 40,
    "%00",
    "..%2f..%2fetc",
]
NONSENSE_QUERIES = [
    "limit=0", "limit=-1", "limit=x", "limit=99999999999999999999999", "cursor=zzz&limit=3",
    "cursor=-5", "status=", "ids=,,,", "ids=" + "a," * 2000, "update_type=NO", "type=ODD",
    "offset=-1", "follow=maybe", "after=x", "after=1-99999999999999", "order=up", "%ff=%fe",
    "update_type=TRIAL_CONCURRENCY", "update_type=SEARCH_SPACE", "port=0", "port=70000",
]  # fmt: skip


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
async def test_malformed_requests_are_client_errors(site: Site, route: object) -> None:
    from svc_manager.web.route import Route

    assert isinstance(route, Route)
    words = NONSENSE_WORDS if "{" in route.path else [""]
    for word in words:
        path = route.path
        for name in ("trial_id", "name", "first", "last", "task_id"):
            path = path.replace(f"{{{name}}}", word or "x")
        bodies = NONSENSE_BODIES if route.body is not None else [b""]
        for body in bodies:
            for query in ["follow=false", *(f"follow=false&{one}" for one in NONSENSE_QUERIES)]:
                answer = await site.client.request(
                    route.method,
                    f"{API}{path}?{query}",
                    content=body,
                    headers={"Content-Type": "application/json"},
                )

                assert answer.status_code < 500, (path, query, body[:40], answer.text)
                if answer.status_code >= 400:
                    assert answer.json()["error"]
