"""The manager as a process: readiness, both APIs, and TERM."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import grpc.aio
import httpx
import pytest

from nni_proto.experiment.v1 import experiment_pb2, experiment_service_pb2_grpc
from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from nni_wire.metadata import bearer
from svc_common.rpc.client import open_channel
from svc_manager.event_log.reader import load
from tests.integration.manager.harness import (
    TIMEOUT_S,
    TOKEN,
    Site,
    manager_process,
    running,
    site_on,
)
from tests.support.servers import NatsServer


@pytest.fixture
async def site(own_nats: NatsServer, tmp_path: Path) -> AsyncIterator[Site]:
    async with site_on(own_nats, tmp_path) as made:
        yield made


@pytest.mark.claim("platform", 29)
async def test_term_stops_every_experiment_if_configured(site: Site) -> None:
    variables = {**site.variables, "NNI_STOP_ON_TERM": "1"}
    async with manager_process(variables) as process:
        experiment_id = await running(site, process)

        process.process.send_signal(signal.SIGTERM)
        code = await process.end()

    experiment = (await load(site.bus.events, experiment_id)).experiment
    assert code == 0
    assert experiment.state.name == "STOPPED"
    assert experiment.ended_at_ms > 0
    assert site.agent.live() == []
    assert {trial.state.name for trial in experiment.trials.values()} == {"SYS_CANCELED"}


async def test_term_leaves_experiments_to_the_next_manager(site: Site) -> None:
    variables = site.variables
    async with manager_process(variables) as process:
        experiment_id = await running(site, process)
        process.process.send_signal(signal.SIGTERM)
        assert await process.end() == 0
    for held in site.agent.live():
        await site.agent.exit(held)

    async with (
        manager_process(variables) as process,
        open_channel(process.facts["grpc"]) as channel,
    ):
        stub = experiment_service_pb2_grpc.ExperimentServiceStub(channel)
        answer = await stub.WaitExperiment(
            pb.WaitExperimentRequest(
                experiment_id=experiment_id, states=[experiment_pb2.EXPERIMENT_STATE_RUNNING]
            ),
            metadata=bearer(TOKEN),
            timeout=TIMEOUT_S,
        )
    assert answer.experiment.trial_counts["SUCCEEDED"] <= 2


async def test_calls_without_the_token_are_refused_and_health_is_open(site: Site) -> None:
    async with manager_process(site.variables) as process:
        async with open_channel(process.facts["grpc"]) as channel:
            stub = experiment_service_pb2_grpc.ExperimentServiceStub(channel)
            with pytest.raises(grpc.aio.AioRpcError) as refusal:
                await stub.ListExperiments(pb.ListExperimentsRequest(), timeout=TIMEOUT_S)
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            version = await client.get(f"{process.facts['http']}/api/v1/nni/version")

    assert refusal.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert version.json()["version"] == "1.2.3"
    assert version.json()["grpc"] == process.facts["grpc"]
