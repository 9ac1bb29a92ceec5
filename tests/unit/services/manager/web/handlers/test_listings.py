"""Responses with long lists: whole, streamed, paged."""

from __future__ import annotations

from tests.unit.services.manager.web.conftest import API, EXPERIMENT, Site, serve
from tests.unit.services.manager.web.in_memory import InMemoryManager


async def test_trials_without_parameters_are_one_array_of_all(manager: InMemoryManager) -> None:
    trials = manager.trials[EXPERIMENT]
    template = trials["tria0"]
    for number in range(3, 700):
        copy = type(template)()
        copy.CopyFrom(template)
        copy.id, copy.sequence_id = f"t{number:04}", number
        trials[copy.id] = copy

    async with serve(manager) as site:
        answer = await site.anonymous.get(f"{API}/trial-jobs")

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
        answer = await site.anonymous.get(f"{API}/metric-data-latest")

    assert len(answer.json()) == 2 * 251


async def test_pages_follow_the_link_header_to_the_end(site: Site) -> None:
    seen = []
    url: str | None = f"{API}/trial-jobs?limit=2&status=SUCCEEDED"
    while url:
        answer = await site.anonymous.get(url)
        assert answer.headers["x-total-count"] == "3"
        seen += [trial["trialJobId"] for trial in answer.json()]
        url = answer.links.get("next", {}).get("url")

    assert seen == ["tria0", "tria1", "tria2"]
