"""What trials write, as server-sent events."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from svc_common.errors import AbortedError
from svc_manager.web.handlers.trial_output import OffsetDecoder
from tests.unit.services.manager.web.conftest import API, EXPERIMENT, Site


def write(site: Site, name: str, data: bytes) -> None:
    folder = Path(site.manager.trials[EXPERIMENT]["tria1"].directory)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def events(text: str) -> list[dict[str, str]]:
    """Parse a stream as a browser does, comments and waits left out."""
    blocks = [
        dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        for block in text.strip().split("\n\n")
    ]
    return [block for block in blocks if "data" in block]


async def test_output_comes_in_events_and_the_last_one_says_so(site: Site) -> None:
    write(site, "stdout", b"hello\n")

    answer = await site.stranger.get(f"{API}/trials/tria1/log")

    assert answer.headers["content-type"].startswith("text/event-stream")
    output, end = events(answer.text)
    assert (output["id"], json.loads(output["data"])) == ("6", {"offset": 0, "text": "hello\n"})
    assert end["event"] == "end"


async def test_a_broken_stream_goes_on_where_it_broke(site: Site) -> None:
    write(site, "stderr", b"one two")

    answer = await site.stranger.get(
        f"{API}/trials/tria1/log?stream=stderr", headers={"Last-Event-ID": "4"}
    )

    assert json.loads(events(answer.text)[0]["data"]) == {"offset": 4, "text": "two"}


async def test_a_trial_that_wrote_nothing_has_an_empty_stream(site: Site) -> None:
    answer = await site.stranger.get(f"{API}/trials/tria0/log")

    assert [event["event"] for event in events(answer.text)] == ["end"]


async def test_a_stream_that_breaks_off_has_no_last_event_so_that_browsers_come_again(
    site: Site,
) -> None:
    write(site, "stdout", b"hello\n")
    site.manager.broken_logs = AbortedError("the experiment was closed here")

    answer = await site.stranger.get(f"{API}/trials/tria1/log")

    assert [event.get("event", "") for event in events(answer.text)] == [""]


@pytest.mark.parametrize("last", ["-1", "x", "1" * 30])
async def test_a_place_that_is_none_is_refused(site: Site, last: str) -> None:
    answer = await site.stranger.get(f"{API}/trials/tria1/log", headers={"Last-Event-ID": last})

    assert answer.status_code == 400


async def test_an_unknown_trial_has_no_output(site: Site) -> None:
    assert (await site.stranger.get(f"{API}/trials/nobody/log")).status_code == 404


def test_a_character_that_is_cut_waits_for_its_rest() -> None:
    pieces = OffsetDecoder()
    data = "für".encode()

    assert pieces.decode(data[:2], 0) == ("f", 1)
    assert pieces.decode(data[2:], 2) == ("ür", 4)


def test_a_gap_ends_a_character_that_was_cut() -> None:
    pieces = OffsetDecoder()
    pieces.decode(b"a\xc3", 0)

    assert pieces.decode(b"b", 100) == ("\ufffdb", 101)
