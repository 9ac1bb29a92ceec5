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
