"""Checks in child processes; hostile search spaces do not hold the event loop."""

import asyncio
import gc
import os
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from nni_proto.tuning.v1 import algorithm_service_pb2 as pb
from nni_proto.tuning.v1 import analysis_service_pb2
from nni_wire.values import to_value
from svc_common.errors import InvalidArgumentError, ResourceExhaustedError, UnavailableError
from svc_common.telemetry.loop_watchdog import LoopWatchdog
from svc_dispatcher.adapters.check_processes import WAITING_LIMIT, CheckProcesses
from svc_dispatcher.domain.values import Check

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}
_PLAIN_CPU_S = 0.05


def request(space: Any, enqueued: list[Any] | None = None) -> bytes:
    message = pb.ValidateAlgorithmsRequest(
        search_space=to_value(space),
        interpreter="/py",
        enqueued=[to_value(item) for item in enqueued or ()],
    )
    message.tuner.name = "TPE"
    return message.SerializeToString()


@pytest.fixture
async def checks() -> AsyncIterator[CheckProcesses]:
    processes = CheckProcesses(dict(os.environ), deadline_s=20.0)
    yield processes
    await processes.aclose()


async def test_valid_request_has_a_result(checks: CheckProcesses) -> None:
    found = await checks.run(Check.ALGORITHMS, request(SPACE), "search_space")

    assert found == {
        "classes": [["tuner", "TPE", "", ""]],
        "warnings": [],
        "optimize_mode": "maximize",
        "interpreter": "/py",
    }


async def test_refusal_names_field_rule_and_remedy(checks: CheckProcesses) -> None:
    space = {**SPACE, "_constraints": ["x <= 0.5"]}

    with pytest.raises(InvalidArgumentError) as refused:
        await checks.run(Check.ALGORITHMS, request(space, [{"x": 0.9}]), "search_space")

    assert refused.value.field == "search.enqueue[0]"
    assert "must keep the constraint x <= 0.5" in refused.value.message
    assert refused.value.remedy == "change the configuration, or remove it"


async def test_child_is_kept_for_the_next_request(checks: CheckProcesses) -> None:
    await checks.warm_up()
    first = checks.idle_pids

    await checks.run(Check.ALGORITHMS, request(SPACE), "search_space")

    assert checks.idle_pids == first
    assert len(first) == 1


async def test_check_beyond_the_deadline_is_killed_and_the_next_one_works() -> None:
    checks = CheckProcesses(dict(os.environ), deadline_s=0.0)
    try:
        with pytest.raises(InvalidArgumentError, match="search_space must be checked within 0 s"):
            await checks.run(Check.ALGORITHMS, request(SPACE), "search_space")
        assert (checks.killed, checks.idle_pids) == (1, [])
    finally:
        await checks.aclose()


async def test_child_that_cannot_start_is_unavailable() -> None:
    checks = CheckProcesses({"PYTHONHOME": "/nonexistent"})
    try:
        with pytest.raises(UnavailableError, match="has ended"):
            await checks.run(Check.ALGORITHMS, request(SPACE), "search_space")
    finally:
        await checks.aclose()


async def test_reply_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    package = tmp_path / "svc_dispatcher"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "check_child.py").write_text(
        "import os, sys\nsys.stdin.buffer.read(4)\nos.write(1, b'\\xf0' * 4)\nsys.stdin.read()\n"
    )
    checks = CheckProcesses(dict(os.environ, PYTHONPATH=str(tmp_path)), deadline_s=60.0)
    try:
        with pytest.raises(UnavailableError, match="has replied with 4,042,322,160 bytes"):
            await checks.run(Check.ALGORITHMS, request(SPACE), "search_space")
        assert checks.idle_pids == []
    finally:
        await checks.aclose()


async def test_requests_beyond_the_queue_are_refused(checks: CheckProcesses) -> None:
    runs = [
        asyncio.ensure_future(checks.run(Check.ALGORITHMS, request(SPACE), "search_space"))
        for _ in range(WAITING_LIMIT + 8)
    ]

    results = await asyncio.gather(*runs, return_exceptions=True)

    refused = [result for result in results if isinstance(result, ResourceExhaustedError)]
    assert 1 <= len(refused) <= 8
    assert sum(isinstance(result, dict) for result in results) == len(runs) - len(refused)


