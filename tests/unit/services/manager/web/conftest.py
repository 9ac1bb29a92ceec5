"""Site with one experiment of three trials, served without sockets."""

from __future__ import annotations

import math
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import config_pb2, experiment_pb2
from nni_proto.trial.v1 import trial_pb2, trial_service_pb2
from nni_wire.values import to_value
from svc_common.telemetry.metrics import process_registry
from svc_manager.telemetry.metrics import Instruments
from svc_manager.web.dependencies import WebDependencies
from svc_manager.web.listeners.endpoints import EndpointContext
from svc_manager.web.listeners.site import create_site
from svc_manager.web.security import AccessPolicy
from svc_manager.web.tensorboards import TensorBoards
from tests.unit.services.manager.web.in_memory import (
    InMemoryAgents,
    InMemoryAnalyses,
    InMemoryExperiments,
    InMemoryManager,
    InMemoryTrials,
)

TOKEN = "0123456789abcdef"
EXPERIMENT = "exp00001"
SLEEPING = "import time; time.sleep(60)"
BASE = "http://127.0.0.1:8080"
API = "/api/v1/nni"


@dataclass(frozen=True, slots=True)
class Site:
    """A served site, its manager and its clients."""

    manager: InMemoryManager
    client: httpx.AsyncClient
    """Client with the token."""
    anonymous: httpx.AsyncClient
    """Client without credentials."""


def experiment(directory: Path) -> experiment_pb2.Experiment:
    made = experiment_pb2.Experiment(
        id=EXPERIMENT,
        state=experiment_pb2.EXPERIMENT_STATE_RUNNING,
        revision=1,
        next_sequence_id=3,
        directory=str(directory),
        port=8080,
        repeatable=True,
        config=config_pb2.ExperimentConfig(
            experiment_name="demo",
            trial_command="python3 trial.py",
            trial_code_directory="/code",
            trial_concurrency=2,
            max_trial_number=10,
            search_space=to_value({"x": {"_type": "uniform", "_value": [0, 1]}}),
            tuner=config_pb2.AlgorithmConfig(
                name="TPE",
                class_args=to_value({"optimize_mode": "minimize", "token": "hush-hush"}),
            ),
            training_services=[
                config_pb2.TrainingServiceConfig(
                    platform="local", options=to_value({"password": "hush-hush", "n": 1})
                )
            ],
        ),
    )
    made.config.max_experiment_duration.seconds = 3600
    made.started_at.FromMilliseconds(1_700_000_000_123)
    made.execution_time.seconds = 42
    return made


def trial(number: int, value: object, directory: Path) -> trial_pb2.Trial:
    made = trial_pb2.Trial(
        id=f"tria{number}",
        state=trial_pb2.TRIAL_STATE_SUCCEEDED,
        sequence_id=number,
        parameter_id=number,
        parameters=to_value({"x": number / 10, "nested": {"_name": "a", "units": 3}}),
        source=trial_pb2.PARAMETER_SOURCE_ALGORITHM,
        attempt=1,
        directory=str(directory),
        intermediate_count=1,
    )
    made.started_at.FromMilliseconds(1_700_000_001_000 + number)
    made.ended_at.FromMilliseconds(1_700_000_002_000 + number)
    made.final_metric.CopyFrom(metric(value, metric_pb2.METRIC_TYPE_FINAL))
    made.last_intermediate.CopyFrom(metric(0.25, metric_pb2.METRIC_TYPE_PERIODICAL))
    return made


def metric(value: object, kind: metric_pb2.MetricType.ValueType) -> metric_pb2.Metric:
    made = metric_pb2.Metric(type=kind, sequence=0, value=to_value(value))
    made.reported_at.FromMilliseconds(1_700_000_001_500)
    return made


@pytest.fixture
def manager(tmp_path: Path) -> InMemoryManager:
    made = InMemoryManager()
    made.put(experiment(tmp_path))
    values: list[object] = [0.5, {"default": 1, "loss": math.nan}, "many words"]
    for number, value in enumerate(values):
        directory = tmp_path / "trials" / f"tria{number}"
        directory.mkdir(parents=True, exist_ok=True)
        made.put_trial(EXPERIMENT, trial(number, value, directory))
    made.metrics[EXPERIMENT] = [
        trial_service_pb2.TrialMetric(trial_id=one.id, parameter_id=one.parameter_id, metric=report)
        for one in made.trials[EXPERIMENT].values()
        for report in (one.last_intermediate, one.final_metric)
    ]
    return made


def dependencies(manager: InMemoryManager) -> WebDependencies:
    return WebDependencies(
        experiments=InMemoryExperiments(manager),
        trials=InMemoryTrials(manager),
        analyses=InMemoryAnalyses(manager),
        agents=InMemoryAgents(),
        version="4.0.0.dev0",
        grpc_address="127.0.0.1:5000",
        tensorboards=TensorBoards([sys.executable, "-c", SLEEPING]),
        instruments=Instruments(process_registry("manager", "4.0.0.dev0")),
    )


@pytest.fixture
async def site(manager: InMemoryManager) -> AsyncIterator[Site]:
    async with serve(manager) as made:
        yield made


class serve:  # noqa: N801 - used like a function
    """Context manager that serves an in-memory manager without sockets."""

    def __init__(self, manager: InMemoryManager, bound: str = EXPERIMENT, prefix: str = "") -> None:
        self._manager = manager
        self._dependencies = dependencies(manager)
        app = create_site(
            EndpointContext(self._dependencies, AccessPolicy(TOKEN), _for_ever, bound), prefix
        )
        transport = httpx.ASGITransport(app)
        self._client = httpx.AsyncClient(
            transport=transport, base_url=BASE, headers={"Authorization": f"Bearer {TOKEN}"}
        )
        self._stranger = httpx.AsyncClient(transport=transport, base_url=BASE)

    async def __aenter__(self) -> Site:
        return Site(self._manager, self._client, self._stranger)

    async def __aexit__(self, *_error: object) -> None:
        await self._client.aclose()
        await self._stranger.aclose()
        await self._dependencies.tensorboards.stop_all()


async def _for_ever() -> None:
    import asyncio

    await asyncio.Event().wait()
