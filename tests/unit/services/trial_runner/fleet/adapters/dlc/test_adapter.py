from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

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
