import asyncio
import errno
import io
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
import structlog

from svc_common.logs import bind_task, bound, configure, get_logger


@pytest.fixture(autouse=True)
def fresh_structlog() -> None:
    structlog.reset_defaults()


def test_line_is_json_with_event_keys_and_service() -> None:
    stream = io.StringIO()
    configure("manager", stream=stream)

    get_logger().bind(experiment="e1").info("trial started", trial="t1")

    line = json.loads(stream.getvalue())
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "trial started",
        "level": "info",
        "service": "manager",
        "experiment": "e1",
        "trial": "t1",
    }


def test_lines_below_the_level_are_dropped() -> None:
    stream = io.StringIO()
    configure("manager", "warning", stream)

    get_logger().info("small")
    get_logger().warning("large")

    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["large"]


def test_traceback_goes_into_the_line() -> None:
    stream = io.StringIO()
    configure("manager", stream=stream)
    try:
        int("no")
    except ValueError:
        get_logger().exception("call failed")

    assert "ValueError: invalid literal" in json.loads(stream.getvalue())["exception"]


async def test_bound_fields_are_in_every_line_of_a_task_and_of_its_subtasks() -> None:
    stream = io.StringIO()
    configure("runner", stream=stream)

    async def inner() -> None:
        get_logger().info("inner")

    async def work() -> None:
        bind_task(experiment="e1", trial="t1")
        await asyncio.create_task(inner())
        with bound(request="r1"):
            get_logger().info("asked")

    await asyncio.create_task(work())
    get_logger().info("outside")

    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line.get("experiment"), line.get("request")) for line in lines] == [
        ("e1", None),
        ("e1", "r1"),
        (None, None),
    ]


def test_services_do_not_import_rich() -> None:
    program = "import svc_common.logs, sys; print('rich' in sys.modules); import rich"

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert (done.stdout.strip(), done.returncode) == ("False", 0), done.stderr


def test_line_that_cannot_be_written_raises_nothing() -> None:
    with Path("/dev/full").open("w", encoding="utf-8", buffering=1) as full:
        configure("manager", stream=full)

        get_logger().info("one")
        get_logger().info("x" * 100_000)
        logging.getLogger("library").error("two")
        assert full.closed is False
        # Closing flushes once more, which is not the logger's.
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())


class FillingStream(io.StringIO):
    """Stream whose disk is full while `full` is set."""

    full = False

    def write(self, text: str) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(text)


def test_number_of_lost_lines_is_written_when_there_is_room_again() -> None:
    stream = FillingStream()
    configure("manager", stream=stream)

    stream.full = True
    get_logger().info("lost")
    get_logger().info("lost, too")
    stream.full = False
    get_logger().info("written")

    note, line = (json.loads(text) for text in stream.getvalue().splitlines())
    assert (note["event"], note["count"]) == ("log lines lost", 2)
    assert line["event"] == "written"
