import io
import json

import pytest
import structlog

from svc_common.logs import configure, get_logger


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


def test_lines_below_the_level_are_left_out() -> None:
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
