from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.aml.adapter import AmlAdapter
from svc_trial_runner.fleet.adapters.aml.azure_requests import AmlRefusalError
from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.domain.agents import AgentPhase, PlatformSection
from svc_trial_runner.fleet.ports import PlatformError
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, agent_name, agent_order
from tests.support.aml_server import (
    COMPUTE,
    GROUP,
    SUBSCRIPTION,
    WORKSPACE,
    AmlServer,
    Tokens,
    aml_adapter,
    aml_server,
)
from tests.support.local_platforms import front_context

NAME = agent_name(1)
BLOB = f"nni-agents-{INSTALLATION}/{NAME}.json"


@pytest.fixture
def server() -> Iterator[AmlServer]:
    with aml_server() as one:
        yield one


def adapter_of(server: AmlServer, folder: Path, **options: Any) -> AmlAdapter:
    return aml_adapter(server, folder, POOL, INSTALLATION, **options)


async def launched(adapter: AmlAdapter) -> None:
    await adapter.prepare()
    assert await adapter.launch([agent_order(NAME)]) == []


async def test_settings_travel_as_a_blob_and_are_in_no_part_of_the_job(
    server: AmlServer, tmp_path: Path
) -> None:
    await launched(adapter_of(server, tmp_path, useActiveGpu=True, maxTrialNumberPerGpu=2))

    settings = json.loads(server.blobs[BLOB])
    assert settings["connection"]["bus"] == "tls://192.0.2.1:8081"
    assert (settings["platform"], settings["bus_password"]) == ("aml", "password")
    assert (settings["use_active_gpu"], settings["trials_per_gpu"]) == (True, 2)
    submitted = str(server.jobs[str(NAME)])
    assert BLOB in submitted
    assert "password" not in submitted
    assert "environmentVariables" not in submitted


async def test_agent_of_one_trial_ends_after_it(server: AmlServer, tmp_path: Path) -> None:
    await launched(adapter_of(server, tmp_path, reuseMode=False))

    settings = json.loads(server.blobs[BLOB])
    assert (settings["slots"], settings["max_trials"]) == (1, 1)


async def test_forgotten_agent_leaves_neither_job_nor_settings(
    server: AmlServer, tmp_path: Path
) -> None:
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)

    await adapter.terminate([NAME])

    assert server.jobs == {}
    assert server.blobs == {}


async def test_image_of_the_version_is_the_default(server: AmlServer, tmp_path: Path) -> None:
    await launched(adapter_of(server, tmp_path, dockerImage=None))

    (image,) = server.environments.values()
    assert image.startswith("nni/trial-runner:")


async def test_queued_job_waits_with_the_state_of_the_compute(
    server: AmlServer, tmp_path: Path
) -> None:
    server.waits = True
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)

    (agent,) = await adapter.agents()

    assert agent.phase is AgentPhase.PENDING
    assert agent.reason == "Queued: gpus has 1 of at most 4 nodes (Resizing)"


async def test_compute_that_cannot_be_read_hides_no_agent(
    server: AmlServer, tmp_path: Path
) -> None:
    server.waits = True
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)
    server.refusals["GET computes"] = (403, "AuthorizationFailed", "no right")

    (agent,) = await adapter.agents()

    assert agent.reason == "Queued: AuthorizationFailed: no right"


async def test_job_that_is_not_listed_yet_is_an_agent(server: AmlServer, tmp_path: Path) -> None:
    adapter = adapter_of(server, tmp_path)
    server.hides = True
    await launched(adapter)

    assert [agent.name for agent in await adapter.agents()] == [NAME]
    del server.jobs[str(NAME)]
    assert await adapter.agents() == []


async def test_refused_job_is_a_failure_and_leaves_no_settings(
    server: AmlServer, tmp_path: Path
) -> None:
    server.refusals["PUT jobs"] = (400, "UserError", "The quota of jobs is used up.")
    adapter = adapter_of(server, tmp_path)
    await adapter.prepare()

    (failure,) = await adapter.launch([agent_order(NAME)])

    assert failure.permanent
    assert "quota of jobs" in failure.reason
    assert server.blobs == {}


