"""Routes of experiments: read, update, create, import and export."""

from __future__ import annotations

import pytest

from nni_proto.experiment.v1 import experiment_pb2
from tests.unit.services.manager.web.conftest import API, EXPERIMENT, Site


@pytest.mark.claim("platform", 42)
async def test_version_has_version_experiment_and_grpc_address(site: Site) -> None:
    answer = await site.anonymous.get(f"{API}/version")

    assert answer.json() == {
        "version": "4.0.0.dev0",
        "experimentId": EXPERIMENT,
        "grpc": "127.0.0.1:5000",
        "otherVersions": {},
    }


@pytest.mark.claim("platform", 60)
async def test_profile_has_the_documented_fields(site: Site) -> None:
    profile = (await site.anonymous.get(f"{API}/experiment")).json()

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
        answer = await site.anonymous.get(f"{API}/{path}")

        assert answer.status_code == 200
        assert "hush-hush" not in answer.text


async def test_experiment_that_is_deleted_while_the_list_is_made_is_left_out(site: Site) -> None:
    gone = experiment_pb2.Experiment(id="gone", port=8081)
    site.manager.experiments["listed still"] = gone

    answer = await site.anonymous.get(f"{API}/experiments-info")

    assert [one["id"] for one in answer.json()] == [EXPERIMENT]


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
        (
            "TUNER",
            {"tuner": {"name": "TPE", "classArgs": {"optimize_mode": "minimize"}}},
            {"tuner": {"name": "TPE", "classArgs": {"optimize_mode": "minimize"}}},
        ),
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


async def test_update_changes_limits_of_agents_in_the_sections_of_platforms(site: Site) -> None:
    answer = await site.client.put(
        f"{API}/experiment?update_type=AGENT_LIMITS",
        json={"params": {"maxAgents": 8, "maxAgentTime": "50h"}},
    )

    assert answer.status_code == 200
    service = answer.json()["params"]["trainingService"]
    assert (service["maxAgents"], service["maxAgentTime"]) == (8, "50h")


@pytest.mark.parametrize("value", [0, -1, 1.5, "4", None, True, 2**31])
async def test_update_refuses_values_that_are_not_positive_integers(
    site: Site, value: object
) -> None:
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


async def test_export_can_be_imported_as_it_is(site: Site) -> None:
    exported = await site.client.get(f"{API}/export-data")

    answer = await site.client.post(
        f"{API}/experiment/import-data",
        content=exported.content,
        headers={"Content-Type": "application/json"},
    )

    assert answer.status_code == 200
    assert site.manager.imported == exported.json()


async def test_export_has_intermediate_results_on_request_only(site: Site) -> None:
    plain = (await site.anonymous.get(f"{API}/export-data")).json()
    full = (await site.anonymous.get(f"{API}/export-data?intermediate=true")).json()

    assert "intermediate" not in plain[0]
    assert full[0]["intermediate"] == [0.5]


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


async def test_a_stopped_experiment_is_resumed_on_a_port_and_deleted_only_when_stopped(
    site: Site,
) -> None:
    path = f"{API}/experiment"
    refused = await site.client.delete(path)
    stopped = await site.client.post(f"{path}/stop", json={})
    resumed = await site.client.post(f"{path}/resume", json={"port": 8123})
    again = await site.client.post(f"{path}/resume", json={})
    await site.client.post(f"{path}/stop", json={})
    deleted = await site.client.delete(path)

    assert (refused.status_code, again.status_code) == (409, 409)
    assert "stop it first" in refused.json()["error"]
    assert stopped.json()["status"] == "STOPPED"
    assert resumed.json() == {
        "experiment_id": EXPERIMENT,
        "urls": ["http://127.0.0.1:8123"],
        "warnings": [],
    }
    assert deleted.json() == {"remainingFolders": 3}
    assert EXPERIMENT not in site.manager.experiments


async def test_run_again_creates_an_experiment_once_per_key(site: Site) -> None:
    site.manager.experiments[EXPERIMENT].config.seed = 5

    answer = await site.client.post(
        f"{API}/experiment/again", json={"newSeed": True}, headers={"Idempotency-Key": "k1"}
    )

    [made] = site.manager.created
    assert answer.status_code == 201
    assert answer.json()["experiment_id"] == "newone00"
    assert made.request_id == "k1"
    assert not made.config.HasField("seed")


@pytest.mark.parametrize(
    ("path", "body"),
    [("again", []), ("resume", {"port": "80"}), ("resume", []), ("again", {"newSeed": 1})],
)
async def test_actions_refuse_bodies_of_a_wrong_type(site: Site, path: str, body: object) -> None:
    answer = await site.client.post(f"{API}/experiment/{path}", json=body)

    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/stop"), ("POST", "/resume"), ("POST", "/again"), ("DELETE", "")],
)
async def test_actions_need_the_token(site: Site, method: str, path: str) -> None:
    answer = await site.anonymous.request(method, f"{API}/experiment{path}", json={})

    assert answer.status_code == 401