def hostile_spaces() -> dict[str, Any]:
    """Return spaces that cost their checker much time, each in its own way."""
    long = " + ".join(["x"] * 480) + " < -1"
    names = {f"p{number}": {"_type": "uniform", "_value": [0, 1]} for number in range(300)}
    return {
        "one long constraint that never holds": {**SPACE, "_constraints": [long]},
        "many constraints": {**SPACE, "_constraints": ["x + x + x + x < -1"] * 1000},
        "too many operations": {**SPACE, "_constraints": [long] * 1000},
        "chain of powers": {**SPACE, "_constraints": ["1**" * 660 + "1 < x - 2"]},
        "deep parentheses": {**SPACE, "_constraints": ["(" * 48 + "x" + ")" * 48 + " < -1"]},
        "unknown name beside many": {**names, "_constraints": ["q1 < 0"]},
        "list of everything": {
            **SPACE,
            "_constraints": [f"x in [{', '.join(str(n) for n in range(2, 400))}]"],
        },
        "nested choices": nested(9),
        "fine grid": {"x": {"_type": "quniform", "_value": [0, 1e300, 1e-300]}},
        "huge integers": {"x": {"_type": "randint", "_value": [0, 10**4000]}},
    }


def nested(depth: int) -> dict[str, Any]:
    space: dict[str, Any] = dict(SPACE)
    for level in range(depth):
        space = {
            "c": {"_type": "choice", "_value": [{"_name": f"n{level}", **space}, {"_name": "o"}]}
        }
    return space


@pytest.fixture
def no_garbage_collection() -> Iterator[None]:
    """Keep collections out of measured times: earlier tests of the process left many objects."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_garbage_collection")
def test_hostile_spaces_do_not_hold_the_loop() -> None:
    watchdog = LoopWatchdog()
    busy_s: list[float] = []

    async def attack() -> None:
        checks = CheckProcesses(dict(os.environ), deadline_s=20.0)
        payloads = {name: request(space) for name, space in hostile_spaces().items()}
        try:
            await checks.warm_up()
            for payload in payloads.values():
                before = watchdog.holds
                try:
                    await checks.run(Check.ALGORITHMS, payload, "search_space")
                except InvalidArgumentError as refused:
                    assert refused.field in {"tuner", "search_space"}  # noqa: PT017 - allowed, too
                if watchdog.holds > before and watchdog.last is not None:
                    busy_s.append(watchdog.last.cpu_s)
        finally:
            await checks.aclose()

    with asyncio.Runner(
        loop_factory=lambda: asyncio.SelectorEventLoop(watchdog.selector())
    ) as runner:
        runner.run(attack())

    # CPU time: a loaded machine may hold any process.
    assert [cpu_s for cpu_s in busy_s[1:] if cpu_s > _PLAIN_CPU_S] == []


async def test_configurations_and_fronts_are_checked_by_children(checks: CheckProcesses) -> None:
    space = {**SPACE, "_constraints": ["x <= 0.5"]}
    configurations = analysis_service_pb2.CheckConfigurationsRequest(
        search_space=to_value(space), configurations=[to_value({"x": 0.1}), to_value({"x": 0.9})]
    )
    front = analysis_service_pb2.FindParetoFrontRequest()
    front.objectives.add(metric="a")
    rng = random.Random(0)
    for number in range(50):
        front.outcomes.add(trial_id=str(number), metric=to_value({"a": rng.random() + 1}))
    front.outcomes.add(trial_id="best", metric=to_value({"a": 0.5}))

    broken = await checks.run(
        Check.CONFIGURATIONS, configurations.SerializeToString(), "search_space"
    )
    found = await checks.run(Check.FRONT, front.SerializeToString(), "outcomes")

    assert broken == {"broken": ["", "x <= 0.5"]}
    assert found == {"trial_ids": ["best"], "infeasible": 0, "incomplete": 0}
