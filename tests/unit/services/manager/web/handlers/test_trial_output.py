"""Route of a trial's output as server-sent events."""

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
    """Return the events of a stream as a browser parses it, without comments and retry times."""
    blocks = [
        dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        for block in text.strip().split("\n\n")
    ]
    return [block for block in blocks if "data" in block]


async def test_output_is_a_stream_of_events_with_an_end_event(site: Site) -> None:
    write(site, "stdout", b"hello\n")

    answer = await site.anonymous.get(f"{API}/trials/tria1/log")

    assert answer.headers["content-type"].startswith("text/event-stream")
    output, end = events(answer.text)
    assert (output["id"], json.loads(output["data"])) == (
        "1-6",
        {"attempt": 1, "offset": 0, "text": "hello\n"},
    )
    assert end["event"] == "end"


@pytest.mark.parametrize("last", ["2-4", "4"])
async def test_reconnected_stream_resumes_at_the_last_offset(site: Site, last: str) -> None:
    site.manager.attempt = 2
    write(site, "stderr", b"one two")

    answer = await site.anonymous.get(
        f"{API}/trials/tria1/log?stream=stderr", headers={"Last-Event-ID": last}
    )

    found = json.loads(events(answer.text)[0]["data"])
    assert found == {"attempt": 2, "offset": 4, "text": "two"}


async def test_reconnected_stream_begins_the_log_of_a_later_attempt(site: Site) -> None:
    site.manager.attempt = 2
    write(site, "stdout", b"one two")

    answer = await site.anonymous.get(
        f"{API}/trials/tria1/log", headers={"Last-Event-ID": "1-4000"}
    )

    assert json.loads(events(answer.text)[0]["data"])["text"] == "one two"


async def test_trial_without_output_has_an_empty_stream(site: Site) -> None:
    answer = await site.anonymous.get(f"{API}/trials/tria0/log")

    assert [event["event"] for event in events(answer.text)] == ["end"]


async def test_stream_with_an_error_has_no_end_event_so_that_browsers_reconnect(
    site: Site,
) -> None:
    write(site, "stdout", b"hello\n")
    site.manager.broken_logs = AbortedError("the experiment was closed here")

    answer = await site.anonymous.get(f"{API}/trials/tria1/log")

    assert [event.get("event", "") for event in events(answer.text)] == [""]


@pytest.mark.parametrize("last", ["-1", "x", "1" * 30, "1-2-3", "1-"])
async def test_invalid_last_event_id_is_refused(site: Site, last: str) -> None:
    answer = await site.anonymous.get(f"{API}/trials/tria1/log", headers={"Last-Event-ID": last})

    assert answer.status_code == 400


async def test_output_of_an_unknown_trial_is_404(site: Site) -> None:
    assert (await site.anonymous.get(f"{API}/trials/unknown/log")).status_code == 404


def test_incomplete_character_waits_for_its_remaining_bytes() -> None:
    pieces = OffsetDecoder()
    data = "für".encode()

    assert pieces.decode(data[:2], 0) == ("f", 0, 1)
    assert pieces.decode(data[2:], 2) == ("ür", 1, 4)


def test_gap_ends_an_incomplete_character() -> None:
    pieces = OffsetDecoder()
    pieces.decode(b"a\xc3", 0)

    assert pieces.decode(b"b", 100) == ("\ufffdb", 100, 101)


def test_offsets_count_bytes_that_are_no_text_as_they_are() -> None:
    pieces = OffsetDecoder()

    assert pieces.decode(b"a\xff\xffb\xe2\x82", 0) == ("a\ufffd\ufffdb", 0, 4)
    assert pieces.decode(b"\xac\xf0c", 6) == ("\u20ac\ufffdc", 4, 9)
