"""Manager processes that share the experiments of one bus by leases in a real Redis."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import grpc.aio
import pytest
from redis.asyncio import Redis
from redis.asyncio.client import Monitor

from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from nni_proto.trial.v1 import trial_service_pb2
from nni_wire.metadata import bearer
from svc_manager.adapters.redis_connection import LEASES_KEY
from svc_manager.event_log.reader import load
from tests.integration.manager.harness import (
    TIMEOUT_S,
    TOKEN,
    site_on,
)
from tests.integration.manager.sharing import TAKE_OVER_S, Client, Shared, until
from tests.support.servers import NatsServer
from tests.support.stores import redis_server


@pytest.fixture
async def shared(own_nats: NatsServer, tmp_path: Path) -> AsyncIterator[Shared]:
    with redis_server(tmp_path / "redis") as redis:
        async with site_on(own_nats, tmp_path) as site, AsyncExitStack() as stack:
            yield Shared(site, redis, stack)


async def test_any_manager_answers_for_every_experiment(shared: Shared) -> None:
    _, one = await shared.manager()
    _, two = await shared.manager()
    first = await shared.create(one)
    second = await shared.create(two)

    assert await two.state(first) == await one.state(first) != "UNAVAILABLE"
    assert await two.update(first, 3) == 3
    assert await one.update(second, 4) == 4

    async def both_list_both() -> bool:
        """Return whether each manager has heard of what the other one made."""
        return await one.listed() == await two.listed() == {first, second}

    await until(both_list_both)
    with pytest.raises(grpc.aio.AioRpcError) as unknown:
        await two.call(
            two.trials.GetTrial,
            trial_service_pb2.GetTrialRequest(experiment_id=first, trial_id="nope1"),
        )
    assert unknown.value.code() is grpc.StatusCode.NOT_FOUND
    assert "nni-error-bin" in dict(unknown.value.trailing_metadata() or ())


async def test_rest_is_answered_by_any_manager(shared: Shared) -> None:
    _, one = await shared.manager()
    _, two = await shared.manager()
    experiment_id = await shared.create(one)

    profile = await two.http.get(f"/experiments/{experiment_id}/experiment")
    changed = await two.http.put(
        f"/experiments/{experiment_id}/experiment",
        params={"update_type": "TRIAL_CONCURRENCY"},
        json={"params": {"trialConcurrency": 3}},
    )
    listed = await two.http.get("/experiments-info")
    missing = await two.http.get("/experiments/nothing1/experiment")
    async with two.http.stream("GET", f"/experiments/{experiment_id}/events") as events:
        lines = aiter(events.aiter_lines())
        first = [await anext(lines) for _ in range(3)]

    assert profile.json()["id"] == experiment_id
    assert changed.json()["params"]["trialConcurrency"] == 3
    assert [line["id"] for line in listed.json()] == [experiment_id]
    assert missing.status_code == 404
    assert first[0].startswith("retry:")
    assert any(line.startswith("id: ") for line in first)


async def test_experiments_of_a_killed_manager_go_on_elsewhere_within_five_seconds(
    shared: Shared,
) -> None:
    process, one = await shared.manager()
    _, two = await shared.manager()
    experiment_id = await shared.create(one)
    await shared.site.agent.holds(2)

    process.process.kill()
    took_s = await until(lambda: two.owns(experiment_id), TAKE_OVER_S)

    assert took_s < TAKE_OVER_S
    assert await two.update(experiment_id, 3) == 3
    await shared.site.agent.holds(3)


async def test_a_terminated_manager_releases_its_experiments_at_once(shared: Shared) -> None:
    process, one = await shared.manager()
    _, two = await shared.manager()
    experiment_id = await shared.create(one)
    await shared.site.agent.holds(2)

    async with Redis.from_url(shared.redis.url) as commands, commands.monitor() as monitor:
        process.process.send_signal(signal.SIGTERM)
        deletion = await deletion_of_lease(monitor, experiment_id)
    await until(lambda: two.owns(experiment_id))
    code = await process.end()

    assert code == 0
    assert experiment_id in deletion, "no lease had to expire"


async def deletion_of_lease(monitor: Monitor, experiment_id: str) -> str:
    """Return the command of a manager that deletes a lease.

    A release names the experiment; the reading of all leases, which deletes expired ones, does not.
    """
    call = ""
    async with asyncio.timeout(TIMEOUT_S):
        async for command in monitor.listen():
            text = str(command["command"])
            if command["client_type"] != "lua":
                call = text
            elif text.startswith(f"HDEL {LEASES_KEY} {experiment_id}"):
                return call
    raise AssertionError("redis-server has closed the connection")


async def test_experiments_of_a_dead_manager_spread_over_the_living(shared: Shared) -> None:
    process, one = await shared.manager()
    _, two = await shared.manager()
    _, three = await shared.manager()
    made = {await shared.create(one) for _ in range(20)}

    process.process.kill()

    async def all_taken() -> bool:
        shares = [await client.owned() for client in (two, three)]
        return made <= set().union(*shares)

    await until(all_taken)
    counts = [len(await client.owned()) for client in (two, three)]
    # Of 20 fair choices, one manager gets none or all with probability 2 / 2**20.
    assert sum(counts) == 20
    assert min(counts) >= 1


async def test_a_manager_that_was_frozen_steps_back_and_harms_nothing(shared: Shared) -> None:
    process, one = await shared.manager()
    _, two = await shared.manager()
    experiment_id = await shared.create(one)
    held = await shared.site.agent.holds(2)

    process.process.send_signal(signal.SIGSTOP)
    await until(lambda: two.owns(experiment_id))
    await two.update(experiment_id, 3)
    for trial in held:
        await shared.site.agent.result(trial, 0.5)
        await shared.site.agent.exit(trial)
    await shared.site.agent.holds(3)
    process.process.send_signal(signal.SIGCONT)
    await until(lambda: stepped_back(one, experiment_id))

    assert await one.update(experiment_id, 4) == 4, "passed on to the new owner"
    await shared.site.agent.holds(4)
    experiment = (await load(shared.site.bus.events, experiment_id)).experiment
    assert experiment.counts.total() == len(experiment.trials)
    assert sorted(t.sequence_id for t in experiment.trials.values()) == list(
        range(len(experiment.trials))
    )
    assert [trial.final is not None for trial in experiment.trials.values()][:2] == [True, True]


async def stepped_back(client: Client, experiment_id: str) -> bool:
    return not await client.owns(experiment_id)


async def test_a_creation_that_is_repeated_elsewhere_is_the_same_experiment(
    shared: Shared,
) -> None:
    _, one = await shared.manager()
    _, two = await shared.manager()

    first = await shared.create(one, "creation 1")
    again = await shared.create(two, "creation 1")
    both = await asyncio.gather(
        *(shared.create(client, "creation 2") for client in (one, two)), return_exceptions=True
    )

    assert first == again
    made = {one for one in both if isinstance(one, str)}
    assert len(made) == 1
    assert len(await two.listed()) == 2


async def test_followers_at_another_manager_see_everything(shared: Shared) -> None:
    _, one = await shared.manager()
    _, two = await shared.manager()
    experiment_id = await shared.create(one)
    await shared.site.agent.holds(2)

    stream = two.experiments.FollowEvents(
        pb.FollowEventsRequest(experiment_id=experiment_id, follow=True), metadata=bearer(TOKEN)
    )
    kinds = []
    async with asyncio.timeout(TIMEOUT_S):
        async for item in stream:
            kinds.append(item.event.WhichOneof("kind"))
            if kinds.count("trial_started") == 2:
                break
    stream.cancel()

    assert kinds[0] == "experiment_created"


async def test_a_store_of_leases_that_loses_everything_costs_nothing(shared: Shared) -> None:
    _, one = await shared.manager()
    _, two = await shared.manager()
    first, second = await shared.create(one), await shared.create(two)
    assert await two.update(first, 2) == await one.update(second, 2) == 2
    before = [await client.owned() for client in (one, two)]

    await asyncio.to_thread(shared.redis.kill)
    assert await one.update(first, 3) == 3, "owners go on without it"
    await asyncio.to_thread(shared.redis.start)
    await until(lambda: passes_on(two, first))

    assert [await client.owned() for client in (one, two)] == before
    assert await one.update(second, 5) == 5


async def passes_on(client: Client, experiment_id: str) -> bool:
    return await client.state(experiment_id) not in {"UNAVAILABLE", "ABORTED"}


async def test_a_stopped_experiment_is_resumed_and_deleted_anywhere(shared: Shared) -> None:
    _, one = await shared.manager()
    _, two = await shared.manager()
    experiment_id = await shared.create(one)
    await shared.site.agent.holds(2)

    await two.call(
        two.experiments.StopExperiment, pb.StopExperimentRequest(experiment_id=experiment_id)
    )
    await two.call(
        two.experiments.ResumeExperiment, pb.ResumeExperimentRequest(experiment_id=experiment_id)
    )
    await one.call(
        one.experiments.StopExperiment, pb.StopExperimentRequest(experiment_id=experiment_id)
    )
    await two.call(
        two.experiments.DeleteExperiment,
        pb.DeleteExperimentRequest(experiment_id=experiment_id, request_id="d1"),
    )

    assert await one.listed() == await two.listed() == set()
    assert await one.state(experiment_id) == await two.state(experiment_id) == "NOT_FOUND"
