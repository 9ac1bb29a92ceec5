"""Routes of importance and Pareto front."""

import asyncio
from dataclasses import replace

import httpx
import pytest

from svc_manager.web.listeners.endpoints import EndpointContext
from svc_manager.web.listeners.site import create_site
from svc_manager.web.security import AccessPolicy
from tests.unit.services.manager.web.conftest import (
    API,
    BASE,
    EXPERIMENT,
    TOKEN,
    Site,
    dependencies,
)
from tests.unit.services.manager.web.in_memory import InMemoryManager


async def test_importance_is_a_list_of_shares(site: Site) -> None:
    answer = await site.anonymous.get(f"{API}/importance", params={"metric": "loss"})

    assert answer.json() == {
        "metric": "loss",
        "trials": 3,
        "parameters": [{"name": "x", "share": 0.75}],
        "interactions": 0.25,
    }


async def test_too_few_results_are_a_conflict_with_the_required_number(site: Site) -> None:
    answer = await site.anonymous.get(f"{API}/importance", params={"metric": "nothing"})

    assert answer.status_code == 409
    assert "at least 4 trials" in answer.json()["error"]


async def test_front_shows_values_and_parameters(site: Site) -> None:
    answer = (await site.anonymous.get(f"{API}/pareto")).json()

    assert answer["objectives"] == [{"metric": "default", "mode": "minimize"}]
    assert [point["trialJobId"] for point in answer["front"]] == ["tria0", "tria1"]
    assert [point["values"] for point in answer["front"]] == [{"default": 0.5}, {"default": 1}]
    assert answer["front"][1]["parameters"]["x"] == 0.1
    assert (answer["trials"], answer["infeasible"], answer["incomplete"]) == (3, 0, 1)


async def test_objectives_are_read_from_the_query(site: Site) -> None:
    answer = await site.anonymous.get(
        f"{API}/pareto", params={"objectives": "val:acc:maximize,cost:minimize"}
    )

    assert answer.json()["objectives"] == [
        {"metric": "val:acc", "mode": "maximize"},
        {"metric": "cost", "mode": "minimize"},
    ]


@pytest.mark.parametrize("text", ["cost", "cost:up", ":minimize"])
async def test_invalid_objectives_are_refused_with_an_example(site: Site, text: str) -> None:
    answer = await site.anonymous.get(f"{API}/pareto", params={"objectives": text})

    assert answer.status_code == 400
    assert "accuracy:maximize" in answer.json()["error"]


async def test_analyses_are_unavailable_without_a_dispatcher(manager: InMemoryManager) -> None:
    alone = replace(dependencies(manager), analyses=None)
    app = create_site(EndpointContext(alone, AccessPolicy(TOKEN), _for_ever, EXPERIMENT))

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE) as client:
        assert (await client.get(f"{API}/importance")).status_code == 503


async def _for_ever() -> None:
    await asyncio.Event().wait()
