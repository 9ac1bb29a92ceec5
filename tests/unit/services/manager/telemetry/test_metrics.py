"""Metrics of the manager."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from nni_proto.experiment.v1 import experiment_pb2
from svc_common.experiment_events.causes import LossCause, LossReason
from svc_common.messaging.memory import InMemoryBus
from svc_common.telemetry.metrics import Registry
from svc_manager.domain import inputs
from svc_manager.domain.reports import Lost
from svc_manager.telemetry.metrics import Instruments
from tests.unit.services.manager.building import Lab
from tests.unit.services.manager.world import world_on

Figures = dict[tuple[str, tuple[str, ...]], float]


def figures(registry: Registry) -> Figures:
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(registry.render())
        for sample in family.samples
    }


@pytest.fixture
def seen() -> tuple[Lab, Registry]:
    """A trial that succeeded after a lost attempt, and what was counted of it."""
    lab, registry = Lab(), Registry()
    instruments = Instruments(registry)

    def count() -> None:
        instruments.record_events(lab.experiment, lab.last, lab.now_ms)

    trial = lab.waiting()
    count()
    lab.now_ms += 500
    lab.running()
    count()
    lab.report(trial, 1, Lost(LossReason(LossCause.AGENT_STOPPED)))
    count()
    lab.running(claim="again")
    count()
    lab.now_ms = 9_250
    lab.finish(trial)
    count()
    return lab, registry


def test_facts_are_counted_by_kind(seen: tuple[Lab, Registry]) -> None:
    found = figures(seen[1])

    assert found["nni_events_appended_total", ("trial_started",)] == 2
    assert found["nni_events_appended_total", ("trial_lost",)] == 1
    assert found["nni_attempts_lost_total", ("agent",)] == 1


def test_latencies_of_trials_are_observed_in_seconds(seen: tuple[Lab, Registry]) -> None:
    found = figures(seen[1])

    assert found["nni_trial_start_seconds_count", ()] == 1
    assert found["nni_trial_start_seconds_sum", ()] == pytest.approx(0.5)
    assert found["nni_trial_duration_seconds_sum", ("SUCCEEDED",)] == pytest.approx(7.5)
    assert found["nni_report_lag_seconds_sum", ()] == pytest.approx(0.25)


async def test_what_there_is_now_is_looked_up(tmp_path: Path) -> None:
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as world:
        experiment_id = await world.create()
        await world.wait_for_state(experiment_id, experiment_pb2.EXPERIMENT_STATE_DONE)

        found = figures(world.manager.telemetry.instruments.registry)

    assert found["nni_experiments", ("DONE",)] == 1
    assert found["nni_trials_live", ("RUNNING",)] == 0
    assert found["nni_agents", ("local",)] == 1
    assert found["nni_decision_seconds_count", ()] >= 5
    assert found["nni_events_appended_total", ("trial_ended",)] == 5


def test_a_round_that_decides_is_timed() -> None:
    registry = Registry()
    Instruments(registry).record_decision(0.002)

    assert figures(registry)["nni_decision_seconds_bucket", ("0.0025",)] == 1


def test_a_kill_is_counted_as_what_it_ends_in() -> None:
    lab, registry = Lab(), Registry()
    trial = lab.waiting()
    lab.command(inputs.KillTrial(trial.id))
    Instruments(registry).record_events(lab.experiment, lab.last, lab.now_ms)

    assert figures(registry)["nni_trial_duration_seconds_count", ("USER_CANCELED",)] == 1