async def test_service_that_is_busy_is_asked_again_later(server: AmlServer, tmp_path: Path) -> None:
    server.refusals["PUT jobs"] = (429, "TooManyRequests", "wait")
    adapter = adapter_of(server, tmp_path)
    await adapter.prepare()

    with pytest.raises(AmlRefusalError, match="wait") as caught:
        await adapter.launch([agent_order(NAME)])

    assert not caught.value.permanent


async def test_job_that_was_taken_before_its_answer_was_lost_is_no_failure(
    server: AmlServer, tmp_path: Path
) -> None:
    await launched(adapter_of(server, tmp_path))
    server.hides = True
    server.refusals["PUT jobs"] = (409, "Conflict", "exists")
    second = adapter_of(server, tmp_path)
    await second.prepare()

    assert await second.launch([agent_order(NAME)]) == []
    assert BLOB in server.blobs


async def test_ended_job_that_must_not_be_deleted_is_forgotten(
    server: AmlServer, tmp_path: Path
) -> None:
    server.refusals["DELETE jobs"] = (403, "AuthorizationFailed", "no right")
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)

    await adapter.terminate([NAME])

    assert await adapter.agents() == []
    assert await adapter.leftovers() == []
    assert str(NAME) in server.jobs


async def test_job_that_ends_by_itself_needs_no_cancellation(
    server: AmlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)

    def end_first(method: str, kind: str) -> None:
        if (method, kind) == ("POST", "jobs"):
            server.set_status(str(NAME), "Completed")

    monkeypatch.setattr(server, "refuse", end_first)
    await adapter.terminate([NAME])

    assert server.jobs == {}


async def test_job_that_does_not_end_in_time_is_listed_further(
    server: AmlServer, tmp_path: Path
) -> None:
    server.ends_slowly = True
    adapter = adapter_of(server, tmp_path, end_limit_s=0.0)
    await launched(adapter)

    with pytest.raises(PlatformError, match="has not ended 0 s after its cancellation"):
        await adapter.terminate([NAME])

    assert [agent.phase for agent in await adapter.agents()] == [AgentPhase.RUNNING]
    assert BLOB in server.blobs


async def test_settings_without_a_job_are_left_over_until_they_are_cleaned(
    server: AmlServer, tmp_path: Path
) -> None:
    server.blobs[BLOB] = b"{}"
    adapter = adapter_of(server, tmp_path)

    (left,) = await adapter.leftovers()
    await adapter.clean()

    assert left.agents == (str(NAME),)
    assert server.blobs == {}


async def test_usable_section_has_no_problem(server: AmlServer, tmp_path: Path) -> None:
    assert await adapter_of(server, tmp_path).check() == []


async def test_section_that_breaks_a_rule_is_not_prepared(
    server: AmlServer, tmp_path: Path
) -> None:
    with pytest.raises(PlatformError, match="useActiveGpu must be true or false"):
        await adapter_of(server, tmp_path, useActiveGpu="yes").prepare()

    assert server.environments == {}


async def test_launch_of_no_order_asks_for_nothing(server: AmlServer, tmp_path: Path) -> None:
    assert await adapter_of(server, tmp_path, endpoint="http://127.0.0.1:1").launch([]) == []


@pytest.mark.parametrize("call", ["launch", "terminate"])
async def test_wait_ends_when_agents_are_launched_or_ended(
    server: AmlServer, tmp_path: Path, call: str
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


async def test_listed_job_that_is_listed_no_more_is_no_agent(
    server: AmlServer, tmp_path: Path
) -> None:
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)
    assert len(await adapter.agents()) == 1

    server.hides = True

    assert await adapter.agents() == []


