"""Round trips of all events through the log."""

import typing
from dataclasses import replace

import pytest

from nni_proto.experiment.v1 import config_pb2, event_pb2
from svc_common.experiment_events.causes import (
    EndCause,
    EndReason,
    ExperimentCause,
    ExperimentReason,
    GpuUser,
    IgnoreCause,
    LossCause,
    LossReason,
    StopCause,
    StopReason,
    WaitCause,
    WaitReason,
)
from svc_manager.converters.creation import created_event
from svc_manager.converters.event_codec import event_from, write_event
from svc_manager.converters.events import (
    Stamp,
    batch_from_bytes,
    batch_to_bytes,
    batches_to_bytes,
)
from svc_manager.domain import events
from svc_manager.domain.agent_limits import AgentLimits
from svc_manager.domain.checkpoints import SavedCheckpoint, TrialCheckpoint
from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.reports import (
    CheckpointSaved,
    ExitCause,
    Exited,
    Lost,
    Report,
    ReportBody,
    Started,
    Waits,
)
from svc_manager.domain.trial import TrialState
from svc_manager.domain.values import Metric, MetricType, Parameters, ParameterSource
from tests.unit.services.manager.building import change, encoded


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
SUCCEEDED = EndReason(EndCause.SUCCEEDED)
STOPS = [StopReason(cause, detail) for cause in StopCause for detail in ("", "why")]
WAITS = [
    WaitReason(
        WaitCause.GPU_IN_USE,
        gpu_count=3,
        users=(GpuUser(0, ("a", "b")), GpuUser(1, experiment_id="e"), GpuUser(2, process="p")),
    ),
    WaitReason(WaitCause.GPU_MISSING, gpu_count=3, gpu_available=2, gpu_restricted=True),
    WaitReason(WaitCause.BLOB, object="its code", detail="no room"),
    WaitReason(WaitCause.ENVIRONMENT, detail="no space left", failure_count=3),
    WaitReason(WaitCause.PLATFORM, detail="login refused", remedy="give a password"),
    WaitReason(WaitCause.UNSPECIFIED, detail="text of an old log"),
]
LOSSES = [
    *map(LossReason, LossCause),
    LossReason(LossCause.AGENT_SILENT, silence_ms=45_000, runner_id="r1"),
    LossReason(LossCause.CLAIM_EXPIRED, silence_ms=0),
    LossReason(LossCause.AGENT_FAILED, detail="why"),
    LossReason(LossCause.COMMAND_FAILED, end=EndReason(EndCause.EXIT_CODE, exit_code=3)),
]
ENDS = [
    *map(EndReason, EndCause),
    EndReason(EndCause.EXIT_CODE, exit_code=3, stderr_tail="boom"),
    EndReason(EndCause.SIGNAL, signal=9, stderr_tail="boom"),
    EndReason(EndCause.NOT_STARTED, detail="no such file"),
    *[EndReason(EndCause.STOPPED, stderr_tail="bye", stop=stop) for stop in STOPS],
    *[EndReason(EndCause.LOST, lost_count=3, loss=loss) for loss in LOSSES],
]
BODIES: list[ReportBody] = [
    Started(5, 77, (0, 1), True),
    METRIC,
    Exited(9, ExitCause.ENDED, 0, 0, ""),
    Exited(9, ExitCause.STOPPED, None, 15, "tail"),
    *map(Lost, LOSSES),
    *map(Waits, WAITS),
    Exited(7, ExitCause.ENDED, 0, checkpoint=SavedCheckpoint("/c/0/1", "ab", 9)),
    CheckpointSaved(TrialCheckpoint(-3, 2, 7)),
    CheckpointSaved(TrialCheckpoint(40, 1, 2, "ab", 9)),
]
REPORTS = [
    Report("r1", "abcde", 1, sequence, "claim", body) for sequence, body in enumerate(BODIES)
]
SAMPLES: list[events.Event] = [
    CREATED,
    events.AlgorithmRequested(2, "/root/expt1234"),
    events.AlgorithmRequested(
        3, "/root/expt1234", tuner=config_pb2.AlgorithmConfig(name="TPE").SerializeToString()
    ),
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
    *[events.TrialStopRequested("abcde", TrialState.EARLY_STOPPED, stop) for stop in STOPS],
    *[events.TrialLost("abcde", 1, loss, True) for loss in LOSSES],
    events.TrialEnded("abcde", 1, TrialState.SUCCEEDED, 0, 2_000, SUCCEEDED, 5),
    events.TrialEnded(
        "abcde", 1, TrialState.SUCCEEDED, 0, 2_000, SUCCEEDED, 5, SavedCheckpoint("/c/0/1", "ab", 9)
    ),
    *[events.TrialEnded("abcde", 1, TrialState.FAILED, None, 2_000, end, 5) for end in ENDS],
    events.TrialEnded("abcde", 1, TrialState.FAILED, None, 2_000, ENDS[0], 5, infrastructure=True),
    events.TrialUnknown("abcde", 1),
    events.TrialRequeued("abcde", 2),
    *[events.TrialWaits("abcde", 1, "claim", "r1", wait, 0) for wait in WAITS],
    events.TrialCheckpointed("abcde", 2, TrialCheckpoint(40, 2, 1), 5),
    events.TrialCheckpointed("abcde", 2, TrialCheckpoint(41, 2, 2, "ab", 9), 6),
    *[events.ReportDeferred(report) for report in REPORTS],
    events.ReportIgnored("abcde", 1, 6, IgnoreCause.FINAL_COUNTED),
    events.AlgorithmFailed("generate", "Traceback", (3, 1), False),
    events.AlgorithmDiverged(4, encoded(1), encoded(2)),
    events.AlgorithmWaits(2, "no space to store the blob"),
    events.BudgetChanged(4, 50, 7_200_000),
    events.BudgetChanged(None, None, None),
    events.AgentLimitsChanged(AgentLimits(0, 4, 60_000, 7_200_000, 9.5, 1.5)),
    events.AgentLimitsChanged(AgentLimits(max_agents=8)),
    events.SearchSpaceChanged(encoded({"x": 1})),
    events.DataImported("i1", encoded([1])),
    events.CustomTrialAdded("q", 9, encoded({"x": True})),
    events.ListenerOpened(8080, "p"),
    events.ListenerClosed(),
    *[change(ExperimentState.RUNNING, ExperimentState.DONE, cause) for cause in ExperimentCause],
    replace(change(ExperimentState.RUNNING, ExperimentState.ERROR), execution_time_ms=1_500),
    change(None, ExperimentState.INITIALIZED),
    events.ExperimentEnded(
        ExperimentState.ERROR, ExperimentReason(ExperimentCause.ALGORITHM_GAVE_UP, "why")
    ),
    events.ExperimentTimeCounted(61_000),
    events.ExperimentMoved("/elsewhere"),
    events.RemarksChanged("abcde", "look again", ("paper", "2nd run"), True),
    events.RemarksChanged("", "", (), False),
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
