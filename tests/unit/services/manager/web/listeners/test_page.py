"""Paths and files of the page, and its login by token."""

from __future__ import annotations

import re

import httpx
import pytest
from starlette.applications import Starlette

from svc_manager.web.listeners.page import PAGE_FOLDER, PAGE_PATHS, page_routes
from svc_manager.web.page_access import ListenerId
from svc_manager.web.security import AccessPolicy
from tests.unit.services.manager.web.conftest import API, TOKEN, Site, serve
from tests.unit.services.manager.web.in_memory import InMemoryManager

SOURCES = PAGE_FOLDER.parents[2] / "webui" / "src"


def _script(html: str) -> str:
    found = re.search(r'src="\./(static/[^"]+)"', html)
    assert found
    return found[1]


@pytest.mark.parametrize("path", PAGE_PATHS)
async def test_every_path_of_the_page_serves_the_document(site: Site, path: str) -> None:
    answer = await site.anonymous.get(path)

    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")


async def test_files_that_the_page_names_exist_and_are_relative(site: Site) -> None:
    html = (await site.anonymous.get("/oview")).text
    named = re.findall(r'(?:src|href)="(\./static/[^"]+)"', html)

    assert {name.rpartition(".")[2] for name in named} == {"js", "css", "svg"}
    for name in named:
        assert (await site.anonymous.get(f"/{name}")).status_code == 200


async def test_page_has_nothing_inline_and_names_no_other_site(site: Site) -> None:
    html = (await site.anonymous.get("/oview")).text

    assert not re.search(r"<script(?![^>]*src=)", html)
    assert "<style" not in html
    assert not re.search(r"\son\w+=|\sstyle=|https?://", html)


async def test_files_with_hashed_names_are_kept_and_the_document_is_not(site: Site) -> None:
    html = await site.anonymous.get("/oview")
    script = await site.anonymous.get(f"/{_script(html.text)}")

    assert html.headers["cache-control"] == "no-cache"
    assert "immutable" in script.headers["cache-control"]
    assert script.headers["content-type"].startswith("text/javascript")


async def test_files_are_compressed_once_for_clients_that_accept_it(site: Site) -> None:
    script = f"/{_script((await site.anonymous.get('/oview')).text)}"
    plain = await site.anonymous.get(script, headers={"Accept-Encoding": "br"})
    packed = await site.anonymous.get(script, headers={"Accept-Encoding": "gzip"})

    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(plain.content) / 2
    assert packed.content == plain.content
    assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"


async def test_page_reads_only_documented_fields(site: Site) -> None:
    components = (await site.anonymous.get(f"{API}/openapi.json")).json()["components"]["schemas"]
    source = (SOURCES / "api" / "records.ts").read_text()
    read = {
        name: set(re.findall(r"^  (\w+)\??:", body, re.MULTILINE))
        for name, body in re.findall(
            r"export interface (\w+) \{\n(.*?)^\}", source, re.MULTILINE | re.DOTALL
        )
    }

    assert {"Profile", "Trial", "Metric", "Metadata", "Explanation"} <= read.keys()
    for name, fields in read.items():
        assert fields <= components[name]["properties"].keys(), name


@pytest.mark.parametrize("field", ["endCause", "stopCause", "waitCause"])
async def test_page_knows_all_causes(site: Site, field: str) -> None:
    components = (await site.anonymous.get(f"{API}/openapi.json")).json()["components"]["schemas"]
    source = (SOURCES / "api" / "records.ts").read_text()
    name = field[0].upper() + field[1:]
    (union,) = re.findall(rf"^export type {name} =(.*?);", source, re.MULTILINE | re.DOTALL)

    assert f"  {field}?: {name};" in source
    assert re.findall(r"\w+", union) == components["Trial"]["properties"][field]["enum"]


async def test_page_requests_only_documented_paths(site: Site) -> None:
    paths = (await site.anonymous.get(f"{API}/openapi.json")).json()["paths"]
    known = {re.sub(r"\{\w+\}", "*", path.removeprefix(API)) for path in paths}
    methods = r"(?:get|page|send|installation|stream|url)(?:<.+?>)?"
    calls = (
        rf"[cC]lient(?:\(\"\"\))?\s*\.{methods}\(\s*(?:\"(?:POST|PUT|DELETE)\", )?[`\"]([^`\"]+)"
    )
    asked = {
        "/" + re.sub(r"\$\{[^}]*\}", "*", found).partition("?")[0]
        for path in SOURCES.rglob("*.ts*")
        for found in re.findall(calls, path.read_text())
    }

    assert {"/experiment", "/trial-jobs", "/events", "/trials/*/why", "/version"} <= asked
    assert asked <= known


async def test_printed_address_sets_a_cookie_and_redirects_without_the_token(site: Site) -> None:
    answer = await site.anonymous.get(f"/detail?token={TOKEN}&trial=abcde")

    assert answer.status_code == 303
    assert answer.headers["location"] == "/detail?trial=abcde"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert re.match(r"nni-[0-9a-f]{8}=v1\.", cookie)
    assert TOKEN.lower() not in cookie


async def test_login_at_a_name_with_two_addresses_is_redirected_to_one() -> None:
    policy = AccessPolicy(TOKEN, listener=ListenerId(8080, "exp", "socket"))
    site = Starlette(routes=list(page_routes(policy)))
    transport = httpx.ASGITransport(site)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8080") as client:
        answer = await client.get(f"/detail?token={TOKEN}&trial=abcde")

    assert answer.status_code == 303
    assert answer.headers["location"] == f"http://127.0.0.1:8080/detail?token={TOKEN}&trial=abcde"
    assert "set-cookie" not in answer.headers


async def test_cookie_permits_changes(site: Site) -> None:
    before = (await site.anonymous.get(f"{API}/session")).json()
    await site.anonymous.get(f"/?token={TOKEN}")

    after = (await site.anonymous.get(f"{API}/session")).json()
    changed = await site.anonymous.put(
        f"{API}/experiment?update_type=MAX_TRIAL_NUM", json={"params": {"maxTrialNumber": 20}}
    )

    assert [before["canChange"], after["canChange"]] == [False, True]
    assert changed.status_code == 200


async def test_wrong_token_sets_no_cookie(site: Site) -> None:
    answer = await site.anonymous.get("/?token=guess")

    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


async def test_unchanged_file_is_not_sent_again(site: Site) -> None:
    first = await site.anonymous.get("/oview")

    again = await site.anonymous.get("/oview", headers={"If-None-Match": first.headers["etag"]})

    assert again.status_code == 304
    assert again.content == b""


async def test_prefix_serves_page_files_and_rest(manager: InMemoryManager) -> None:
    async with serve(manager, prefix="a/b") as site:
        script = _script((await site.anonymous.get("/a/b/oview")).text)
        for path in ("/a/b/", "/a/b/oview", f"/a/b/{script}", f"/a/b{API}/version"):
            assert (await site.anonymous.get(path)).status_code == 200
        without_slash = await site.anonymous.get("/a/b")

    assert without_slash.status_code == 307
    assert without_slash.headers["location"].endswith("/a/b/")
