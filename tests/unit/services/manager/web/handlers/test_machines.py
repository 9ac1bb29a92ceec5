"""Routes of agents and pools."""

from __future__ import annotations

from tests.unit.services.manager.web.conftest import API, Site


async def test_agents_are_listed_by_pages_with_state_and_trials(site: Site) -> None:
    whole = (await site.anonymous.get(f"{API}/runners")).json()
    page = await site.anonymous.get(f"{API}/runners", params={"limit": 1})

    assert [(one["id"], one["state"]) for one in whole] == [
        ("box", "CONNECTED"),
        ("exp-a-1", "PENDING"),
    ]
    assert page.json() == whole[:1]
    assert 'rel="next"' in page.headers["Link"]


async def test_pools_tell_why_they_do_not_grow(site: Site) -> None:
    [pool] = (await site.anonymous.get(f"{API}/pools")).json()

    assert (pool["reason"], pool["remedy"]) == ("no nodes", "ask for fewer GPUs")
