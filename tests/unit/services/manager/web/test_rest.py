"""REST end to end over the use cases in memory."""

from __future__ import annotations

import json

import httpx
import pytest

from nni_proto.experiment.v1 import experiment_pb2
from nni_proto.trial.v1 import trial_pb2
from svc_manager.web.route_table import ROUTES
from tests.unit.services.manager.web.conftest import API, EXPERIMENT, Site, serve
from tests.unit.services.manager.web.in_memory import InMemoryManager

RUNNING = trial_pb2.TRIAL_STATE_RUNNING
pytestmark = pytest.mark.asyncio


def refuse_bare_words(word: str) -> object:
    raise AssertionError(f"{word} is no JSON that a browser reads")


def strict(answer: httpx.Response) -> object:
    """Parse as a browser would."""
    return json.loads(answer.text, parse_constant=refuse_bare_words)


@pytest.mark.claim("platform", 42)
async def test_version_tells_version_experiment_and_grpc(site: Site) -> None:
    answer = await site.stranger.get(f"{API}/version")

    assert answer.json() == {
        "version": "4.0.0.dev0",
        "experimentId": EXPERIMENT,
        "grpc": "127.0.0.1:5000",
    }


@pytest.mark.claim("platform", 60)
async def test_profile_has_the_documented_fields(site: Site) -> None:
    profile = (await site.stranger.get(f"{API}/experiment")).json()

    assert profile["id"] == EXPERIMENT
    assert profile["revision"] == 1
    assert profile["execDuration"] == 42
    assert profile["nextSequenceId"] == 3
    assert profile["startTime"] == 1_700_000_000_123
    assert "endTime" not in profile
    assert profile["params"]["trialConcurrency"] == 2
    assert profile["params"]["maxExperimentDuration"] == "3600s"
    assert profile["params"]["searchSpace"] == {"x": {"_type": "uniform", "_value": [0, 1]}}


@pytest.mark.claim("platform", 84)
async def test_no_answer_contains_a_secret(site: Site) -> None:
    for path in ("experiment", "experiments-info", "experiment-metadata", "trial-jobs"):
        answer = await site.stranger.get(f"{API}/{path}")

        assert answer.status_code == 200
        assert "hush-hush" not in answer.text


@pytest.mark.claim("platform", 26)
@pytest.mark.claim("hpo", 8)
async def test_any_metric_value_is_json_that_browsers_parse(site: Site) -> None:
    trials = strict(await site.stranger.get(f"{API}/trial-jobs"))

    assert isinstance(trials, list)
    data = [trial["finalMetricData"][0]["data"] for trial in trials]
    assert data == [0.5, {"default": 1, "loss": "NaN"}, "many words"]


async def test_trials_without_parameters_are_one_array_of_all(manager: InMemoryManager) -> None:
    trials = manager.trials[EXPERIMENT]
    template = trials["tria0"]
    for number in range(3, 700):
        copy = type(template)()
        copy.CopyFrom(template)
        copy.id, copy.sequence_id = f"t{number:04}", number
        trials[copy.id] = copy

    async with serve(manager) as site:
        answer = await site.stranger.get(f"{API}/trial-jobs")

    assert [trial["sequenceId"] for trial in answer.json()] == list(range(700))
    assert "link" not in answer.headers


async def test_long_streams_are_whole_arrays(manager: InMemoryManager) -> None:
    trials = manager.trials[EXPERIMENT]
    template = trials["tria0"]
    for number in range(3, 251):
        copy = type(template)()
        copy.CopyFrom(template)
        copy.id, copy.sequence_id = f"t{number:04}", number
        trials[copy.id] = copy

    async with serve(manager) as site:
        answer = await site.stranger.get(f"{API}/metric-data-latest")

    assert len(answer.json()) == 2 * 251


async def test_pages_follow_the_link_header_to_the_end(site: Site) -> None:
    seen = []
    url: str | None = f"{API}/trial-jobs?limit=2&status=SUCCEEDED"
    while url:
        answer = await site.stranger.get(url)
        assert answer.headers["x-total-count"] == "3"
        seen += [trial["trialJobId"] for trial in answer.json()]
        url = answer.links.get("next", {}).get("url")

    assert seen == ["tria0", "tria1", "tria2"]


