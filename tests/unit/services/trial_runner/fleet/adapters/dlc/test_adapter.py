from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from svc_trial_runner.fleet.adapters.dlc.adapter import job_of, platform_agent
from svc_trial_runner.fleet.adapters.dlc.options import parse_options
from svc_trial_runner.fleet.domain.agents import AgentPhase
from svc_trial_runner.fleet.ports import PlatformError
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, agent_name, agent_order
from tests.support.dlc_server import KEY, DlcServer, dlc_adapter, dlc_server

if TYPE_CHECKING:
    from svc_trial_runner.fleet.adapters.dlc.adapter import DlcAdapter

NAME = agent_name(1)


@pytest.fixture
def server() -> Iterator[DlcServer]:
    with dlc_server() as one:
        yield one


def adapter_of(
    server: DlcServer, folder: Path, secret: str = KEY.secret, **options: object
) -> DlcAdapter:
    return dlc_adapter(server, folder, POOL, INSTALLATION, secret, **options)


async def launched(adapter: DlcAdapter) -> None:
    await adapter.prepare()
    assert await adapter.launch([agent_order(NAME)]) == []


async def test_job_has_the_documented_fields_and_no_secret(
    server: DlcServer, tmp_path: Path
) -> None:
    await launched(adapter_of(server, tmp_path, jobType="PyTorchJob", workspaceId="w"))

    job = server.job(str(NAME))
    assert (job["JobType"], job["WorkspaceId"]) == ("PyTorchJob", "w")
    assert job["JobSpecs"] == [
        {
            "Type": "Worker",
            "Image": "registry.example.org/trials:1",
            "PodCount": 1,
            "EcsSpec": "ecs.c6.large",
        }
    ]
    assert job["DataSources"] == [{"DataSourceId": "datat56by9n1xt0a", "MountPath": "/root/data/"}]
    assert f"/root/data/nni-agents-{INSTALLATION}/{NAME}/settings.json" in job["UserCommand"]
    assert "password" not in str(job)


async def test_settings_of_an_agent_are_on_the_nas_until_it_is_forgotten(
    server: DlcServer, tmp_path: Path
) -> None:
    adapter = adapter_of(server, tmp_path, reuseMode=False)
    await launched(adapter)
    file = tmp_path / "nas" / f"nni-agents-{INSTALLATION}" / str(NAME) / "settings.json"

    settings = json.loads(file.read_text())
    await adapter.terminate([NAME])

    assert settings["connection"]["bus"] == "tls://192.0.2.1:8081"
    assert (settings["slots"], settings["max_trials"]) == (1, 1)
    assert list((tmp_path / "nas").iterdir()) == []
    assert server.jobs == {}


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"localStorageMountPoint": "/no/such/mount"}, "localStorageMountPoint"),
        ({"endpoint": "http://127.0.0.1:1"}, "region"),
        ({"accessKeyId": "other"}, "accessKeyId"),
        ({"jobType": "MPIJob"}, "jobType"),
    ],
)
async def test_broken_section_is_found_before_a_start(
    server: DlcServer, tmp_path: Path, options: dict[str, Any], field: str
) -> None:
    (problem,) = await adapter_of(server, tmp_path, **options).check()

    assert problem.field == field
    assert server.jobs == {}


async def test_job_in_the_queue_is_pending_with_the_words_of_the_service(
    server: DlcServer, tmp_path: Path
) -> None:
    server.waits = True
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)
    server.job(str(NAME))["ReasonMessage"] = "no instance of that type is free"

    (agent,) = await adapter.agents()

    assert agent.phase is AgentPhase.PENDING
    assert agent.reason == "Queuing: no instance of that type is free"


async def test_failed_job_has_ended_with_its_reason(server: DlcServer, tmp_path: Path) -> None:
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)
    reason = {"ReasonCode": "PodFailed", "ReasonMessage": "exit code 1"}
    server.job(str(NAME)).update({"Status": "Failed", **reason})

    (agent,) = await adapter.agents()

    assert (agent.phase, agent.reason) == (AgentPhase.ENDED, "PodFailed: exit code 1")


