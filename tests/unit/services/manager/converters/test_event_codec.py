"""Every event has a codec, and logs of older versions are read."""

import dataclasses
import typing

import pytest

from nni_proto.experiment.v1 import event_pb2
from nni_proto.trial.v1 import trial_pb2
from svc_common.experiment_events.causes import (
    EndCause,
    EndReason,
    ExperimentCause,
    ExperimentReason,
    IgnoreCause,
    LossCause,
    LossReason,
    StopCause,
    StopReason,
    WaitCause,
    WaitReason,
)
from svc_manager.converters.event_codec import CODECS, event_from, write_event
from svc_manager.domain import events
from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.trial import TrialState
from tests.unit.services.manager.building import change

LIMITS = [field.name for field in dataclasses.fields(events.BudgetChanged)]
STOPPED_BY_USER = ExperimentReason(ExperimentCause.STOPPED_BY_USER)


def test_every_event_has_the_codec_of_a_kind_of_its_own() -> None:
    kinds = [codec.kind for codec in CODECS.values()]

    assert set(CODECS) == set(typing.get_args(events.Event))
    assert set(kinds) == set(event_pb2.Event.DESCRIPTOR.fields_by_name)
    assert len(set(kinds)) == len(kinds)


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (events.ListenerClosed(), "listener_closed"),
        (events.BudgetChanged(None, None, None), "budget_changed"),
    ],
)
def test_event_without_content_keeps_its_kind(event: events.Event, kind: str) -> None:
    message = event_pb2.Event()

    write_event(message, event)

    assert message.WhichOneof("kind") == kind
    assert event_from(event_pb2.Event.FromString(message.SerializeToString())) == event


@pytest.mark.parametrize(
    "limit", [field.name for field in dataclasses.fields(events.BudgetChanged)]
)
def test_limit_of_zero_differs_from_an_unset_one(limit: str) -> None:
    event = dataclasses.replace(events.BudgetChanged(None, None, None), **{limit: 0})
    message = event_pb2.Event()

    write_event(message, event)

    assert event_from(event_pb2.Event.FromString(message.SerializeToString())) == event


def test_unset_limits_stay_unset() -> None:
    message = event_pb2.Event()

    write_event(message, events.BudgetChanged(None, 7, None))

    assert message.budget_changed.max_trial_number == 7
    assert not message.budget_changed.HasField("trial_concurrency")
    assert event_from(message) == events.BudgetChanged(None, 7, None)


def test_names_of_states_in_logs_of_older_versions_are_read() -> None:
    created = event_pb2.ExperimentStateChanged(to_state="INITIALIZED", reason="created")
    changed = event_pb2.ExperimentStateChanged(from_state="RUNNING", to_state="DONE")
    ended = event_pb2.ExperimentEnded(state="STOPPED", reason="stopped by the user")

    assert event_from(event_pb2.Event(experiment_state_changed=created)) == (
        change(None, ExperimentState.INITIALIZED, ExperimentCause.CREATED)
    )
    assert event_from(event_pb2.Event(experiment_state_changed=changed)) == (
        change(ExperimentState.RUNNING, ExperimentState.DONE)
    )
    assert event_from(event_pb2.Event(experiment_ended=ended)) == (
        events.ExperimentEnded(ExperimentState.STOPPED, STOPPED_BY_USER)
    )


def test_states_are_written_as_enums() -> None:
    message = event_pb2.Event()

    write_event(
        message,
        dataclasses.replace(change(None, ExperimentState.INITIALIZED), execution_time_ms=5),
    )

    assert int(message.experiment_state_changed.new_state) == int(ExperimentState.INITIALIZED)
    assert int(message.experiment_state_changed.old_state) == 0
    assert message.experiment_state_changed.execution_time.ToMilliseconds() == 5


def test_readers_of_older_versions_find_the_names_of_states() -> None:
    changed, ended = event_pb2.Event(), event_pb2.Event()

    write_event(
        changed,
        change(ExperimentState.RUNNING, ExperimentState.DONE),
    )
    write_event(ended, events.ExperimentEnded(ExperimentState.STOPPED, STOPPED_BY_USER))

    assert changed.experiment_state_changed.from_state == "RUNNING"
    assert changed.experiment_state_changed.to_state == "DONE"
    assert ended.experiment_ended.state == "STOPPED"


def test_texts_of_causes_in_logs_of_older_versions_are_read() -> None:
    ended = event_pb2.TrialEnded(trial_id="t", attempt=1, reason="exit code 3: boom", exit_code=3)
    ended.state = trial_pb2.TRIAL_STATE_FAILED
    lost = event_pb2.TrialLost(trial_id="t", attempt=1, reason="its agent was stopped")
    stop = event_pb2.TrialStopRequested(trial_id="t", reason="too slow")
    stop.end_state = trial_pb2.TRIAL_STATE_EARLY_STOPPED
    waits = event_pb2.TrialWaits(trial_id="t", attempt=1, reason="waiting for its code")
    ignored = event_pb2.ReportIgnored(trial_id="t", attempt=1, reason="the first final result")

    assert event_from(event_pb2.Event(trial_ended=ended)) == events.TrialEnded(
        "t",
        1,
        TrialState.FAILED,
        3,
        0,
        EndReason(EndCause.EXIT_CODE, exit_code=3, stderr_tail="boom"),
        0,
    )
    assert event_from(event_pb2.Event(trial_lost=lost)) == events.TrialLost(
        "t", 1, LossReason(LossCause.AGENT_STOPPED), command_failed=False
    )
    assert event_from(event_pb2.Event(trial_stop_requested=stop)) == events.TrialStopRequested(
        "t", TrialState.EARLY_STOPPED, StopReason(StopCause.ASSESSOR, "too slow")
    )
    assert event_from(event_pb2.Event(trial_waits=waits)) == events.TrialWaits(
        "t", 1, "", "", WaitReason(WaitCause.BLOB, object="its code"), 0
    )
    assert event_from(event_pb2.Event(report_ignored=ignored)) == events.ReportIgnored(
        "t", 1, 0, IgnoreCause.FINAL_COUNTED
    )
