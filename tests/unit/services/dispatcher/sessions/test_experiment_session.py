"""Sessions through crashes, hangs and restarts: in-memory bus and in-process hosts."""

import asyncio
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import event_pb2
from svc_common import algorithm_reports
from svc_common.errors import FailedPreconditionError, OutOfRoomError, UnavailableError
from svc_dispatcher.domain import commands as c
from tests.support.scripted_manager import ScriptedManager, experiment_ended, named, requested
from tests.unit.services.dispatcher.sessions.conftest import LIMIT_S, SPACE, Bench, turns


async def test_hanging_host_is_replaced(bench: Bench) -> None:
    hung: list[c.Command] = []

    def trouble(command: c.Command) -> str:
        if not isinstance(command, c.Generate) or hung:
            return ""
        hung.append(command)
        return "hang"

    bench.launcher.trouble = trouble
    await bench.manager.create(SPACE, tuner=named("Random"))
    await bench.manager.received("algorithm_started")
    request = await bench.manager.ask(1)
    await turns(lambda: hung and bench.clock.sleepers)

    # The watch began before the request: it looks once too early.
    bench.clock.advance(LIMIT_S)
    await turns(lambda: bench.clock.sleepers)
    bench.clock.advance(LIMIT_S)
    answer = await bench.manager.answer(request)

    assert len(answer.parameters) == 1
    assert bench.launcher.launched == 2


async def test_report_that_has_to_be_sent_again_is_not_overtaken(bench: Bench) -> None:
    # Two requests are answered while the first answer is still on its way to the bus.
    await bench.manager.create(SPACE, tuner=named("Random"))
    await bench.manager.received("algorithm_started")
    publish, arrived = bench.bus.inbox.publish, asyncio.Event()
    on_way: list[str] = []

    async def slow_once(experiment_id: str, source: str, payload: bytes, *, message_id: str) -> int:
        on_way.append(message_id)
        if len(on_way) == 1:
            await arrived.wait()
        return await publish(experiment_id, source, payload, message_id=message_id)

    bench.bus.inbox.publish = slow_once  # type: ignore[method-assign] # the one slow message
    handled: list[c.Command] = []

    def note(command: c.Command) -> str:
        handled.append(command)
        return ""

    bench.launcher.trouble = note
    requests = [await bench.manager.ask(1), await bench.manager.ask(1)]
    await turns(lambda: on_way and len(handled) == 2)
    for _ in range(20):  # the second answer has all the time it needs to overtake
        await asyncio.sleep(0)
    arrived.set()
    await bench.manager.answer(requests[1])

    answered = [message.request_id for message in bench.manager.all("parameters_generated")]
    assert answered == requests


async def test_reports_wait_for_room_on_the_bus(bench: Bench) -> None:
    await bench.manager.create(SPACE, tuner=named("Random"))
    await bench.manager.received("algorithm_started")
    publish = bench.bus.inbox.publish
    tries: list[str] = []

    async def full(experiment_id: str, source: str, payload: bytes, *, message_id: str) -> int:
        tries.append(message_id)
        if len(tries) < 8:
            raise OutOfRoomError("the bus is out of room")
        return await publish(experiment_id, source, payload, message_id=message_id)

    bench.bus.inbox.publish = full  # type: ignore[method-assign] # a full disk
    requests = [await bench.manager.ask(1), await bench.manager.ask(1)]
    answering = asyncio.ensure_future(bench.manager.answer(requests[1]))
    while not answering.done():
        bench.clock.advance(1.0)
        await asyncio.sleep(0)

    answered = [message.request_id for message in bench.manager.all("parameters_generated")]
    assert answered == requests
    assert bench.manager.all("algorithm_gave_up") == []
    assert len(set(tries[:8])) == 1
    assert bench.launcher.launched == 1


async def test_parameters_wait_for_room_in_the_blob_store(bench: Bench) -> None:
    big = {"x": {"_type": "choice", "_value": ["y" * 300_000]}}
    await bench.manager.create(big, tuner=named("Random"))
    await bench.manager.received("algorithm_started")
    put, tries = bench.blobs.put, 0

    async def full(data: bytes) -> str:
        nonlocal tries
        tries += 1
        if tries < 4:
            raise OutOfRoomError("no space to store the blob")
        return await put(data)

    bench.blobs.put = full  # type: ignore[method-assign] # a full disk
    request = await bench.manager.ask(1)
    answering = asyncio.ensure_future(bench.manager.answer(request))
    while not answering.done():
        bench.clock.advance(1.0)
        await asyncio.sleep(0)

    assert tries == 4
    assert bench.manager.all("algorithm_gave_up") == []
    (waits,) = bench.manager.all("algorithm_waits")
    assert (waits.generation, waits.reason) == (1, "no space to store the blob")


