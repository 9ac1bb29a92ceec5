import pytest

from nni.nas.execution.trial_platform import (
    CandidateAdded,
    CandidateEnded,
    CandidateLost,
    CandidateMetric,
    CandidateScheduled,
    PlatformClosed,
    PlatformEvent,
    PlatformLimits,
    PlatformOpened,
)
from nni.nas.experiment.trial_log import TrialLog, parameters_in
from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import event_pb2, experiment_pb2
from nni_proto.trial.v1 import trial_pb2
from nni_wire.values import to_value


def added(key: str = "k-0", parameter_id: int = 7) -> event_pb2.Event:
    event = event_pb2.Event()
    event.custom_trial_added.request_id = key
    event.custom_trial_added.parameter_id = parameter_id
    event.custom_trial_added.parameters.CopyFrom(to_value({"sample": {"a": 1}}))
    return event


def scheduled(trial_id: str = "aBcDe", parameter_id: int = 7) -> event_pb2.Event:
    message = event_pb2.TrialScheduled(trial_id=trial_id, parameter_id=parameter_id)
    return event_pb2.Event(trial_scheduled=message)


def metric(kind: metric_pb2.MetricType.ValueType, trial_id: str = "aBcDe") -> event_pb2.Event:
    message = event_pb2.MetricReported(trial_id=trial_id)
    message.metric.type = kind
    message.metric.value.CopyFrom(to_value(0.5))
    return event_pb2.Event(metric_reported=message)


def ended(state: trial_pb2.TrialState.ValueType, trial_id: str = "aBcDe") -> event_pb2.Event:
    return event_pb2.Event(trial_ended=event_pb2.TrialEnded(trial_id=trial_id, state=state))


def changed(state: experiment_pb2.ExperimentState.ValueType) -> event_pb2.Event:
    message = event_pb2.ExperimentStateChanged(new_state=state)
    return event_pb2.Event(experiment_state_changed=message)


def read_all(*events: event_pb2.Event) -> list[PlatformEvent | None]:
    log = TrialLog()
    return [log.read(event) for event in events]


def test_trial_is_followed_from_its_addition_to_its_end() -> None:
    found = read_all(
        added(),
        scheduled(),
        metric(metric_pb2.METRIC_TYPE_PERIODICAL),
        metric(metric_pb2.METRIC_TYPE_FINAL),
        ended(trial_pb2.TRIAL_STATE_SUCCEEDED),
    )

    assert found == [
        CandidateAdded("k-0", {"sample": {"a": 1}}),
        CandidateScheduled("k-0", "aBcDe"),
        CandidateMetric("k-0", 0.5, is_final=False),
        CandidateMetric("k-0", 0.5, is_final=True),
        CandidateEnded("k-0", succeeded=True),
    ]


def test_lost_attempt_names_the_model_of_its_trial() -> None:
    lost = event_pb2.Event(trial_lost=event_pb2.TrialLost(trial_id="aBcDe"))

    assert read_all(added(), scheduled(), lost)[-1] == CandidateLost("k-0")


def test_trial_without_a_key_is_left_out() -> None:
    lost = event_pb2.Event(trial_lost=event_pb2.TrialLost(trial_id="other"))

    found = read_all(
        scheduled("other", 3),
        metric(metric_pb2.METRIC_TYPE_FINAL, "other"),
        lost,
        ended(trial_pb2.TRIAL_STATE_SUCCEEDED, "other"),
    )

    assert found == [None] * 4


@pytest.mark.parametrize(
    "state", [trial_pb2.TRIAL_STATE_FAILED, trial_pb2.TRIAL_STATE_USER_CANCELED]
)
def test_trial_that_did_not_succeed_has_failed(state: trial_pb2.TrialState.ValueType) -> None:
    assert read_all(added(), scheduled(), ended(state))[-1] == CandidateEnded("k-0", False)


def test_states_of_the_experiment_close_and_open_the_platform() -> None:
    assert read_all(
        changed(experiment_pb2.EXPERIMENT_STATE_RUNNING),
        changed(experiment_pb2.EXPERIMENT_STATE_NO_MORE_TRIAL),
        changed(experiment_pb2.EXPERIMENT_STATE_DONE),
        changed(experiment_pb2.EXPERIMENT_STATE_STOPPING),
    ) == [
        PlatformOpened(),
        PlatformClosed("NO_MORE_TRIAL", is_final=False),
        PlatformClosed("DONE", is_final=True),
        None,
    ]


def test_limits_that_were_not_changed_are_none() -> None:
    event = event_pb2.Event(budget_changed=event_pb2.BudgetChanged(max_trial_number=9))

    assert read_all(event) == [PlatformLimits(max_trial_number=9, concurrency=None)]


def test_parameters_that_are_no_map_are_none() -> None:
    assert parameters_in(to_value([1, 2])) == {}
