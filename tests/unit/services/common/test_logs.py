import asyncio
import io
import json
import subprocess
import sys

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
