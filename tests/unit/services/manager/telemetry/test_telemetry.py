from svc_common.telemetry.metrics import Registry
from svc_manager.telemetry.metrics import Instruments
from svc_manager.telemetry.telemetry import Telemetry
from tests.unit.services.manager.building import EXPERIMENT_ID, Lab
from tests.unit.services.manager.telemetry.test_traces import Notebook


def test_events_are_counted_and_traced() -> None:
    lab, registry, tracer = Lab(), Registry(), Notebook()
    telemetry = Telemetry(Instruments(registry), tracer)
    trial = lab.running()
    telemetry.record_events(lab.experiment, lab.last, lab.now_ms)

    lab.finish(trial)
    telemetry.record_events(lab.experiment, lab.last, lab.now_ms)
    telemetry.record_decision(0.25)

    text = registry.render()
    assert 'nni_events_appended_total{kind="trial_ended"} 1' in text
    assert "nni_decision_seconds_count 1" in text
    assert [span.name for span in tracer.spans] == ["trial.queued", "trial"]


def test_without_a_tracer_tasks_carry_no_trace() -> None:
    telemetry = Telemetry()

    telemetry.record_events(Lab().experiment, [], 0)

    assert telemetry.traceparent(EXPERIMENT_ID, 0) == ""