async def test_refused_job_is_a_failure_and_leaves_no_settings(
    server: DlcServer, tmp_path: Path
) -> None:
    server.refusal = (400, "InvalidEcsSpec", "The instance type is not sold here.")
    adapter = adapter_of(server, tmp_path)
    await adapter.prepare()

    (failure,) = await adapter.launch([agent_order(NAME)])

    assert failure.permanent
    assert "not sold here" in failure.reason
    assert list((tmp_path / "nas").iterdir()) == []


async def test_broken_service_is_an_error(server: DlcServer, tmp_path: Path) -> None:
    server.refusal = (500, "InternalError", "try later")
    adapter = adapter_of(server, tmp_path)
    await adapter.prepare()

    with pytest.raises(PlatformError, match="try later") as caught:
        await adapter.launch([agent_order(NAME)])

    assert not caught.value.permanent


async def test_usable_section_has_no_problem(server: DlcServer, tmp_path: Path) -> None:
    assert await adapter_of(server, tmp_path).check() == []


@pytest.mark.parametrize(
    ("options", "value"),
    [({"endpoint": "http://127.0.0.1:1"}, "cn-hangzhou"), ({"accessKeyId": "other"}, "other")],
)
async def test_value_of_the_wrong_field_is_shown(
    server: DlcServer, tmp_path: Path, options: dict[str, Any], value: str
) -> None:
    (problem,) = await adapter_of(server, tmp_path, **options).check()

    assert problem.value == value


async def test_section_that_breaks_a_rule_is_not_prepared(
    server: DlcServer, tmp_path: Path
) -> None:
    with pytest.raises(PlatformError, match="jobType must be"):
        await adapter_of(server, tmp_path, jobType="MPIJob").prepare()

    assert server.jobs == {}


async def test_launch_of_no_order_asks_for_nothing(server: DlcServer, tmp_path: Path) -> None:
    assert await adapter_of(server, tmp_path, endpoint="http://127.0.0.1:1").launch([]) == []


@pytest.mark.parametrize("call", ["launch", "terminate"])
async def test_wait_ends_when_agents_are_launched_or_ended(
    server: DlcServer, tmp_path: Path, call: str
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
    assert len(server.jobs) == (call == "launch")


async def test_job_that_ends_at_a_later_look_is_deleted(
    server: DlcServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)
    job, listings = server.job(str(NAME)), iter(["Stopping", "Stopping", "Stopped"])
    answered = server.answer

    def ends_at_the_third_listing(method: str, path: str, *rest: Any) -> Any:
        answer = answered(method, path, *rest)
        if method == "POST":
            job["Status"] = "Stopping"
        if method == "GET" and job["Status"] == "Stopping":
            job["Status"] = next(listings)
        return answer

    monkeypatch.setattr(server, "answer", ends_at_the_third_listing)
    await adapter.terminate([NAME])

    assert server.jobs == {}


async def test_ended_job_of_a_terminated_agent_is_deleted(
    server: DlcServer, tmp_path: Path
) -> None:
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)
    server.job(str(NAME))["Status"] = "Succeeded"

    await adapter.terminate([NAME])

    assert server.jobs == {}


async def test_clean_removes_jobs_and_settings_of_the_pool_alone(
    server: DlcServer, tmp_path: Path
) -> None:
    adapter = adapter_of(server, tmp_path)
    other = dlc_adapter(server, tmp_path, f"{POOL}-b", INSTALLATION)
    await launched(adapter)
    (tmp_path / "nas" / f"nni-agents-{INSTALLATION}" / "notes").mkdir()

    await other.terminate([NAME])
    await other.clean()
    assert [left.agents for left in await other.leftovers()] == [(str(NAME),)]
    await adapter.clean()

    assert server.jobs == {}
    (left,) = (tmp_path / "nas").rglob("notes")
    assert [one.name for one in left.parent.iterdir()] == ["notes"]


