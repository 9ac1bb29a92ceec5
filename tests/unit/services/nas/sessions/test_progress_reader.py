"""Reader of the progress of explorations."""

from __future__ import annotations

from pathlib import Path

import pytest

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import config_pb2, event_pb2
from svc_common.errors import NotFoundError
from svc_common.messaging.memory import InMemoryBus
from svc_common.storage.large_values import LargeValues
from svc_common.storage.memory import InMemoryBlobStore
from svc_nas.sessions.progress_reader import ProgressReader
from tests.support.scripted_manager import (
    ScriptedManager,
    ended,
    experiment_ended,
    metric,
    named,
    scheduled,
    trial_of,
)

NAS = config_pb2.NasConfig(document=value_pb2.BlobRef(sha256="0" * 64), strategy="Random")


async def test_progress_is_that_of_the_whole_log(tmp_path: Path) -> None:
    bus = InMemoryBus()
    manager = ScriptedManager(bus, "exp", tmp_path)
    await manager.create({}, service="nas", nas=NAS)
    await manager.append(experiment_ended())
    reader = ProgressReader(bus.events, LargeValues(InMemoryBlobStore()))

    progress = await reader.read("exp")

    assert (progress.generation, progress.ended) == (1, True)


async def test_result_whose_blob_is_missing_does_not_hide_the_others(tmp_path: Path) -> None:
    bus = InMemoryBus()
    manager = ScriptedManager(bus, "exp", tmp_path)
    lost = metric(0, None)
    lost.metric_reported.metric.value.blob_value.sha256 = "0" * 64
    await manager.create({}, service="nas", nas=NAS)
    candidates = event_pb2.ParametersGenerated(
        parameters=[event_pb2.GeneratedParameters(parameter_id=one) for one in (0, 1)]
    )
    starts = [scheduled(trial_of(one), one, value_pb2.Value()) for one in (0, 1)]
    await manager.append(event_pb2.Event(parameters_generated=candidates))
    await manager.append(*starts, lost, metric(1, 0.5), ended(0), ended(1))
    reader = ProgressReader(bus.events, LargeValues(InMemoryBlobStore()))

    progress = await reader.read("exp")

    assert [(one.trial_id, one.metric) for one in progress.top(5)] == [(trial_of(1), 0.5)]


async def test_other_experiments_are_no_explorations(tmp_path: Path) -> None:
    bus = InMemoryBus()
    manager = ScriptedManager(bus, "exp", tmp_path)
    await manager.create({}, tuner=named("Random"))
    reader = ProgressReader(bus.events, LargeValues(InMemoryBlobStore()))

    for experiment_id in ("exp", "unknown"):
        with pytest.raises(NotFoundError, match=experiment_id):
            await reader.read(experiment_id)
