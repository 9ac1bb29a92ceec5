"""Routes of logs and files of trials."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from svc_common.errors import InvalidArgumentError, NotFoundError
from svc_manager.web.handlers.files import file_inside
from tests.unit.services.manager.web.conftest import API, Site


async def test_output_of_a_trial_is_plain_text_from_an_offset_on(
    site: Site, tmp_path: Path
) -> None:
    (tmp_path / "trials" / "tria0" / "stdout").write_text("<script>one</script>\ntwo\n")

    whole = await site.anonymous.get(f"{API}/trial-file/tria0/stdout")
    rest = await site.anonymous.get(f"{API}/trial-file/tria0/stdout?offset=21")

    assert whole.text == "<script>one</script>\ntwo\n"
    assert whole.headers["content-type"].startswith("text/plain")
    assert rest.text == "two\n"


async def test_other_files_of_a_trial_have_no_type_that_a_browser_executes(
    site: Site, tmp_path: Path
) -> None:
    (tmp_path / "trials" / "tria0" / "page.html").write_bytes(b"<script>")
    (tmp_path / "trials" / "tria0" / "model.onnx").write_bytes(bytes(range(256)))

    page = await site.anonymous.get(f"{API}/trial-file/tria0/page.html")
    model = await site.anonymous.get(f"{API}/trial-file/tria0/model.onnx")

    assert page.headers["content-type"] == "application/octet-stream"
    assert model.content == bytes(range(256))


async def test_samples_of_a_trial_have_a_name_that_no_file_of_its_user_has(
    site: Site, tmp_path: Path
) -> None:
    folder = tmp_path / "trials" / "tria0"
    (folder / ".nni").mkdir()
    (folder / ".nni" / "resources.jsonl").write_text('{"time":1}\n')

    samples = await site.anonymous.get(f"{API}/trial-file/tria0/.resources")

    assert samples.text == '{"time":1}\n'
    assert (await site.anonymous.get(f"{API}/trial-file/tria0/resources")).status_code == 404


@pytest.mark.parametrize("name", ["..%2f..%2fsecret", "%2e%2e", ".nni", "a%2fb", "a%5cb"])
async def test_paths_out_of_the_trial_are_refused(site: Site, tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("secret")

    answer = await site.anonymous.get(f"{API}/trial-file/tria0/{name}")

    assert answer.status_code in {400, 404}
    assert "secret" not in answer.text.replace("../../secret", "")


async def test_links_that_lead_out_of_the_trial_are_not_followed(
    site: Site, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "trials" / "tria0" / "link").symlink_to(tmp_path / "secret")

    answer = await site.anonymous.get(f"{API}/trial-file/tria0/link")

    assert answer.status_code == 404


async def test_pipe_made_by_a_trial_does_not_hang_the_manager(site: Site, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "trials" / "tria0" / "pipe")

    answer = await site.anonymous.get(f"{API}/trial-file/tria0/pipe")

    assert answer.status_code == 404


async def test_missing_log_is_404_with_a_message(site: Site) -> None:
    for path in ("logs/nnimanager.log", "trial-file/tria0/stderr", "logs/other.log"):
        answer = await site.anonymous.get(f"{API}/{path}")

        assert answer.status_code == 404
        assert answer.json()["error"]


async def test_logs_of_the_experiment_are_served(site: Site, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "dispatcher.log").write_text("[2026-01-01 00:00:00] INFO (x/y) hello\n")

    answer = await site.anonymous.get(f"{API}/logs/dispatcher.log")

    assert "hello" in answer.text


async def test_file_inside_refuses_names_that_are_paths(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError):
        file_inside(str(tmp_path), "../x")
    with pytest.raises(NotFoundError):
        file_inside("", "x")


@pytest.mark.parametrize(
    ("header", "status", "text", "content_range"),
    [
        ("bytes=0-3", 206, "0123", "bytes 0-3/10"),
        ("bytes=4-", 206, "456789", "bytes 4-9/10"),
        ("bytes=-3", 206, "789", "bytes 7-9/10"),
        ("bytes=-99", 206, "0123456789", "bytes 0-9/10"),
        ("lines=1-2", 200, "0123456789", None),
    ],
)
async def test_ranges_of_a_log_are_served(
    site: Site, tmp_path: Path, header: str, status: int, text: str, content_range: str | None
) -> None:
    (tmp_path / "trials" / "tria0" / "stdout").write_text("0123456789")

    answer = await site.anonymous.get(f"{API}/trial-file/tria0/stdout", headers={"Range": header})

    assert (answer.status_code, answer.text) == (status, text)
    assert answer.headers.get("content-range") == content_range


async def test_range_behind_the_end_is_416_with_the_length(site: Site, tmp_path: Path) -> None:
    (tmp_path / "trials" / "tria0" / "stdout").write_text("0123456789")

    answer = await site.anonymous.get(
        f"{API}/trial-file/tria0/stdout", headers={"Range": "bytes=10-"}
    )

    assert (answer.status_code, answer.headers["content-range"]) == (416, "bytes */10")


@pytest.mark.parametrize(
    ("header", "status", "text", "content_range"),
    [
        ("bytes=2-7", 206, "4567", "bytes 4-7/10"),
        ("bytes=0-3", 416, "", "bytes */10"),
        ("bytes=6-", 206, "6789", "bytes 6-9/10"),
    ],
)
async def test_ranges_of_a_log_without_its_begin_tell_where_they_begin(
    site: Site, tmp_path: Path, header: str, status: int, text: str, content_range: str
) -> None:
    (tmp_path / "trials" / "tria0" / "stdout").write_text("0123456789")
    site.manager.logs_begin = 4

    answer = await site.anonymous.get(f"{API}/trial-file/tria0/stdout", headers={"Range": header})

    assert (answer.status_code, answer.text) == (status, text)
    assert answer.headers["content-range"] == content_range


async def test_search_finds_lines_with_their_offsets_and_goes_on_there(
    site: Site, tmp_path: Path
) -> None:
    (tmp_path / "trials" / "tria0" / "stdout").write_text("one\nLoss 2\nthree\nloss 4")
    path = f"{API}/trial-file/tria0/stdout/search"

    first = (await site.anonymous.get(path, params={"text": "loss", "limit": 1})).json()
    rest = await site.anonymous.get(path, params={"text": "loss", "offset": first["next"]})

    assert first == {"lines": [{"offset": 4, "text": "Loss 2"}], "next": 11, "complete": False}
    assert rest.json() == {
        "lines": [{"offset": 17, "text": "loss 4"}], "next": 23, "complete": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("path", "text", "status"),
    [
        ("trial-file/tria0/stdout/search", "", 400),
        ("trial-file/tria0/stdout/search", "x" * 201, 400),
        ("trial-file/tria0/model.onnx/search", "x", 404),
        ("logs/other.log/search", "x", 404),
    ],
)
async def test_searches_of_nothing_or_of_other_files_are_refused(
    site: Site, path: str, text: str, status: int
) -> None:
    answer = await site.anonymous.get(f"{API}/{path}", params={"text": text})

    assert answer.status_code == status