async def test_algorithm_whose_parameters_have_too_many_parts_is_given_up(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(algorithm_reports, "PARTS_LIMIT", 300)
    space = {"x": {"_type": "choice", "_value": [[1] * 400]}}
    await bench.manager.create(space, tuner=named("Random"))

    await bench.manager.ask(1)
    gave_up = await bench.manager.received("algorithm_gave_up")

    assert "the algorithm must have at most 300 parts" in gave_up.reason
    assert bench.manager.all("parameters_generated") == []


async def test_host_that_dies_thrice_on_one_event_is_given_up(bench: Bench) -> None:
    bench.launcher.trouble = lambda command: "die" if isinstance(command, c.Generate) else ""
    await bench.manager.create(SPACE, tuner=named("Random"))
    await bench.manager.ask(1)
    await turns(lambda: bench.clock.sleepers >= 1)
    giving_up = asyncio.ensure_future(bench.manager.received("algorithm_gave_up"))

    while not giving_up.done():
        bench.clock.advance(1.0)  # the pauses between later attempts
        await asyncio.sleep(0)

    assert giving_up.result().reason == "died on demand; it failed 3 times on the same event"
    assert bench.launcher.launched == 3


async def test_algorithm_that_cannot_be_built_is_given_up_although_its_host_ends_at_once(
    bench: Bench,
) -> None:
    await bench.manager.create(SPACE, tuner=named("Random", optimize_mode="sideways"))

    gave_up = await bench.manager.received("algorithm_gave_up")

    assert "optimize_mode" in gave_up.reason
    assert bench.launcher.launched == 1


async def test_given_up_algorithm_is_not_started_again_before_a_resume(bench: Bench) -> None:
    bench.launcher.failure = FailedPreconditionError("no such interpreter; install it")
    await bench.manager.create(SPACE, tuner=named("Random"))
    gave_up = await bench.manager.received("algorithm_gave_up")
    await bench.manager.ask(1)

    await bench.manager.append(experiment_ended())
    await bench.manager.append(requested(2))
    started = await bench.manager.received("algorithm_started")

    assert gave_up.reason == "no such interpreter; install it"
    assert started.generation == 2
    assert bench.launcher.launched == 2


async def test_server_that_is_away_is_tried_again(bench: Bench) -> None:
    bench.launcher.failure = UnavailableError("the server is away")

    await bench.manager.create(SPACE, tuner=named("Random"))
    await bench.manager.received("algorithm_started")

    assert bench.launcher.launched == 2


async def test_experiments_that_ended_before_the_start_get_no_host(bench: Bench) -> None:
    await bench.stop()
    await bench.manager.create(SPACE, tuner=named("Random"))
    await bench.manager.append(experiment_ended())
    bench.start()

    other = ScriptedManager(bench.bus, "other", bench.manager.root)
    reading = asyncio.ensure_future(other.read_inbox())
    await other.create(SPACE, tuner=named("Random"))
    await other.received("algorithm_started")
    reading.cancel()

    assert bench.launcher.launched == 1


async def test_large_search_space_is_fetched_from_the_byte_store(bench: Bench) -> None:
    key = await bench.blobs.put(json.dumps(SPACE).encode())
    value = value_pb2.Value(blob_value=value_pb2.BlobRef(sha256=key.removeprefix("sha256/")))

    await bench.manager.create(value, tuner=named("Random"))
    ((_, parameters),) = await bench.manager.generate(1)

    assert parameters.keys() == SPACE.keys()


async def test_idle_host_is_ended_and_comes_back_when_it_is_needed(bench: Bench) -> None:
    await bench.manager.create(SPACE, tuner=named("Random"))
    started = await bench.manager.received("algorithm_started")
    await bench.manager.append(event_pb2.Event(algorithm_started=started))
    ((parameter_id, first),) = await bench.manager.generate(1)
    await bench.manager.finish(parameter_id, 1.0)

    await pass_time_until(bench, lambda: bench.launcher.closed == 1)
    ((_, second),) = await bench.manager.generate(1)

    assert bench.launcher.launched == 2
    assert first != second
    assert bench.manager.all("algorithm_diverged") == []


async def test_idle_experiment_gets_no_host_from_a_restarted_dispatcher(bench: Bench) -> None:
    await bench.manager.create(SPACE, tuner=named("Random"))
    started = await bench.manager.received("algorithm_started")
    await bench.manager.append(event_pb2.Event(algorithm_started=started))
    await bench.stop()

    bench.start()
    other = ScriptedManager(bench.bus, "other", bench.manager.root)
    reading = asyncio.ensure_future(other.read_inbox())
    await other.create(SPACE, tuner=named("Random"))
    await other.received("algorithm_started")
    reading.cancel()

    assert bench.launcher.launched == 2  # one for each experiment, none for the restart


async def pass_time_until(bench: Bench, condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            bench.clock.advance(1.0)
            await asyncio.sleep(0)


async def run_with_kills(bench: Bench, seed: int, kills: int, trials: int = 30) -> list[Any]:
    """Run trials while hosts die before random commands and the dispatcher is restarted."""
    rng = random.Random(seed)
    deaths = [kills]

    def trouble(command: c.Command) -> str:
        del command
        if deaths[0] and rng.random() < 0.15:
            deaths[0] -= 1
            return "die"
        return ""

    bench.launcher.trouble = trouble
    await bench.manager.create(SPACE, tuner=named("TPE", optimize_mode="minimize"))
    suggested = []
    for _ in range(trials):
        generating = asyncio.ensure_future(bench.manager.generate(1))
        while not generating.done():
            bench.clock.advance(0.5)
            await asyncio.sleep(0)
        ((parameter_id, parameters),) = generating.result()
        suggested.append(parameters)
        await bench.manager.finish(parameter_id, parameters["x"])
        if deaths[0] and rng.random() < 0.3:
            await bench.stop()
            bench.start()
    return suggested


@pytest.mark.parametrize("checkpoints", [False, True])
@pytest.mark.parametrize("seed", range(6))
async def test_kills_at_any_moment_change_no_suggestion(
    tmp_path: Path, seed: int, checkpoints: bool
) -> None:
    runs = []
    for kills in (0, 12):
        bench = Bench(tmp_path / str(kills))
        bench.launcher.checkpoints = checkpoints and kills > 0
        bench.start()
        runs.append(await run_with_kills(bench, seed, kills))
        assert bench.manager.all("algorithm_diverged") == []
        assert bench.manager.all("algorithm_gave_up") == []
        assert bench.launcher.launched > kills
        await bench.aclose()

    assert (tmp_path / "12" / "exp" / "checkpoint" / "algorithm.json").exists() == checkpoints
    assert runs[0] == runs[1]
