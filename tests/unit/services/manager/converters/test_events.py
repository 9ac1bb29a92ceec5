"""Round trips of all events through the log."""

import typing

import pytest

from nni_proto.experiment.v1 import config_pb2, event_pb2
from svc_manager.converters.creation import created_event
from svc_manager.converters.event_codec import event_from, write_event
from svc_manager.converters.events import (
    Stamp,
    batch_from_bytes,
    batch_to_bytes,
    batches_to_bytes,
)
from svc_manager.domain import events
from svc_manager.domain.checkpoints import SavedCheckpoint
from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.reports import ExitCause, Exited, Lost, Report, ReportBody, Started, Waits
from svc_manager.domain.trial import TrialState
from svc_manager.domain.values import Metric, MetricType, Parameters, ParameterSource
from tests.unit.services.manager.building import encoded


def config() -> config_pb2.ExperimentConfig:
    made = config_pb2.ExperimentConfig(
        trial_concurrency=3,
        max_trial_number=9,
        experiment_working_directory="/root/",
        include_intermediate_results=True,
        max_trial_retries=0,
    )
    made.max_experiment_duration.FromMilliseconds(61_500)
    made.objectives.add(metric="loss", mode=1)
    made.training_services.add(platform="local")
    return made


CREATED = created_event(
    "expt1234",
    config(),
    environment_sha256="ab",
    interpreter="python3",
    nni_version="4",
    resolved_mode=2,
)
METRIC = Metric(
    MetricType.FINAL,
    2,
    encoded({"default": 1, "loss": 0.5, "note": "x"}),
    {"default": 1.0, "loss": 0.5},
    1_234,
)
BODIES: list[ReportBody] = [
    Started(5, 77, (0, 1), True),
    METRIC,
    Exited(9, ExitCause.ENDED, 0, 0, ""),
    Exited(9, ExitCause.STOPPED, None, 15, "tail"),
    Lost("gone"),
    Waits("for a GPU"),
    Exited(7, ExitCause.ENDED, 0, checkpoint=SavedCheckpoint("/c/0/1", "ab", 9)),
]
REPORTS = [
    Report("r1", "abcde", 1, sequence, "claim", body) for sequence, body in enumerate(BODIES)
]
SAMPLES: list[events.Event] = [
    CREATED,
    events.AlgorithmRequested(2, "/root/expt1234"),
    events.AlgorithmStarted(2, True, False, {"python": "3.11"}),
    events.TrialsRequested("1-0", (4, 5)),
    events.ParametersGenerated(
        "1-0",
        (Parameters(4, encoded({"x": 1}), encoded({"by": "TPE"})), Parameters(5, b"", b"")),
        True,
        1,
        (7, 2),
        ("/checkpoints/0/0",),
    ),
    events.TrialScheduled("abcde", 0, 4, encoded({"x": 1}), ParameterSource.CUSTOMIZED, "local"),
    events.TrialStarted("abcde", 1, "claim", "r1", 1_000, (0, 1), 3),
    events.MetricReported("abcde", 1, 4, METRIC, 4),
    events.TrialStopRequested("abcde", TrialState.EARLY_STOPPED, "why"),
    events.TrialLost("abcde", 1, "why", True),
    events.TrialEnded("abcde", 1, TrialState.SUCCEEDED, 0, 2_000, "", 5),
    events.TrialEnded(
        "abcde", 1, TrialState.SUCCEEDED, 0, 2_000, "", 5, SavedCheckpoint("/c/0/1", "ab", 9)
    ),
    events.TrialEnded("abcde", 1, TrialState.FAILED, None, 2_000, "signal 9", 5),
    events.TrialUnknown("abcde", 1),
    events.TrialWaits("abcde", 1, "claim", "r1", "for a GPU", 0),
    *[events.ReportDeferred(report) for report in REPORTS],
    events.ReportIgnored("abcde", 1, 6, "why"),
    events.AlgorithmFailed("generate", "Traceback", (3, 1), False),
    events.AlgorithmDiverged(4, encoded(1), encoded(2)),
    events.BudgetChanged(4, 50, 7_200_000),
    events.BudgetChanged(None, None, None),
    events.SearchSpaceChanged(encoded({"x": 1})),
    events.DataImported("i1", encoded([1])),
    events.CustomTrialAdded("q", 9, encoded({"x": True})),
    events.ListenerOpened(8080, "p"),
    events.ListenerClosed(),
    events.ExperimentStateChanged(ExperimentState.RUNNING, ExperimentState.DONE, "why", 1_500),
    events.ExperimentStateChanged(None, ExperimentState.INITIALIZED, "", 0),
    events.ExperimentEnded(ExperimentState.STOPPED, "why"),
    events.ExperimentMoved("/elsewhere"),
    events.RequestRecorded("q", "me", "Create"),
]


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: type(event).__name__)
def test_a_fact_comes_back_as_it_was(event: events.Event) -> None:
    message = event_pb2.Event()
    write_event(message, event)

    again = event_from(event_pb2.Event.FromString(message.SerializeToString()))

    assert again == event


def test_there_is_a_sample_of_every_fact() -> None:
    assert {type(event) for event in SAMPLES} == set(typing.get_args(events.Event))


def test_the_domain_knows_every_fact_of_the_contract() -> None:
    kinds = {message.WhichOneof("kind") for message in (_written(event) for event in SAMPLES)}

    assert kinds == {field.name for field in event_pb2.Event.DESCRIPTOR.oneofs[0].fields}


def _written(event: events.Event) -> event_pb2.Event:
    message = event_pb2.Event()
    write_event(message, event)
    return message


def test_a_fact_of_a_newer_version_is_passed_over() -> None:
    assert event_from(event_pb2.Event()) is None


def test_a_batch_keeps_writer_cursor_and_time() -> None:
    payload = batch_to_bytes(SAMPLES, Stamp(3, 7, 1_700_000_000_123), 11)

    batch = batch_from_bytes(payload)

    assert (batch.epoch, batch.append_id, batch.inbox_sequence) == (3, "7", 11)
    assert batch.time.ToMilliseconds() == 1_700_000_000_123
    assert [event_from(message) for message in batch.events] == SAMPLES


def test_settings_come_from_the_configuration() -> None:
    assert CREATED.settings.objective == "loss"
    assert CREATED.settings.optimize_mode.name == "MINIMIZE"
    assert CREATED.settings.max_trial_retries == 0
    assert CREATED.budget.max_duration_ms == 61_500
    assert CREATED.directory == "/root/expt1234"


def test_a_long_round_makes_several_batches_of_which_the_last_moves_the_cursor() -> None:
    payloads = list(batches_to_bytes(SAMPLES, Stamp(3, 7, 1), 11, 19, limit_bytes=300))

    batches = [batch_from_bytes(payload) for payload in payloads]
    assert all(
        len(payload) <= 300 or len(batch.events) == 1
        for payload, batch in zip(payloads, batches, strict=True)
    )
    assert [event_from(message) for batch in batches for message in batch.events] == SAMPLES
    assert [batch.inbox_sequence for batch in batches] == [11] * (len(batches) - 1) + [19]
    assert [batch.append_id for batch in batches] == [str(7 + n) for n in range(len(batches))]
