from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.adapters.json_answers import JsonPart
from svc_trial_runner.fleet.adapters.openpai.adapter import OpenpaiAdapter, end_words
from svc_trial_runner.fleet.domain.agents import AgentPhase, PlatformSection
from svc_trial_runner.fleet.ports import PlatformError
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, agent_name, agent_order
from tests.support.json_server import JsonHandler, JsonServer, serving
from tests.support.local_platforms import front_context
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


async def test_unknown_address_is_shown_and_a_wrong_token_is_not(
    server: OpenpaiServer, tmp_path: Path
) -> None:
    (address,) = await adapter_of(server, tmp_path, host="http://127.0.0.1:1").check()
    (token,) = await adapter_of(server, tmp_path, "wrong-one").check()

    assert (address.value, token.value) == ("http://127.0.0.1:1", "")


async def test_section_that_breaks_a_rule_is_not_prepared(
    server: OpenpaiServer, tmp_path: Path
) -> None:
    with pytest.raises(PlatformError, match="trialMemorySize must be") as caught:
        await adapter_of(server, tmp_path, trialMemorySize="8Gi").prepare()

    assert caught.value.permanent


async def test_pool_is_not_prepared_without_a_front(server: OpenpaiServer, tmp_path: Path) -> None:
    options = {
        "host": server.address, "username": "ann", "trialCpuNumber": 1, "trialMemorySize": "1gb"
    }  # fmt: skip
    section = PlatformSection("openpai", options, {"token": "token-of-ann"})
    context = front_context(tmp_path, INSTALLATION, POOL, section)

    with pytest.raises(PlatformError):
        await OpenpaiAdapter(replace(context, front=NoFront())).prepare()


async def test_launch_of_no_order_asks_for_nothing(server: OpenpaiServer, tmp_path: Path) -> None:
    assert await adapter_of(server, tmp_path, host="http://127.0.0.1:1").launch([]) == []


@pytest.mark.parametrize("call", ["launch", "terminate"])
async def test_wait_ends_when_agents_are_launched_or_ended(
    server: OpenpaiServer, tmp_path: Path, call: str
) -> None:
    adapter = adapter_of(server, tmp_path, pollIntervalSeconds=3600)
    if call == "terminate":
        await launched(adapter)
    waiting = asyncio.create_task(adapter.wait_changed())
    await asyncio.sleep(0)
    assert not waiting.done()

    if call == "launch":
        await launched(adapter)
    else:
        await adapter.terminate([NAME])

    async with asyncio.timeout(30):
        await waiting
    assert len(server.jobs) == 1


@pytest.mark.parametrize(
    ("state", "phase", "reason"),
    [
        ({"state": "WAITING", "subState": "AttemptPreparing"}, AgentPhase.STARTING, ""),
        ({"state": "RUNNING", "subState": "AttemptPreparing"}, AgentPhase.RUNNING, ""),
        ({"state": "SUCCEEDED"}, AgentPhase.ENDED, ""),
        ({"state": "ARCHIVED"}, AgentPhase.RUNNING, "OpenPAI says ARCHIVED"),
        ({"state": None}, AgentPhase.RUNNING, "OpenPAI says nothing"),
    ],
)
async def test_state_of_a_job_is_the_phase_of_its_agent(
    server: OpenpaiServer, tmp_path: Path, state: dict[str, Any], phase: AgentPhase, reason: str
) -> None:
    server.waits = True
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)
    server.summaries[str(NAME)] |= state

    (agent,) = await adapter.agents()

    assert (agent.phase, agent.reason) == (phase, reason)


async def test_clean_stops_the_jobs_of_the_pool(server: OpenpaiServer, tmp_path: Path) -> None:
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)
    other = openpai_adapter(server, tmp_path, f"{POOL}-b", INSTALLATION)

    await other.clean()
    assert [left.agents for left in await adapter.leftovers()] == [(str(NAME),)]
    await adapter.clean()

    assert server.summaries[str(NAME)]["executionType"] == "STOP"
    assert await adapter.leftovers() == []


