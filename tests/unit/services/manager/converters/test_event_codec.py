"""Every event has a codec, and logs of older versions are read."""

import dataclasses
import typing

import pytest

from nni_proto.experiment.v1 import event_pb2
from svc_manager.converters.event_codec import CODECS, event_from, write_event
from svc_manager.domain import events
from svc_manager.domain.experiment import ExperimentState

LIMITS = [field.name for field in dataclasses.fields(events.BudgetChanged)]


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
        events.ExperimentStateChanged(None, ExperimentState.INITIALIZED, "created", 0)
    )
    assert event_from(event_pb2.Event(experiment_state_changed=changed)) == (
        events.ExperimentStateChanged(ExperimentState.RUNNING, ExperimentState.DONE, "", 0)
    )
    assert event_from(event_pb2.Event(experiment_ended=ended)) == (
        events.ExperimentEnded(ExperimentState.STOPPED, "stopped by the user")
    )


def test_states_are_written_as_enums() -> None:
    message = event_pb2.Event()

    write_event(
        message,
        events.ExperimentStateChanged(None, ExperimentState.INITIALIZED, "created", 5),
    )

    assert int(message.experiment_state_changed.new_state) == int(ExperimentState.INITIALIZED)
    assert int(message.experiment_state_changed.old_state) == 0
    assert message.experiment_state_changed.execution_time.ToMilliseconds() == 5


def test_readers_of_older_versions_find_the_names_of_states() -> None:
    changed, ended = event_pb2.Event(), event_pb2.Event()

    write_event(
        changed,
        events.ExperimentStateChanged(ExperimentState.RUNNING, ExperimentState.DONE, "", 0),
    )
    write_event(ended, events.ExperimentEnded(ExperimentState.STOPPED, "stopped by the user"))

    assert changed.experiment_state_changed.from_state == "RUNNING"
    assert changed.experiment_state_changed.to_state == "DONE"
    assert ended.experiment_ended.state == "STOPPED"