@pytest.mark.parametrize(
    ("job", "phase", "reason"),
    [
        ({"Status": "EnvPreparing", "ReasonCode": "A"}, AgentPhase.STARTING, "A"),
        ({"Status": "Running", "ReasonCode": "A"}, AgentPhase.RUNNING, ""),
        ({"Status": "Succeeded", "ReasonCode": "A"}, AgentPhase.ENDED, ""),
        ({"Status": "SucceededReserving", "ReasonCode": "A"}, AgentPhase.ENDED, ""),
        ({"Status": "Stopped", "ReasonMessage": "a\nb"}, AgentPhase.ENDED, "a b"),
        ({"Status": "Frozen"}, AgentPhase.RUNNING, "PAI-DLC says Frozen"),
        ({}, AgentPhase.RUNNING, "PAI-DLC says nothing"),
        ({"Status": "Creating"}, AgentPhase.PENDING, "Creating"),
        ({"Status": "Failed", "ReasonCode": "a" * 500}, AgentPhase.ENDED, "a" * 400),
    ],
)
def test_status_of_a_job_is_the_phase_of_its_agent(
    job: dict[str, str], phase: AgentPhase, reason: str
) -> None:
    agent = platform_agent(NAME, job)

    assert (agent.phase, agent.reason) == (phase, reason)


def test_job_of_no_workspace_names_none() -> None:
    assert "WorkspaceId" not in job_of(parse_options({}), NAME)


def test_job_of_an_agent_is_this_one() -> None:
    options = parse_options(
        {
            "image": "i", "ecsSpec": "e", "nasDataSourceId": "d", "type": "Master",
            "containerStorageMountPoint": "/a b", "python": "/opt/a python", "workspaceId": "w",
        }
    )  # fmt: skip

    file = f"'/a b/nni-agents-{INSTALLATION}/{NAME}/settings.json'"
    assert job_of(options, NAME) == {
        "DisplayName": str(NAME),
        "JobType": "TFJob",
        "JobSpecs": [{"Type": "Master", "Image": "i", "PodCount": 1, "EcsSpec": "e"}],
        "DataSources": [{"DataSourceId": "d", "MountPath": "/a b"}],
        "UserCommand": (
            'folder="$HOME/.nni-agent"\n'
            'mkdir -p -m 700 "$folder"\n'
            f'(umask 077; cat {file} >"$folder/settings.json") && rm -f {file}\n'
            "exec '/opt/a python' -P -m svc_trial_runner --settings"
            ' "$folder/settings.json"\n'
        ),
        "WorkspaceId": "w",
    }


@pytest.mark.parametrize(
    ("statuses", "phase"),
    [
        (("Creating", "Queuing", "Bidding"), AgentPhase.PENDING),
        (("EnvPreparing", "SanityChecking", "Restarting"), AgentPhase.STARTING),
        (("Running", "Stopping"), AgentPhase.RUNNING),
        (("Succeeded", "Failed", "Stopped", "SucceededReserving", "FailedReserving"),
         AgentPhase.ENDED),
    ],
)  # fmt: skip
def test_each_status_of_the_service_has_a_phase(
    statuses: tuple[str, ...], phase: AgentPhase
) -> None:
    assert {platform_agent(NAME, {"Status": status}).phase for status in statuses} == {phase}


def test_code_and_message_of_a_wait_are_shown_behind_its_status() -> None:
    job = {"Status": "Queuing", "ReasonCode": "NoStock", "ReasonMessage": "none is free"}

    assert platform_agent(NAME, job).reason == "Queuing: NoStock: none is free"


async def test_capacity_is_that_of_the_service(server: DlcServer, tmp_path: Path) -> None:
    assert await adapter_of(server, tmp_path).capacity() is None
