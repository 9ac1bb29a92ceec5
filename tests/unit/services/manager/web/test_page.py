"""The page's addresses, its files, and how it gets the token."""

from __future__ import annotations

import re

import pytest

from svc_manager.web.page import PAGE_PATHS
from svc_manager.web.security import AccessPolicy
from tests.unit.services.manager.web.conftest import API, TOKEN, Site, serve
from tests.unit.services.manager.web.in_memory import InMemoryManager


@pytest.mark.parametrize("path", PAGE_PATHS)
async def test_every_address_of_the_page_answers(site: Site, path: str) -> None:
    answer = await site.stranger.get(path)

    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")


async def test_files_that_the_page_names_exist_and_are_relative(site: Site) -> None:
    html = (await site.stranger.get("/oview")).text
    named = [url for url in re.findall(r'(?:src|href)="([^"#]+)"', html) if "static" in url]

    assert len(named) >= 3
    for url in named:
        assert not url.startswith("/")
        assert (await site.stranger.get(f"/{url}")).status_code == 200


async def test_scripts_import_only_files_that_are_served(site: Site) -> None:
    pending, seen = ["app.js"], set()
    while pending:
        name = pending.pop()
        seen.add(name)
        answer = await site.stranger.get(f"/static/{name}")
        assert answer.status_code == 200, name
        pending += set(re.findall(r'from "\./([\w.]+)"', answer.text)) - seen

    assert {"store.js", "chart.js", "trials.js", "overview.js"} <= seen


async def test_printed_address_gives_a_cookie_once_and_hides_the_token(site: Site) -> None:
    answer = await site.stranger.get(f"/detail?token={TOKEN}&trial=abcde")

    assert answer.status_code == 303
    assert answer.headers["location"] == "/detail?trial=abcde"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert cookie.startswith(AccessPolicy(TOKEN).cookie_name)


async def test_cookie_lets_the_page_change_things(site: Site) -> None:
    before = (await site.stranger.get(f"{API}/session")).json()
    await site.stranger.get(f"/?token={TOKEN}")

    after = (await site.stranger.get(f"{API}/session")).json()
    changed = await site.stranger.put(
        f"{API}/experiment?update_type=MAX_TRIAL_NUM", json={"params": {"maxTrialNumber": 20}}
    )

    assert [before["canChange"], after["canChange"]] == [False, True]
    assert changed.status_code == 200


async def test_wrong_token_gives_no_cookie(site: Site) -> None:
    answer = await site.stranger.get("/?token=guess")

    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


async def test_unchanged_file_is_not_sent_again(site: Site) -> None:
    first = await site.stranger.get("/static/app.js")

    again = await site.stranger.get(
        "/static/app.js", headers={"If-None-Match": first.headers["etag"]}
    )

    assert again.status_code == 304
    assert again.content == b""


async def test_prefix_carries_page_files_and_rest(manager: InMemoryManager) -> None:
    async with serve(manager, prefix="a/b") as site:
        for path in ("/a/b/", "/a/b/oview", "/a/b/static/app.js", f"/a/b{API}/version"):
            assert (await site.stranger.get(path)).status_code == 200
        without_slash = await site.stranger.get("/a/b")

    assert without_slash.status_code == 307
    assert without_slash.headers["location"].endswith("/a/b/")
