"""Errors for people: pages in browsers, JSON for programs."""

from __future__ import annotations

import pytest

from tests.unit.services.manager.web.conftest import Site

HTML = {"Accept": "text/html,application/xhtml+xml"}


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/?token=guess", 401, "nnictl webui url"),
        ("/no/such/page", 404, "There is no such page"),
    ],
)
async def test_browser_gets_a_page_with_the_remedy(
    site: Site, path: str, status: int, words: str
) -> None:
    answer = await site.anonymous.get(path, headers=HTML)

    assert answer.status_code == status
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["cache-control"] == "no-store"
    assert words in answer.text
    assert "guess" not in answer.text


@pytest.mark.parametrize("path", ["/?token=guess", "/no/such/page"])
async def test_program_gets_json(site: Site, path: str) -> None:
    answer = await site.anonymous.get(path)

    assert "error" in answer.json()


async def test_api_is_json_for_browsers_too(site: Site) -> None:
    answer = await site.anonymous.get("/api/v1/nni/no-such-route", headers=HTML)

    assert (answer.status_code, "error" in answer.json()) == (404, True)


async def test_path_with_markup_is_no_markup_of_the_page(site: Site) -> None:
    answer = await site.anonymous.get("/<script>alert(1)</script>", headers=HTML)

    assert "<script" not in answer.text
