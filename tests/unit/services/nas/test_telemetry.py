"""Metrics of the NAS service."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from svc_common.telemetry.metrics import Registry
from svc_nas.domain.reports import Candidate, CandidatesGenerated, GaveUp, Started
from svc_nas.telemetry import Telemetry


def metrics(registry: Registry) -> dict[str, float]:
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(registry.render())
        for sample in family.samples
    }


def test_candidates_processes_and_failures_are_counted() -> None:
    registry = Registry()
    telemetry = Telemetry(registry)

    telemetry.report_sent(Started(1))
    telemetry.report_sent(
        CandidatesGenerated("1-0", ((0, Candidate("a", {})), (1, Candidate("b", {}))))
    )
    telemetry.process_started()
    telemetry.process_ended(clean=False)
    telemetry.process_ended(clean=True)
    telemetry.report_sent(GaveUp(1, "no module"))

    found = metrics(registry)
    assert found["nni_nas_candidates_total"] == 2
    assert found["nni_nas_strategy_processes_total"] == 1
    assert found["nni_nas_strategy_crashes_total"] == 1
    assert found["nni_nas_failures_total"] == 1
