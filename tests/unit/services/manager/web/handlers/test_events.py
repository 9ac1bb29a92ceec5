"""Server-sent events: format, positions, resumption and the end of the listener."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import event_pb2, experiment_service_pb2
from nni_proto.trial.v1 import trial_pb2
from nni_wire.values import to_value
from svc_common.errors import InvalidArgumentError
from svc_manager.web.handlers.events import END_OF_LOG, event_text, parse_position
from tests.unit.services.manager.web.conftest import API, EXPERIMENT, Site, metric


def scheduled(number: int) -> event_pb2.Event:
    return event_pb2.Event(
        trial_scheduled=event_pb2.TrialScheduled(
            trial_id=f"tria{number}", sequence_id=number, parameters=to_value({"x": 0.5})
        )
    )


def data_of(text: str) -> dict[str, Any]:
    [line] = [line for line in text.splitlines() if line.startswith("data: ")]
    parsed = json.loads(line.removeprefix("data: "))
    assert isinstance(parsed, dict)
    return parsed


def message(event: event_pb2.Event) -> experiment_service_pb2.FollowEventsResponse:
    return experiment_service_pb2.FollowEventsResponse(
        position=event_pb2.EventPosition(sequence=12, index=3), event=event
    )


def test_event_has_its_position_as_id_and_its_kind_as_name() -> None:
    text = event_text(message(scheduled(4)))

    assert text.startswith("id: 12-3\nevent: trial_scheduled\ndata: ")
    assert text.endswith("\n\n")
    assert data_of(text)["trialId"] == "tria4"
    assert data_of(text)["parameters"] == {"x": 0.5}


def test_states_metrics_and_instants_have_the_format_of_other_routes() -> None:
    ended = event_pb2.TrialEnded(trial_id="a", state=trial_pb2.TRIAL_STATE_EARLY_STOPPED)
    ended.ended_at.FromMilliseconds(5)
    reported = event_pb2.MetricReported(
        trial_id="a", metric=metric(float("nan"), metric_pb2.METRIC_TYPE_FINAL)
    )

    end = data_of(event_text(message(event_pb2.Event(trial_ended=ended))))
    report = data_of(event_text(message(event_pb2.Event(metric_reported=reported))))

    assert (end["state"], end["endedAt"]) == ("EARLY_STOPPED", 5)
    assert report["metric"]["type"] == "FINAL"
    assert report["metric"]["value"] == "NaN"


def test_long_values_and_configurations_are_left_out() -> None:
    created = event_pb2.ExperimentCreated(experiment_id=EXPERIMENT, interpreter="/usr/bin/python")
    created.config.trial_command = "true"
    big = event_pb2.SearchSpaceChanged(search_space=to_value("x" * 10_000))

    assert "config" not in data_of(event_text(message(event_pb2.Event(experiment_created=created))))
    text = event_text(message(event_pb2.Event(search_space_changed=big)))
    assert data_of(text)["searchSpace"] is None


def test_positions_survive_a_round_trip() -> None:
    assert parse_position("12-3") == event_pb2.EventPosition(sequence=12, index=3)
    assert parse_position("latest") == END_OF_LOG


@pytest.mark.parametrize("text", ["12", "x-1", "1-", "-1-0", "1-2-3", "1" * 30 + "-0"])
def test_other_positions_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="after"):
        parse_position(text)


async def test_reconnected_stream_resumes_after_the_last_event(site: Site) -> None:
    for number in range(3):
        site.manager.append(EXPERIMENT, scheduled(number))

    answer = await site.anonymous.get(
        f"{API}/events?follow=false", headers={"Last-Event-ID": "10-0"}
    )

    assert answer.headers["content-type"].startswith("text/event-stream")
    ids = [line for line in answer.text.splitlines() if line.startswith("id: ")]
    assert ids == ["id: 11-0", "id: 12-0"]


async def test_events_of_an_unknown_experiment_are_a_plain_404(site: Site) -> None:
    answer = await site.anonymous.get(f"{API}/experiments/unknown0/events")

    assert answer.status_code == 404