async def test_job_that_ends_within_the_limit_is_waited_for(
    server: AmlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.ends_slowly = True
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)
    properties, listings = server.jobs[str(NAME)]["properties"], iter([False, True])

    def end_at_the_second_listing(method: str, kind: str) -> None:
        asked = (method, kind) == ("GET", "jobs")
        if asked and properties["status"] == "CancelRequested" and next(listings):
            properties["status"] = "Canceled"

    monkeypatch.setattr(server, "refuse", end_at_the_second_listing)
    await adapter.terminate([NAME])

    assert server.jobs == {}


async def test_live_job_whose_cancellation_is_refused_is_an_error(
    server: AmlServer, tmp_path: Path
) -> None:
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)
    server.refusals["POST jobs"] = (403, "AuthorizationFailed", "no right")

    with pytest.raises(AmlRefusalError, match="no right"):
        await adapter.terminate([NAME])

    assert BLOB in server.blobs


async def test_job_that_is_gone_needs_no_cancellation(
    server: AmlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)

    def remove_first(method: str, kind: str) -> None:
        if (method, kind) == ("POST", "jobs"):
            server.jobs.clear()

    monkeypatch.setattr(server, "refuse", remove_first)
    await adapter.terminate([NAME])

    assert server.blobs == {}


@pytest.mark.parametrize(
    ("status", "is_forgotten"), [(400, True), (401, True), (429, False), (500, False)]
)
async def test_only_a_refused_deletion_forgets_the_job(
    server: AmlServer, tmp_path: Path, status: int, *, is_forgotten: bool
) -> None:
    server.refusals["DELETE jobs"] = (status, "Code", "words")
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)

    if is_forgotten:
        await adapter.terminate([NAME])
    else:
        with pytest.raises(AmlRefusalError, match="words"):
            await adapter.terminate([NAME])

    assert len(await adapter.agents()) == (not is_forgotten)


async def test_agents_of_other_pools_are_neither_ended_nor_cleaned(
    server: AmlServer, tmp_path: Path
) -> None:
    other = aml_adapter(server, tmp_path, f"{POOL}-b", INSTALLATION)
    await launched(adapter_of(server, tmp_path))
    server.blobs[f"nni-agents-{INSTALLATION}/nni-{INSTALLATION}-{POOL}-b-1.json"] = b"{}"

    await other.terminate([NAME])
    await adapter_of(server, tmp_path).clean()

    assert server.jobs == {}
    assert list(server.blobs) == [f"nni-agents-{INSTALLATION}/nni-{INSTALLATION}-{POOL}-b-1.json"]


async def test_live_job_without_settings_is_left_over(server: AmlServer, tmp_path: Path) -> None:
    adapter = adapter_of(server, tmp_path)
    await launched(adapter)
    server.blobs.clear()

    (left,) = await adapter.leftovers()
    server.set_status(str(NAME), "Completed")

    assert left.agents == (str(NAME),)
    assert await adapter.leftovers() == []


async def test_pool_is_not_prepared_without_a_front(server: AmlServer, tmp_path: Path) -> None:
    options = {
        "subscriptionId": SUBSCRIPTION, "resourceGroup": GROUP, "workspaceName": WORKSPACE,
        "computeTarget": COMPUTE, "endpoint": server.address,
    }  # fmt: skip
    context = front_context(tmp_path, INSTALLATION, POOL, PlatformSection("aml", options))
    adapter = AmlAdapter(replace(context, front=NoFront()), Tokens())

    with pytest.raises(PlatformError):
        await adapter.prepare()

    assert server.jobs == {}


async def test_job_that_is_over_is_removed_without_a_wait(
    server: AmlServer, tmp_path: Path
) -> None:
    adapter = adapter_of(server, tmp_path, end_limit_s=0.0)
    await launched(adapter)

    await adapter.terminate([NAME])

    assert server.jobs == {}
    assert server.blobs == {}
