import pytest

from svc_common.experiment_events.causes import (
    EndCause,
    EndReason,
    ExperimentCause,
    IgnoreCause,
    LossCause,
    LossReason,
    StopCause,
    StopReason,
    WaitCause,
    WaitReason,
)
from svc_manager.converters.text_log import Line, line_of
from svc_manager.domain import events
from svc_manager.domain.agent_limits import AgentLimits
from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.reports import Report
from svc_manager.domain.trial import TrialState
from tests.unit.services.manager.building import change, exited


def test_an_error_of_the_experiment_is_an_error_line_with_its_reason() -> None:
    line = line_of(
        change(
            ExperimentState.RUNNING,
            ExperimentState.ERROR,
            ExperimentCause.ALGORITHM_GAVE_UP,
            "it broke",
        )
    )

    assert line == ("ERROR", "NNIManager", "Experiment is ERROR (it broke)")


def test_a_failed_trial_is_a_warning_with_the_tail_of_its_stderr() -> None:
    end = EndReason(EndCause.EXIT_CODE, exit_code=3, stderr_tail="boom")

    line = line_of(events.TrialEnded("abcde", 1, TrialState.FAILED, 3, 0, end, 4))

    assert line == ("WARNING", "TrialDispatcher", "Trial abcde is FAILED: exit code 3: boom")


def test_an_update_names_what_changed() -> None:
    line = line_of(events.BudgetChanged(4, None, None))

    assert line == ("INFO", "NNIManager", "Update: trialConcurrency = 4")


def test_changed_limits_of_agents_are_named() -> None:
    line = line_of(
        events.AgentLimitsChanged(AgentLimits(max_agents=8, max_cost=75.0, removed=("idleTime",)))
    )

    assert line == ("INFO", "NNIManager", "Update: maxAgents = 8, maxCost = 75.0, idleTime removed")


@pytest.mark.parametrize(
    ("tuner", "line"), [(b"tuner", ("INFO", "NNIManager", "Update: tuner")), (None, None)]
)
def test_hand_over_is_an_update_of_the_tuner(tuner: bytes | None, line: Line | None) -> None:
    assert line_of(events.AlgorithmRequested(2, tuner=tuner)) == line


def test_requests_that_were_recorded_need_no_line() -> None:
    assert line_of(events.RequestRecorded("q", "me", "Create")) is None


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            events.TrialStopRequested("t", TrialState.USER_CANCELED, StopReason(StopCause.USER)),
            ("INFO", "TrialDispatcher", "Trial t is being stopped: killed by the user"),
        ),
        (
            events.TrialLost("t", 2, LossReason(LossCause.AGENT_LEFT), command_failed=False),
            (
                "WARNING",
                "TrialDispatcher",
                "Attempt 2 of trial t is lost and will be repeated: its agent has left",
            ),
        ),
        (
            events.TrialWaits("t", 1, "c", "r", WaitReason(WaitCause.BLOB, object="its code"), 0),
            ("INFO", "TrialDispatcher", "Trial t waits: waiting for its code"),
        ),
        (
            events.ReportIgnored("t", 1, 4, IgnoreCause.FINAL_COUNTED),
            (
                "WARNING",
                "TrialDispatcher",
                "A report of trial t was ignored: the first final result counts",
            ),
        ),
        (
            events.TrialEnded("t", 1, TrialState.SUCCEEDED, 0, 0, EndReason(EndCause.SUCCEEDED), 4),
            ("INFO", "TrialDispatcher", "Trial t is SUCCEEDED"),
        ),
        (
            events.TrialUnknown("t", 1),
            ("WARNING", "TrialDispatcher", "The agent of trial t is silent"),
        ),
        (
            events.TrialStarted("t", 2, "c", "r1", 5, (), 0),
            ("INFO", "TrialDispatcher", "Trial t is RUNNING on r1, attempt 2"),
        ),
        (
            events.TrialsRequested("1-0", (4, 5)),
            ("DEBUG", "Dispatcher", "Request 1-0: 2 trials"),
        ),
        (
            events.AlgorithmDiverged(4, b"", b""),
            (
                "WARNING",
                "Dispatcher",
                "Not repeatable: the algorithm answered differently for parameters 4",
            ),
        ),
        (
            events.AlgorithmWaits(1, "no room"),
            ("WARNING", "Dispatcher", "The algorithm waits: no room"),
        ),
        (
            change(ExperimentState.DONE, ExperimentState.STOPPED),
            ("INFO", "NNIManager", "Experiment is STOPPED"),
        ),
        (events.ListenerOpened(8080, ""), ("INFO", "NNIManager", "Listening on port 8080")),
    ],
    ids=lambda part: type(part).__name__,
)
def test_line_of(event: events.Event, line: Line) -> None:
    assert line_of(event) == line


@pytest.mark.parametrize(
    "event",
    [
        events.ReportDeferred(Report("r", "t", 1, 4, "c", exited())),
        events.RequestRecorded("q", "me", "Create"),
    ],
)
def test_some_events_have_no_line(event: events.Event) -> None:
    assert line_of(event) is None