async def test_trial_record_reads_as_nni_clients_expect(site: Site) -> None:
    trial = (await site.stranger.get(f"{API}/trial-jobs/tria1")).json()

    assert trial["status"] == "SUCCEEDED"
    assert json.loads(trial["hyperParameters"][0]) == {
        "parameter_id": 1,
        "parameter_source": "algorithm",
        "parameters": {"x": 0.1, "nested": {"_name": "a", "units": 3}},
        "parameter_index": 0,
    }
    assert trial["logPath"].endswith("/trials/tria1")
    assert trial["stderrPath"].endswith("/trials/tria1/stderr")
    assert trial["endTime"] - trial["startTime"] == 1000
    assert trial["finalMetricData"][0]["parameterId"] == "1"


async def test_named_trials_are_given_and_unknown_names_left_out(site: Site) -> None:
    answer = await site.stranger.get(f"{API}/trial-jobs?ids=tria2,nobody,tria0")

    assert [trial["trialJobId"] for trial in answer.json()] == ["tria2", "tria0"]


async def test_state_filter_refuses_words_that_are_no_state(site: Site) -> None:
    answer = await site.stranger.get(f"{API}/trial-jobs?status=HAPPY")

    assert answer.status_code == 400
    assert "SUCCEEDED" in answer.json()["error"]


@pytest.mark.parametrize(
    ("kind", "params", "shown"),
    [
        ("TRIAL_CONCURRENCY", {"trialConcurrency": 4}, {"trialConcurrency": 4}),
        ("MAX_TRIAL_NUM", {"maxTrialNumber": 50}, {"maxTrialNumber": 50}),
        ("MAX_TRIAL_NUM", {"maxTrialNum": 51}, {"maxTrialNumber": 51}),
        ("MAX_EXEC_DURATION", {"maxExperimentDuration": "2h"}, {"maxExperimentDuration": "7200s"}),
        ("MAX_EXEC_DURATION", {"maxExecDuration": 60}, {"maxExperimentDuration": "60s"}),
        ("SEARCH_SPACE", {"searchSpace": '{"y": 1}'}, {"searchSpace": {"y": 1}}),
        ("SEARCH_SPACE", {"searchSpace": {"y": 2}}, {"searchSpace": {"y": 2}}),
    ],
)
@pytest.mark.claim("platform", 45)
async def test_update_changes_one_value_and_the_revision(
    site: Site, kind: str, params: dict[str, object], shown: dict[str, object]
) -> None:
    answer = await site.client.put(
        f"{API}/experiment", params={"update_type": kind}, json={"params": params}
    )

    assert answer.status_code == 200
    profile = (await site.client.get(f"{API}/experiment")).json()
    assert profile["params"] | shown == profile["params"]
    assert profile["revision"] == 2


@pytest.mark.parametrize("value", [0, -1, 1.5, "4", None, True, 2**31])
async def test_update_refuses_what_is_no_count(site: Site, value: object) -> None:
    answer = await site.client.put(
        f"{API}/experiment?update_type=TRIAL_CONCURRENCY",
        json={"params": {"trialConcurrency": value}},
    )

    assert answer.status_code == 400
    assert "trialConcurrency" in answer.json()["error"]


@pytest.mark.claim("platform", 31)
async def test_viewed_experiment_can_be_read_but_not_changed(site: Site) -> None:
    site.manager.experiments[EXPERIMENT].state = experiment_pb2.EXPERIMENT_STATE_VIEWED

    read = await site.client.get(f"{API}/check-status")
    changed = [
        await site.client.put(
            f"{API}/experiment?update_type=MAX_TRIAL_NUM", json={"params": {"maxTrialNumber": 9}}
        ),
        await site.client.delete(f"{API}/trial-jobs/tria0"),
        await site.client.post(f"{API}/trial-jobs", json={"x": 0.5}),
    ]

    assert read.json()["status"] == "VIEWED"
    assert [answer.status_code for answer in changed] == [409, 409, 409]


async def test_kill_cancels_a_live_trial_and_refuses_one_that_is_over(site: Site) -> None:
    site.manager.trials[EXPERIMENT]["tria0"].state = RUNNING

    first = await site.client.delete(f"{API}/trial-jobs/tria0")
    again = await site.client.delete(f"{API}/trial-jobs/tria0")

    assert first.json()["status"] == "USER_CANCELED"
    assert again.status_code == 409


async def test_request_id_of_the_client_reaches_the_use_case(site: Site) -> None:
    site.manager.trials[EXPERIMENT]["tria0"].state = RUNNING

    await site.client.delete(f"{API}/trial-jobs/tria0", headers={"Idempotency-Key": "again"})

    assert site.manager.request_ids == ["again"]


