"""Routes of trials, metrics and explanations."""

from __future__ import annotations

import json

import httpx
import pytest

from nni_proto.trial.v1 import trial_pb2
from tests.unit.services.manager.web.conftest import API, EXPERIMENT, Site

RUNNING = trial_pb2.TRIAL_STATE_RUNNING


def refuse_bare_words(word: str) -> object:
    raise AssertionError(f"{word} is not JSON for a browser")


def strict(answer: httpx.Response) -> object:
    """Return the JSON of a response as a browser parses it."""
    return json.loads(answer.text, parse_constant=refuse_bare_words)


@pytest.mark.claim("platform", 26)
@pytest.mark.claim("hpo", 8)
async def test_any_metric_value_is_json_that_browsers_parse(site: Site) -> None:
    trials = strict(await site.anonymous.get(f"{API}/trial-jobs"))

    assert isinstance(trials, list)
    data = [trial["finalMetricData"][0]["data"] for trial in trials]
    assert data == [0.5, {"default": 1, "loss": "NaN"}, "many words"]


async def test_trial_record_has_the_format_of_nni_clients(site: Site) -> None:
    trial = (await site.anonymous.get(f"{API}/trial-jobs/tria1")).json()

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


async def test_named_trials_are_listed_without_unknown_ids(site: Site) -> None:
    answer = await site.anonymous.get(f"{API}/trial-jobs?ids=tria2,unknown,tria0")

    assert [trial["trialJobId"] for trial in answer.json()] == ["tria2", "tria0"]


async def test_state_filter_refuses_unknown_states(site: Site) -> None:
    answer = await site.anonymous.get(f"{API}/trial-jobs?status=HAPPY")

    assert answer.status_code == 400
    assert "SUCCEEDED" in answer.json()["error"]


async def test_kill_cancels_a_live_trial_and_refuses_an_ended_one(site: Site) -> None:
    site.manager.trials[EXPERIMENT]["tria0"].state = RUNNING

    first = await site.client.delete(f"{API}/trial-jobs/tria0")
    again = await site.client.delete(f"{API}/trial-jobs/tria0")

    assert first.json()["status"] == "USER_CANCELED"
    assert again.status_code == 409


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


@pytest.mark.claim("platform", 61)
async def test_metric_records_have_the_six_documented_fields(site: Site) -> None:
    metrics = (await site.anonymous.get(f"{API}/metric-data?type=FINAL")).json()

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
    metrics = (await site.anonymous.get(f"{API}/metric-data-range/1/2")).json()

    assert {metric["trialJobId"] for metric in metrics} == {"tria1", "tria2"}


async def test_latest_metrics_are_the_last_intermediate_and_the_result(site: Site) -> None:
    metrics = (await site.anonymous.get(f"{API}/metric-data-latest")).json()

    assert [metric["type"] for metric in metrics] == ["PERIODICAL", "FINAL"] * 3


async def test_ranges_of_intermediate_results_are_listed_by_trial(site: Site) -> None:
    found = (await site.anonymous.get(f"{API}/intermediate-ranges")).json()

    assert found == [{"trialJobId": "tria0", "ranges": {"default": [0.25, 0.5]}}]


async def test_a_trial_is_explained(site: Site) -> None:
    answer = (await site.anonymous.get(f"{API}/trials/tria1/why")).json()

    assert (answer["trialJobId"], answer["verdict"]) == ("tria1", "FAILED")
    assert answer["reasons"] == [{"kind": "EXIT_CODE", "text": "exit code 1", "remedy": ""}]
    assert (answer["exitCode"], answer["signal"]) == (1, None)


async def test_the_next_trial_is_explained(site: Site) -> None:
    answer = (await site.anonymous.get(f"{API}/why")).json()

    assert (answer["trialJobId"], answer["status"]) == (None, None)
    assert (answer["verdict"], answer["summary"]) == ("NOT_CREATED", "no slot")


async def test_an_unknown_trial_has_no_explanation(site: Site) -> None:
    assert (await site.anonymous.get(f"{API}/trials/unknown/why")).status_code == 404
