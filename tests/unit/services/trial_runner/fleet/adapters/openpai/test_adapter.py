from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.json_answers import JsonPart
from svc_trial_runner.fleet.adapters.openpai.adapter import OpenpaiAdapter, end_words
from svc_trial_runner.fleet.domain.agents import AgentPhase
from svc_trial_runner.fleet.ports import PlatformError
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, agent_name, agent_order
from tests.support.openpai_agents import openpai_adapter
from tests.support.openpai_server import OpenpaiServer, openpai_server

NAME = agent_name(1)


@pytest.fixture
def server() -> Iterator[OpenpaiServer]:
    with openpai_server() as one:
        yield one


def adapter_of(
    server: OpenpaiServer, folder: Path, token: str = "token-of-ann", **options: Any
) -> OpenpaiAdapter:
    return openpai_adapter(server, folder, POOL, INSTALLATION, token, None, **options)


async def launched(adapter: OpenpaiAdapter) -> None:
    await adapter.prepare()
    assert await adapter.launch([agent_order(NAME)]) == []


async def test_settings_of_an_agent_lead_to_the_front(
    server: OpenpaiServer, tmp_path: Path
) -> None:
    await launched(adapter_of(server, tmp_path, reuseMode=False))

    settings = json.loads(base64.b64decode(server.jobs[str(NAME)]["secrets"]["nni_settings"]))
    assert settings["connection"]["bus"] == "tls://192.0.2.1:8081"
    assert (settings["slots"], settings["max_trials"]) == (1, 1)


async def test_secrets_that_were_taken_out_of_a_given_job_are_in_the_submitted_one(
    server: OpenpaiServer, tmp_path: Path
) -> None:
    image = {"name": "own", "type": "dockerimage", "uri": "i", "auth": {"username": "ann"}}
    resources = {"cpu": 1, "memoryMB": 1024, "gpu": 0}
    role = {"dockerImage": "own", "resourcePerInstance": resources}
    job = {"prerequisites": [image], "secrets": {}, "taskRoles": {"worker": role}}
    secrets = {
        "openpaiConfig.secrets.data": "one",
        "openpaiConfig.prerequisites[0].auth.password": "<% $secrets.data %>",
    }
    adapter = openpai_adapter(
        server, tmp_path, POOL, INSTALLATION, secrets=secrets, openpaiConfig=job
    )
    await launched(adapter)

    submitted = server.jobs[str(NAME)]
    assert submitted["secrets"]["data"] == "one"
    assert submitted["prerequisites"][0]["auth"]["password"] == "<% $secrets.data %>"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"virtualCluster": "no-such"}, "virtualCluster"),
        ({"storageConfigName": "no-such"}, "storageConfigName"),
        ({"host": "http://127.0.0.1:1"}, "host"),
        ({"trialMemorySize": "8Gi"}, "trialMemorySize"),
    ],
)
async def test_broken_section_is_found_before_a_start(
    server: OpenpaiServer, tmp_path: Path, options: dict[str, Any], field: str
) -> None:
    (problem,) = await adapter_of(server, tmp_path, **options).check()

    assert problem.field == field
    assert server.jobs == {}


async def test_wrong_token_is_named_and_not_shown(server: OpenpaiServer, tmp_path: Path) -> None:
    (problem,) = await adapter_of(server, tmp_path, "wrong-one").check()

    assert problem.field == "token"
    assert "wrong-one" not in str(problem)
    assert not problem.permanent


async def test_job_in_the_queue_waits_in_its_virtual_cluster(
    server: OpenpaiServer, tmp_path: Path
) -> None:
    server.waits = True
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)

    (agent,) = await adapter.agents()

    assert agent.phase is AgentPhase.PENDING
    assert agent.reason == "WAITING in the virtual cluster default"


async def test_failed_job_has_the_words_of_openpai(server: OpenpaiServer, tmp_path: Path) -> None:
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)
    server.summaries[str(NAME)]["state"] = "FAILED"

    (agent,) = await adapter.agents()

    assert agent.phase is AgentPhase.ENDED
    assert agent.reason == "ContainerOOMKilled: the container was killed"


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({}, ""),
        ({"appExitCode": 3}, "exit code 3"),
        ({"appExitSpec": None, "appExitTriggerMessage": "no disk"}, "no disk"),
    ],
)
def test_end_has_the_words_that_are_known(status: dict[str, Any], reason: str) -> None:
    assert end_words(JsonPart("OpenPAI", status, "jobStatus")) == reason


@pytest.mark.parametrize(
    ("details", "words"),
    [
        ("x", "the whole must be an object"),
        ({"jobStatus": {"appExitSpec": "x"}}, "jobStatus.appExitSpec must be an object"),
        ({"jobStatus": {"appExitDiagnostics": 7}}, "jobStatus.appExitDiagnostics must be a text"),
        ({"jobStatus": {"appExitCode": "3"}}, "jobStatus.appExitCode must be an integer, got '3'"),
    ],
)
async def test_failed_job_with_details_of_another_shape_has_ended(
    server: OpenpaiServer, tmp_path: Path, details: Any, words: str
) -> None:
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)
    server.summaries[str(NAME)]["state"] = "FAILED"
    server.details = details

    (agent,) = await adapter.agents()

    assert agent.phase is AgentPhase.ENDED
    assert words in agent.reason


async def test_ended_job_that_cannot_be_stopped_is_forgotten(
    server: OpenpaiServer, tmp_path: Path
) -> None:
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)
    server.summaries[str(NAME)]["state"] = "SUCCEEDED"
    server.collected.add(str(NAME))

    await adapter.terminate([NAME])

    assert await adapter.agents() == []


async def test_stopped_job_is_an_agent_until_it_has_ended(
    server: OpenpaiServer, tmp_path: Path
) -> None:
    server.stops_slowly = True
    adapter = openpai_adapter(server, tmp_path, POOL, INSTALLATION, end_limit_s=0.0)
    await launched(adapter)

    with pytest.raises(PlatformError, match="is STOPPING 0 s after its stop") as caught:
        await adapter.terminate([NAME])
    (agent,) = await adapter.agents()
    server.summaries[str(NAME)]["state"] = "STOPPED"
    await adapter.terminate([NAME])

    assert not caught.value.permanent
    assert (agent.phase, agent.reason) == (AgentPhase.RUNNING, "OpenPAI stops its job")
    assert await adapter.agents() == []


async def test_refused_job_is_a_failure(server: OpenpaiServer, tmp_path: Path) -> None:
    server.refusal = (403, "ForbiddenUserError", "User ann is not allowed to use gpus.")
    adapter = adapter_of(server, tmp_path)
    await adapter.prepare()

    (failure,) = await adapter.launch([agent_order(NAME)])

    assert failure.permanent
    assert "not allowed to use gpus" in failure.reason


async def test_broken_cluster_is_an_error(server: OpenpaiServer, tmp_path: Path) -> None:
    server.refusal = (500, "UnknownError", "the database is away")
    adapter = adapter_of(server, tmp_path)
    await adapter.prepare()

    with pytest.raises(PlatformError, match="database is away") as caught:
        await adapter.launch([agent_order(NAME)])

    assert not caught.value.permanent


async def test_job_that_was_taken_before_its_answer_was_lost_is_no_failure(
    server: OpenpaiServer, tmp_path: Path
) -> None:
    server.refusal = (409, "ConflictJobError", "Job name already exists.")
    adapter = adapter_of(server, tmp_path)
    await adapter.prepare()

    assert await adapter.launch([agent_order(NAME)]) == []