@pytest.mark.parametrize(
    "body", [{"x": 0.5}, {"parameters": {"x": 0.5}}, {"parameters": '{"x": 0.5}'}, '{"x": 0.5}']
)
async def test_customised_trial_is_queued(site: Site, body: object) -> None:
    answer = await site.client.post(f"{API}/trial-jobs", json=body)

    assert answer.status_code == 201
    trial = (await site.client.get(f"{API}/trial-jobs/cust3")).json()
    given = json.loads(trial["hyperParameters"][0])
    assert given["parameters"] == {"x": 0.5}
    assert given["parameter_source"] == "customized"


async def test_export_can_be_imported_as_it_is(site: Site) -> None:
    exported = await site.client.get(f"{API}/export-data")

    answer = await site.client.post(
        f"{API}/experiment/import-data",
        content=exported.content,
        headers={"Content-Type": "application/json"},
    )

    assert answer.status_code == 200
    assert site.manager.imported == exported.json()


async def test_export_has_intermediate_results_only_when_asked(site: Site) -> None:
    plain = (await site.stranger.get(f"{API}/export-data")).json()
    full = (await site.stranger.get(f"{API}/export-data?intermediate=true")).json()

    assert "intermediate" not in plain[0]
    assert full[0]["intermediate"] == [0.5]


@pytest.mark.claim("platform", 61)
async def test_metric_records_have_the_six_documented_fields(site: Site) -> None:
    metrics = (await site.stranger.get(f"{API}/metric-data?type=FINAL")).json()

    assert len(metrics) == 3
    assert metrics[0] == {
        "timestamp": 1_700_000_001_500,
        "trialJobId": "tria0",
        "parameterId": "0",
        "type": "FINAL",
        "sequence": 0,
        "data": 0.5,
    }


async def test_metrics_of_a_range_include_both_ends(site: Site) -> None:
    metrics = (await site.stranger.get(f"{API}/metric-data-range/1/2")).json()

    assert {metric["trialJobId"] for metric in metrics} == {"tria1", "tria2"}


async def test_latest_metrics_are_the_last_intermediate_and_the_result(site: Site) -> None:
    metrics = (await site.stranger.get(f"{API}/metric-data-latest")).json()

    assert [metric["type"] for metric in metrics] == ["PERIODICAL", "FINAL"] * 3


async def test_any_experiment_can_be_named_in_the_path(site: Site) -> None:
    other = experiment_pb2.Experiment()
    other.CopyFrom(site.manager.experiments[EXPERIMENT])
    other.id = "exp00002"
    site.manager.put(other)

    profile = (await site.stranger.get(f"{API}/experiments/exp00002/experiment")).json()
    unknown = await site.stranger.get(f"{API}/experiments/nobody00/experiment")

    assert profile["id"] == "exp00002"
    assert unknown.status_code == 404


async def test_base_listener_says_which_path_to_use_instead(manager: InMemoryManager) -> None:
    async with serve(manager, bound="") as site:
        answer = await site.stranger.get(f"{API}/trial-jobs")
        listed = await site.stranger.get(f"{API}/experiments-info")

    assert answer.status_code == 409
    assert "/api/v1/nni/experiments/<id>/trial-jobs" in answer.json()["error"]
    assert [one["id"] for one in listed.json()] == [EXPERIMENT]


async def test_create_takes_a_v2_configuration(site: Site) -> None:
    answer = await site.client.post(
        f"{API}/experiment?port=9001",
        json={
            "searchSpace": {},
            "trialCommand": "true",
            "trialCodeDirectory": "/tmp",
            "trialConcurrency": 1,
            "maxTrialDuration": "0.5h",
            "tuner": {"name": "Random"},
            "trainingService": {"platform": "local"},
        },
    )

    assert answer.status_code == 201
    assert answer.json()["experiment_id"] == "newone00"
    [new] = site.manager.created
    assert new.port == 9001
    assert new.config.max_trial_duration.seconds == 1800
    assert new.config.tuner.name == "Random"


async def test_unknown_path_is_a_json_error(site: Site) -> None:
    answer = await site.stranger.get(f"{API}/nothing-here")

    assert answer.status_code == 404
    assert "error" in answer.json()


async def test_wrong_method_names_those_that_work(site: Site) -> None:
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


async def test_openapi_document_lists_every_route(site: Site) -> None:
    document = (await site.stranger.get(f"{API}/openapi.json")).json()

    described = {
        (method.upper(), path) for path, item in document["paths"].items() for method in item
    }
    assert {(route.method, route.path) for route in ROUTES} <= described
    identities = [
        operation["operationId"]
        for item in document["paths"].values()
        for operation in item.values()
    ]
    assert len(identities) == len(set(identities))


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
async def test_nonsense_never_breaks_a_route(site: Site, route: object) -> None:
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