async def test_job_that_ends_within_the_limit_is_waited_for(
    server: OpenpaiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.stops_slowly = True
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)
    summary, listings = server.summaries[str(NAME)], iter(["STOPPING", "STOPPED"])
    answered = server.answer

    def ends_at_the_second_listing(method: str, *rest: Any) -> Any:
        if method == "GET" and summary["executionType"] == "STOP":
            summary["state"] = next(listings)
        return answered(method, *rest)

    monkeypatch.setattr(server, "answer", ends_at_the_second_listing)
    await adapter.terminate([NAME])

    assert next(listings, None) is None


def test_words_of_an_end_are_shortened_to_400_characters() -> None:
    status = {"appExitTriggerMessage": "a" * 500}

    assert end_words(JsonPart("OpenPAI", status, "jobStatus")) == "a" * 400


class _Refusing(JsonHandler):
    """OpenPAI that refuses each request with one status."""

    status = 403

    def respond(self, method: str) -> None:
        self.body()
        self.send_json(self.status, {"code": "RefusedError", "message": f"no {method}"})


@pytest.mark.parametrize(
    ("status", "field"), [(401, "token"), (402, "host"), (403, "token"), (404, "host")]
)
async def test_refused_user_is_one_of_the_token_and_other_refusals_are_of_the_host(
    server: OpenpaiServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    field: str,
) -> None:
    monkeypatch.setattr(_Refusing, "status", status)
    with serving(JsonServer(_Refusing), "refusing") as refusing:
        (problem,) = await adapter_of(server, tmp_path, host=refusing.address).check()

    assert problem.field == field


async def test_failed_job_whose_details_are_refused_has_ended_without_a_reason(
    server: OpenpaiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)
    server.summaries[str(NAME)]["state"] = "FAILED"
    answered = server.answer
    monkeypatch.setattr(
        server,
        "answer",
        lambda method, path, *rest: answered(method, path.replace(str(NAME), "gone"), *rest),
    )

    (agent,) = await adapter.agents()

    assert (agent.phase, agent.reason) == (AgentPhase.ENDED, "")


@pytest.mark.parametrize(
    ("states", "phase"),
    [
        (("RUNNING", "STOPPING"), AgentPhase.RUNNING),
        (("STOPPED", "SUCCEEDED"), AgentPhase.ENDED),
    ],
)
async def test_each_state_of_openpai_has_a_phase(
    server: OpenpaiServer, tmp_path: Path, states: tuple[str, ...], phase: AgentPhase
) -> None:
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)

    for state in states:
        server.summaries[str(NAME)]["state"] = state
        (agent,) = await adapter.agents()
        assert agent.phase is phase


async def test_agents_are_listed_in_the_order_of_their_numbers(
    server: OpenpaiServer, tmp_path: Path
) -> None:
    adapter = adapter_of(server, tmp_path)
    await adapter.prepare()
    await adapter.launch([agent_order(agent_name(number)) for number in (10, 2, 1)])

    assert [agent.name.number for agent in await adapter.agents()] == [1, 2, 10]
    assert await adapter.capacity() is None


async def test_job_that_waits_names_its_virtual_cluster(
    server: OpenpaiServer, tmp_path: Path
) -> None:
    server.waits = True
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)
    server.summaries[str(NAME)]["virtualCluster"] = "gpus"

    (agent,) = await adapter.agents()

    assert agent.reason == "WAITING in the virtual cluster gpus"


def test_words_of_an_end_are_joined_in_one_line() -> None:
    status = {
        "appExitSpec": {"phrase": "A"}, "appExitTriggerMessage": "b\n c",
        "appExitDiagnostics": "d", "appExitCode": 7,
    }  # fmt: skip

    assert end_words(JsonPart("OpenPAI", status, "jobStatus")) == "A: b c: d"
